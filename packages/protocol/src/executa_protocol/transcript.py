"""What a trace is made of: one event for each thing that a host saw or did.

The demo's timeline, recordings and the viewers are drawn from these. `at` is epoch
seconds, durations are milliseconds, `plugin` is the plugin's name, `user_id` whose plugin
it is, empty for the local user. No event holds a token or a credential; `Frame` holds a line
after redaction.
"""

from collections.abc import Callable
from typing import Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from executa_protocol import codec


class Event(Struct, tag_field="event", omit_defaults=True, kw_only=True):
    """Base of all trace events."""

    at: float
    plugin: str = ""
    user_id: str = ""


class Spawned(Event, tag="spawned"):
    """A plugin's process began. `launch` counts from 1."""

    pid: int
    launch: int = 1


class Negotiated(Event, tag="negotiated"):
    """The handshake is over: protocol `version`, and the keys that both sides took."""

    version: str
    capabilities: tuple[str, ...] = ()
    ms: float = 0.0


class Described(Event, tag="described"):
    """The manifest is in."""

    version: str
    tools: tuple[str, ...]
    host_capabilities: tuple[str, ...] = ()
    ms: float = 0.0


class StateChanged(Event, tag="state"):
    """A plugin's lifecycle state changed (see `lifecycle`)."""

    state: str
    reason: str = ""


class Exited(Event, tag="exited"):
    """A plugin's process ended: exit `code`, negative for the signal. `fault` per R-25."""

    code: int
    fault: bool
    rung: str = ""


class InvokeStarted(Event, tag="invoke"):
    """An invoke began. `parent` is the invoke that it is nested in."""

    invoke_id: str
    tool: str
    parent: str = ""


class InvokeEnded(Event, tag="invoke_end"):
    """An invoke ended. `outcome` is ``ok``, ``tool_failed`` or the symbol of an error.

    `calls` and `tokens_used` are what its root invoke has used of the budget by now, with
    their caps; the counts before them are the invoke's own and its nested ones'.
    """

    invoke_id: str
    tool: str
    outcome: str
    ms: float
    sampling_calls: int = 0
    tokens: int = 0
    storage_calls: int = 0
    agent_runs: int = 0
    nested_calls: int = 0
    frames: int = 0
    frame_bytes: int = 0
    progress: int = 0
    progress_dropped: int = 0
    denied: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    calls: int = 0
    calls_cap: int = 0
    tokens_used: int = 0
    tokens_cap: int = 0


class CancelEnded(Event, tag="cancel_end"):
    """What became of a cancelled invoke: `outcome` is a word of R-45, or ``unanswered``."""

    invoke_id: str
    outcome: str
    reason: str = ""


class ReverseStarted(Event, tag="reverse"):
    """A plugin called back. `call` tells concurrent calls of one invoke apart."""

    method: str
    call: int
    invoke_id: str = ""


class ReverseEnded(Event, tag="reverse_end"):
    """A reverse call was answered: ``served``, ``refused`` by `step`, or ``failed``."""

    method: str
    call: int
    verdict: Literal["served", "refused", "failed"]
    ms: float
    invoke_id: str = ""
    step: str = ""
    code: int = 0
    symbol: str = ""
    message: str = ""
    tokens: int = 0


class RunFrame(Event, tag="run_frame"):
    """A frame of an agent run, as the plugin gets it."""

    invoke_id: str
    run_id: str
    frame: Raw


class ToolExecuted(Event, tag="tool"):
    """The host executed a tool that a run asked for (R-36). `invoke_id` is the run's."""

    invoke_id: str
    run_id: str
    call_id: str
    name: str
    ok: bool
    ms: float
    reason: str = ""


class Progress(Event, tag="progress"):
    """An `executa/progress` notification of an active invoke."""

    invoke_id: str
    params: Raw


class Noise(Event, tag="noise"):
    """A diagnostic: something that the other side should not have done."""

    kind: str
    message: str
    sample: str = ""


class Stderr(Event, tag="stderr"):
    """A line that the plugin wrote to stderr."""

    line: str


class ActionAttempt(Event, tag="action"):
    """An attempt of a durable action began, as the invoke `invoke_id`; `attempt` counts from 1."""

    action_id: str
    attempt: int
    invoke_id: str


class Frame(Event, tag="frame"):
    """A line that crossed the wire, redacted; `direction` is the plugin's: in or out.

    `line` is the line if it is JSON, else `text` is what it looked like; a line too long to be
    kept has its `sha256` instead, in hexadecimal, of what would stand here. `bytes` is how long
    it was without its LF. `id` is the message's own, `method` that of a request, a notification,
    or of the request that it answers; `invoke_id` the invoke that it belongs to, as far as it
    says or is known. `file` marks the content of a response file (R-12), which crossed the wire
    as a pointer.
    """

    direction: Literal["in", "out"]
    kind: Literal["request", "response", "error", "notification", "other"] = "other"
    method: str = ""
    id: Raw | UnsetType = UNSET
    invoke_id: str = ""
    bytes: int = 0
    file: bool = False
    sha256: str = ""
    line: Raw | UnsetType = UNSET
    text: str | UnsetType = UNSET


AnyEvent = (
    Spawned
    | Negotiated
    | Described
    | StateChanged
    | Exited
    | InvokeStarted
    | InvokeEnded
    | CancelEnded
    | ReverseStarted
    | ReverseEnded
    | RunFrame
    | ToolExecuted
    | Progress
    | Noise
    | Stderr
    | ActionAttempt
    | Frame
)

FORMAT: Final = "executa-transcript"
FORMAT_VERSION: Final = 1
"""Rises when a reader of the version before would misread what is written."""


class Header(Struct, tag_field="event", tag="transcript", omit_defaults=True, kw_only=True):
    """The first line of a transcript. `protocol` is the revision of the wire that is recorded.

    `at` is when it began, `host` who wrote it, `command` the command line, redacted.
    """

    format: str
    version: int
    protocol: str
    at: float
    host: str = ""
    command: tuple[str, ...] = ()


class Stamp(Struct, omit_defaults=True):
    """What stands on every other line beside the event.

    `n` counts lines from 1, the header apart; `t` is seconds on a monotonic clock since the
    header; `launch` is which process of its plugin it is about, 0 for none.
    """

    n: int
    t: float
    launch: int = 0


class End(Struct, tag_field="event", tag="end", omit_defaults=True, kw_only=True):
    """The last line of a transcript that was not cut off. `lines` is how many it ends, header
    and end apart, and `dropped` how many could not be kept because the disk was too slow."""

    at: float
    n: int = 0
    t: float = 0.0
    lines: int = 0
    dropped: int = 0


Trace = Callable[[AnyEvent], None]
"""Whoever follows a host gets one of these. It must not raise or block."""

_DECODER = msgspec.json.Decoder(AnyEvent)


def encode_event(event: AnyEvent) -> bytes:
    """One line of a transcript, without its LF. Raises `NotEncodable`."""
    return codec.encode(event)


def decode_event(line: bytes) -> AnyEvent:
    """Read a line of a transcript. Raises `DecodeFailure`."""
    codec.check_content(line)
    return codec.decode(line, _DECODER)
