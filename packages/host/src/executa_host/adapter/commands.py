"""What the kit may ask for, and the answers: the adapter protocol as structs.

Each command is one JSON object on a line with an `id`, and an `op` that names it. Each is
answered once, under its id, by ``ok`` or by ``error``; ``progress`` may come before.
"""

from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from executa_host.connection import StartFailed
from executa_host.invocation import InvokeOutcome, InvokeRefused
from executa_host.process import SpawnFailed
from executa_host.supervisor import PluginFaulted
from executa_protocol.errors import (
    CallCancelled,
    CallFailed,
    ConnectionLost,
    ExecutaError,
    LocalError,
    PeerViolation,
    RpcError,
)
from executa_protocol.nexus import AppContext

VERSION: Final = 1
"""Of the adapter protocol."""


class NexusAddress(Struct, frozen=True):
    """Where nexus listens, and the key that a host shows there."""

    url: str
    key: str = ""

    def __repr__(self) -> str:
        return f"NexusAddress({self.url!r})"


class Pace(Struct, frozen=True, omit_defaults=True):
    """Seconds that the kit wishes for, or that the host keeps.

    `initialize`, `describe`, `health`, each rung of a `stop`, a late answer after `cancel`,
    and the first wait before a `restart`.
    """

    initialize: float | UnsetType = UNSET
    describe: float | UnsetType = UNSET
    health: float | UnsetType = UNSET
    stop: float | UnsetType = UNSET
    cancel: float | UnsetType = UNSET
    restart: float | UnsetType = UNSET


class Command(Struct, tag_field="op", frozen=True, kw_only=True):
    """What every command has."""

    id: int


class Hello(Command, tag="hello", frozen=True, kw_only=True):
    """The first command: which adapter protocol, and what surrounds the host."""

    adapter: int
    nexus: NexusAddress | UnsetType = UNSET
    pace: Pace = Pace()
    hide_env: tuple[str, ...] = ()


class Start(Command, tag="start", frozen=True, kw_only=True):
    """Make a plugin known under a name, and start it."""

    plugin: str
    command: tuple[str, ...]
    cwd: str | None = None
    env: dict[str, str] = field(default_factory=dict[str, str])
    tool_id: str = ""
    credentials: dict[str, str] = field(default_factory=dict[str, str])
    file_transport: bool = True
    user: str = ""

    def __repr__(self) -> str:
        return f"Start({self.plugin!r}, {self.command!r})"


class Invoke(Command, tag="invoke", frozen=True, kw_only=True):
    """Call a tool. `timeout` is in seconds, `app` the app that the call comes from (R-29)."""

    plugin: str
    tool: str
    arguments: Raw = Raw(b"{}")
    timeout: float | None = None
    user: str = ""
    app: AppContext | None = None


class Cancel(Command, tag="cancel", frozen=True, kw_only=True):
    """Ask for the end of the invoke that command `invoke` began."""

    invoke: int
    reason: str = ""


class Stop(Command, tag="stop", frozen=True, kw_only=True):
    """Stop a plugin; answered once its process has gone."""

    plugin: str
    user: str = ""


AnyCommand = Hello | Start | Invoke | Cancel | Stop

Kind = Literal[
    "rpc", "refused", "timeout", "lost", "cancelled", "faulted", "start", "unreadable", "usage"
]
"""Why there is no result: the plugin's error answer; a refusal of the host's; and what ended
the call, or never let it begin."""


class Failure(Struct, frozen=True, omit_defaults=True):
    """An ``error``. `written` says whether the plugin may have seen the call."""

    kind: Kind
    message: str
    code: int | UnsetType = UNSET
    data: Any = UNSET
    written: bool | None = None


class ToolAnswer(Struct, frozen=True):
    """The ``ok`` of an invoke: what the tool returned."""

    success: bool
    data: Raw
    error: str


class BadCommand(Exception):
    """A line is no command. `id` is what it is answered under, where that can be read."""

    def __init__(self, message: str, identity: int | None) -> None:
        super().__init__(message)
        self.id = identity


class _Identity(Struct):
    id: int


_COMMAND: Final = msgspec.json.Decoder(AnyCommand)
_IDENTITY: Final = msgspec.json.Decoder(_Identity)


def read_command(line: bytes) -> AnyCommand:
    """The command on a line. Raises `BadCommand`."""
    try:
        return _COMMAND.decode(line)
    except (msgspec.DecodeError, UnicodeError) as fault:
        problem = str(fault)
    try:
        identity = _IDENTITY.decode(line).id
    except (msgspec.DecodeError, UnicodeError):
        identity = None
    raise BadCommand(problem, identity)


def tool_answer(outcome: InvokeOutcome) -> ToolAnswer:
    """An outcome as the kit reads it."""
    data = Raw(b"null") if outcome.raw is UNSET else outcome.raw
    return ToolAnswer(outcome.success, data, outcome.error)


_KINDS: Final[tuple[tuple[type[ExecutaError], Kind], ...]] = (
    (InvokeRefused, "refused"),
    (RpcError, "rpc"),
    (PluginFaulted, "faulted"),
    (CallCancelled, "cancelled"),
    (StartFailed, "start"),
    (SpawnFailed, "start"),
    (ConnectionLost, "lost"),
    (CallFailed, "timeout"),
    (PeerViolation, "unreadable"),
    (LocalError, "usage"),
)


def failure_of(fault: ExecutaError) -> Failure:
    """A fault as the kit reads it."""
    kind = _kind_of(fault)
    if isinstance(fault, RpcError):
        return Failure(kind, fault.message, fault.code, fault.data)
    written = fault.written if isinstance(fault, CallFailed) else None
    return Failure(kind, str(fault), written=written)


def _kind_of(fault: ExecutaError) -> Kind:
    for known, kind in _KINDS:
        if isinstance(fault, known):
            return kind
    return "usage"
