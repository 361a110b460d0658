"""An invoke while it runs, and what comes out of it.

Owns the record that reverse calls are matched to. Knows nothing of processes or of
nexus beyond the grant that it was given.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType

from executa_host.reverse.budget import Budget, Ledger
from executa_protocol import codec
from executa_protocol.errors import CallFailed, RpcError
from executa_protocol.nexus import AppContext, InvokeGrant


class ActiveInvoke:
    """One invoke in flight.

    `deadline` is a `time.monotonic` instant. `parent` is the invoke that it is nested
    in, None for a root; `budget` is the root's. `tasks` are the reverse calls that serve
    it: they end with it. `runs` are the agent sessions that it has a run on.
    """

    __slots__ = (
        "app",
        "budget",
        "deadline",
        "depth",
        "ended",
        "grant",
        "invoke_id",
        "ledger",
        "on_progress",
        "parent",
        "plugin",
        "renewing",
        "reverse_count",
        "runs",
        "started",
        "tasks",
        "tool",
        "user_id",
    )

    def __init__(
        self,
        *,
        invoke_id: str,
        user_id: str,
        plugin: str,
        tool: str,
        deadline: float,
        parent: "ActiveInvoke | None" = None,
        app: AppContext | None = None,
        on_progress: Callable[[Raw], None] | None = None,
    ) -> None:
        self.invoke_id = invoke_id
        self.user_id = user_id
        self.plugin = plugin
        self.tool = tool
        self.deadline = deadline
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.app = app
        self.on_progress = on_progress
        self.grant = InvokeGrant()
        self.budget = Budget() if parent is None else parent.budget
        self.ledger = Ledger()
        self.tasks: set[asyncio.Task[None]] = set()
        self.runs: set[str] = set()
        self.renewing: asyncio.Task[InvokeGrant] | None = None
        self.reverse_count = 0
        self.started = time.monotonic()
        self.ended = False

    @property
    def remaining(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()

    def lineage(self) -> "list[ActiveInvoke]":
        """This invoke and all that it is nested in, the root last."""
        chain: list[ActiveInvoke] = []
        invoke: ActiveInvoke | None = self
        while invoke is not None:
            chain.append(invoke)
            invoke = invoke.parent
        return chain


class InvokeOutcome(Struct, frozen=True):
    """What a tool returned.

    `success` is the tool's own verdict and `error` its words when it is false.
    `raw` is the data as JSON text; `data` decodes it. `duration_ms` is what the
    host measured. `ledger` says what the invoke used, nested invokes included.
    """

    invoke_id: str
    plugin: str
    tool: str
    success: bool
    raw: Raw | UnsetType
    error: str
    duration_ms: float
    ledger: Ledger

    @property
    def data(self) -> Any:
        """The data decoded; None when the tool sent none."""
        return None if self.raw is UNSET else codec.decode_any(self.raw)


class InvokeTimeout(CallFailed, TimeoutError):
    """The tool took longer than its limit; its plugin and other invokes go on (R-24)."""


class InvokeRefused(RpcError):
    """The host refused the invoke before the plugin heard of it."""
