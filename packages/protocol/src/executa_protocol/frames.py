"""Run frames: the four events of seed agent-sessions, "Frame shapes".

Owns their wire shapes and reads one frame at a time. Other spellings are the
business of `normaliser`, a whole run and its answer that of `runs`. This module does
not know which run a frame belongs to.
"""

from typing import Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from executa_protocol import codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.limits import MAX_DEPTH

SEED_EVENTS = frozenset({"delta", "tool_call", "tool_result", "final"})


# --- The seed's four ---------------------------------------------------------------


class Delta(Struct, frozen=True, tag_field="event", tag="delta"):
    """The next piece of the model's text."""

    event: ClassVar[str] = "delta"

    text: str


class ToolCall(Struct, frozen=True, tag_field="event", tag="tool_call"):
    """The model calls a tool. `name` is ``PLUGIN.TOOL``; `call_id` ties the result to it (R-34)."""

    event: ClassVar[str] = "tool_call"

    name: str
    call_id: str
    args: dict[str, Any] = {}


class HostToolCall(ToolCall, frozen=True, tag_field="event", tag="tool_call"):
    """A `ToolCall` as nexus marks it for the host to execute; plugins never see the mark (R-36)."""

    executor: Literal["host"] = "host"


class ToolResult(Struct, frozen=True, tag_field="event", tag="tool_result"):
    """What a tool call gave: `data` is its result if `ok`, else what went wrong."""

    event: ClassVar[str] = "tool_result"

    call_id: str
    ok: bool
    data: Any = None


class Final(Struct, frozen=True, tag_field="event", tag="final"):
    """The end of a run: its whole text. `cancelled` is absent or true (R-32).

    `usage` counts tokens, in the spelling that the model's provider uses.
    """

    event: ClassVar[str] = "final"

    text: str
    usage: dict[str, Any] | UnsetType = UNSET
    cancelled: bool | UnsetType = UNSET


Frame = Delta | ToolCall | ToolResult | Final
"""One of the seed's four events."""

_FRAME: "msgspec.json.Decoder[Frame]" = msgspec.json.Decoder(Delta | ToolCall | ToolResult | Final)


class _Event(Struct, frozen=True, gc=False):
    event: str


_EVENT = msgspec.json.Decoder(_Event)


def frame_event(raw: bytes | Raw) -> str:
    """The event of one frame, the rest unread. Raises `DecodeFailure` if it has none."""
    try:
        return _EVENT.decode(raw).event
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # It may be there twice, the first time of a wrong type; the last one counts.
        return codec.decode(codec.encode(codec.decode_any(raw)), _EVENT).event


def read_frame(raw: bytes | Raw) -> Frame | None:
    """One frame of the seed's four; None for an event that is none of them.

    Members that the seed does not name are ignored. Raises `DecodeFailure`.
    """
    try:
        return _FRAME.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    # Another event, a fault, or an event that is there twice: the last one wins,
    # but the decoder of a union holds on to the first.
    if frame_event(raw) not in SEED_EVENTS:
        return None
    return codec.decode(codec.encode(codec.decode_any(raw)), _FRAME)


_AROUND = 3
"""Levels around a frame on the plugin's line: the message, its result, the array of frames."""


def check_depth(raw: bytes) -> None:
    """Raise `DecodeFailure` if the frame nests so deep that its line would be refused (R-14)."""
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH - _AROUND:
        return
    if codec.too_deep(b"[" * _AROUND + raw + b"]" * _AROUND):
        msg = f"arrays and objects nest deeper than {MAX_DEPTH - _AROUND}"
        raise DecodeFailure(msg)


def encode_frame(frame: Frame) -> bytes:
    """One frame in the seed's spelling. Raises `NotEncodable`."""
    return codec.encode(frame)


# --- On the way through a host -------------------------------------------------------


class RunFrame(Struct, frozen=True, gc=False):
    """A frame on its way to the plugin: `raw` is what the plugin gets, already normalised.

    `host_executes` says that nexus waits for the host to run this tool call (R-36); the
    mark itself is no longer in `raw`.
    """

    raw: bytes
    event: str
    host_executes: bool = False

    def read(self) -> Frame | None:
        """The frame decoded; None for an event that is none of the seed's four."""
        return read_frame(self.raw)
