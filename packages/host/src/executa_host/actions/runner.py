"""What the engine needs of whatever runs an action: the seam to the host.

Above it, actions, states and disks; below it, plugins, processes and pipes. A runner does
not know what is durable. `host_runner` runs on a host, tests on a script.
"""

from collections.abc import Callable
from typing import Literal, Protocol

from msgspec import UNSET, Raw, Struct, UnsetType

from executa_host.actions.records import ActionError, AppContext, Observability
from executa_protocol.chunks import ChunkKind

Emit = Callable[[ChunkKind, Raw], None]
"""Takes what an attempt shows while it runs, on the loop's thread. Never blocks or raises."""


class Attempt(Struct, frozen=True, kw_only=True):
    """One attempt of an action. `timeout_ms` covers everything, a plugin's start included."""

    action_id: str
    attempt: int
    plugin: str
    tool: str
    input: Raw
    timeout_ms: int
    user_id: str
    app: AppContext | UnsetType = UNSET
    observability: Observability | UnsetType = UNSET


class Ended(Struct, frozen=True, kw_only=True):
    """How an attempt ended.

    ``answered``: the tool gave `output`, or its own failure as `error`. ``refused``: the
    host refused it. ``timed_out``, ``lost`` (the plugin, or the way to it, is gone) and
    ``cancelled`` speak for themselves. `written` says whether the plugin may have seen the
    request, `acknowledged` whether it confirmed the end that was asked for.
    """

    kind: Literal["answered", "refused", "timed_out", "lost", "cancelled"]
    output: Raw | UnsetType = UNSET
    error: ActionError | UnsetType = UNSET
    written: bool = True
    acknowledged: bool = False


class Run(Protocol):
    """An attempt under way."""

    async def ended(self) -> Ended:
        """Wait for its end. Never raises but for the cancellation of whoever waits."""
        ...

    def cancel(self, reason: str) -> None:
        """Ask for its end; `ended` says what came of it, at the latest after the grace (R-45)."""
        ...

    def abandon(self) -> None:
        """Nobody waits any more: the engine stops."""
        ...


class Runner(Protocol):
    """Runs attempts."""

    def begin(self, attempt: Attempt, emit: Emit) -> Run:
        """Begin one. Never raises: what cannot begin has ended, ``refused`` or ``lost``."""
        ...
