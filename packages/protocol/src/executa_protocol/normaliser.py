"""The frames of one run, from nexus's spelling to the plugin's (R-31).

A frame in the seed's spelling goes through as its own bytes. Members that belong to
the transport (`seq`, `stream_id`, `done`) or to the host (`executor`, R-36) are taken
off the seed's four; their other unknown members, and unknown events whole, pass
unchanged. Each departure is told to the `Reader` once a run. What the dialects say is
read by `dialects` and `openai_chunks`. This module knows neither the stream that
frames come from nor the caps of the buffer that they go to.
"""

from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Struct

from executa_protocol import codec, dialects, frames
from executa_protocol.dialects import End, Message, Piece, RunFailure
from executa_protocol.errors import DecodeFailure
from executa_protocol.frames import SEED_EVENTS, RunFrame
from executa_protocol.limits import MAX_DEPTH
from executa_protocol.openai_chunks import ChunkReader
from executa_protocol.readings import TOLERANT, Reader

Object = dict[str, Any]

_TAGS: Final = ("seq", "stream_id")
_NOT_FOR_PLUGINS: Final = frozenset({*_TAGS, "done", "executor"})
_LF: Final = 0x0A  # as a number: testing for one byte of bytes costs seven times as much
_MAX_WRAPPING: Final = 4
"""Wrappers around one payload; the field has two: a stream record around `sse`."""


# The exact spellings, read whole, so that what passes as bytes has been checked;
# a frame with any other member takes the slower way.


class _Delta(
    Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="event", tag="delta"
):
    text: str


class _Call(Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="tool_call"):
    name: str
    call_id: str
    args: Object


class _Result(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="tool_result"
):
    call_id: str
    ok: bool
    data: Any


class _Final(Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="final"):
    text: str
    usage: Object = {}
    cancelled: bool = False


_EXACT = msgspec.json.Decoder(_Delta | _Call | _Result | _Final)
_NAMES: Final[dict[type, str]] = {_Call: "tool_call", _Result: "tool_result", _Final: "final"}


class FrameNormaliser:
    """Reads the frames of one run, in order, and gives exactly one final frame.

    `ended` says that the run is over: the final frame was given, or `failure` is set.
    `late` counts the frames that came after that; they are dropped. The text of all
    deltas is kept for a final frame that has none: whoever feeds on past the caps of
    `RunBuffer` has no bound.
    """

    __slots__ = ("_chunks", "_message_at", "_reader", "_text", "_told", "ended", "failure", "late")

    def __init__(self, reader: Reader = TOLERANT) -> None:
        self.ended = False
        self.failure: RunFailure | None = None
        self.late = 0
        self._reader = reader
        self._told: set[str] = set()
        self._text: list[str] = []
        self._message_at = 0
        self._chunks: ChunkReader | None = None

    def feed(self, raw: bytes, event: str = "") -> list[RunFrame]:
        """Read one frame; give none, one or several in the seed's spelling.

        `event` is the type that the stream gave beside the frame; it counts only where
        the frame names none itself, and ``message`` is the stream's word for no type.
        Raises `DecodeFailure` for what is no frame, and `StrictRefusal` for a dialect in
        strict mode. The frame is lost then, and reading may go on.
        """
        if self.ended:
            self.late += 1
            return []
        if len(raw) > MAX_DEPTH:  # fewer bytes have fewer brackets
            frames.check_depth(raw)
        try:
            body = _EXACT.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return self._read(raw, "" if event == "message" else event)
        if type(body) is _Delta:
            self._text.append(body.text)
            frame = RunFrame(_one_line(raw), "delta")
        else:
            name = _NAMES[type(body)]
            self.ended = name == "final"
            frame = RunFrame(_one_line(raw), name)
        return [frame] if self._chunks is None else [*self._open_calls(), frame]

    def cancel(self) -> list[RunFrame]:
        """End a cancelled run with the frame of R-32; nothing if it has ended already."""
        return [] if self.ended else self._end(End(cancelled=True))

    def close(self) -> list[RunFrame]:
        """The stream has ended. Without a final frame that is a failure.

        A provider's own answer ends with a finish reason and may stop there.
        """
        if self.ended:
            return []
        if self._chunks is not None and self._chunks.finished:
            return self._end(End())
        return self._fail(RunFailure("", "the stream ended before the run's final frame"))

    # --- What is not exactly the seed's spelling --------------------------------------

    def _read(self, raw: bytes, name: str) -> list[RunFrame]:
        if raw.strip() == dialects.DONE_MARK:
            self._tolerate("FRAME-006", 'the stream ended with [DONE], not with "done": true')
            return self._end(End())
        return self._object(codec.decode_any(raw), raw, name, 0)

    def _object(self, value: object, raw: bytes | None, name: str, level: int) -> list[RunFrame]:
        """Read a decoded frame; `raw` is its own bytes, where it has any."""
        if not isinstance(value, dict):
            msg = "a frame is a JSON object"
            raise DecodeFailure(msg)
        if level > _MAX_WRAPPING:
            msg = f"a frame is wrapped more than {_MAX_WRAPPING} times"
            raise DecodeFailure(msg)
        members = cast("Object", value)
        given = self._frame(members, raw, name, level)
        if members.get("done") is True and not self.ended:
            return [*given, *self._end(End())]
        return given

    def _frame(self, value: Object, raw: bytes | None, name: str, level: int) -> list[RunFrame]:
        if "event" in value:
            return self._event(value, raw, level)
        if "choices" in value:
            self._tolerate("FRAME-008", "a provider's chunk came in place of a frame")
            return self._chunk(value)
        if "payload" in value:
            self._tolerate("FRAME-012", "a frame came inside a stream record")
            payload = value["payload"]
            return [] if payload is None else self._object(payload, None, name, level + 1)
        if name:
            self._tolerate("FRAME-011", f"only the stream named the event `{name}` of a frame")
            return self._event({"event": name, **value}, None, level)
        if "error" in value or "error_type" in value:
            return self._error(value)
        if value.get("done") is True:  # the seed's end of the stream, alone
            return []
        msg = "a frame has no event"
        raise DecodeFailure(msg, path="event")

    def _event(self, value: Object, raw: bytes | None, level: int) -> list[RunFrame]:
        event: object = value["event"]
        if not isinstance(event, str):
            msg = "event: expected a string"
            raise DecodeFailure(msg, path="event")
        if event in SEED_EVENTS:
            frame = self._seed_frame(event, value, raw)
            return [*self._open_calls(), frame]
        if event == "error":
            return self._error(value)
        requirement = dialects.DEPARTURES.get(event)
        if requirement is not None:
            self._tolerate(requirement, f"`{event}` is not one of the seed's events")
            if event == "sse":
                return self._object(dialects.payload_of(value), None, "", level + 1)
            if event != "run_meta":
                return self._dialect(event, value)
        return [*self._open_calls(), RunFrame(_one_line(raw or codec.encode(value)), event)]

    def _seed_frame(self, event: str, value: Object, raw: bytes | None) -> RunFrame:
        kept = {key: item for key, item in value.items() if key not in _NOT_FOR_PLUGINS}
        if any(tag in value for tag in _TAGS):
            self._tolerate("FRAME-010", f"a `{event}` frame carried seq or stream_id")
        if event == "final" and "text" not in kept:
            self._tolerate("FRAME-013", "a `final` frame had no text")
            kept["text"] = "".join(self._text)
        if raw is None or kept != value:
            raw = codec.encode(kept)
        body = frames.read_frame(raw)
        if isinstance(body, frames.Delta):
            self._text.append(body.text)
        self.ended = event == "final"
        mark = event == "tool_call" and value.get("executor") == "host"
        return RunFrame(_one_line(raw), event, mark)

    def _dialect(self, event: str, value: Object) -> list[RunFrame]:
        meaning = dialects.meaning_of(event, value)
        given = self._open_calls()
        if isinstance(meaning, End):
            return [*given, *self._end(meaning)]
        if isinstance(meaning, Piece) and meaning.text:
            given.append(self._delta(meaning.text))
        elif isinstance(meaning, Message):
            # Its pieces, if any were streamed, are what stands after the last message.
            if meaning.text and len(self._text) == self._message_at:
                given.append(self._delta(meaning.text))
            self._message_at = len(self._text)
        return given

    def _error(self, value: Object) -> list[RunFrame]:
        if "error_type" in value or "event" not in value:
            self._tolerate("FRAME-014", "a provider's error came in place of an `error` frame")
        return self._fail(dialects.failure_of(value))

    def _chunk(self, value: Object) -> list[RunFrame]:
        if self._chunks is None:
            self._chunks = ChunkReader()
        return [
            self._delta(piece) if isinstance(piece, str) else _tool_call(piece)
            for piece in self._chunks.read(value)
        ]

    # --- Making frames -----------------------------------------------------------------

    def _delta(self, text: str) -> RunFrame:
        self._text.append(text)
        return RunFrame(codec.encode(frames.Delta(text)), "delta")

    def _open_calls(self) -> list[RunFrame]:
        """Tool calls that came in fragments and cannot go on: something else has come."""
        return [] if self._chunks is None else [_tool_call(call) for call in self._chunks.flush()]

    def _end(self, end: End) -> list[RunFrame]:
        calls = self._open_calls()
        usage = end.usage
        if usage is None and self._chunks is not None:
            usage = self._chunks.usage
        # R-32 shows a cancelled run's frame without a usage; business code reads it elsewhere.
        if usage is None and not end.cancelled:
            usage = {}
        final = frames.Final(
            "".join(self._text) if end.text is None else end.text,
            UNSET if usage is None else usage,
            end.cancelled or UNSET,
        )
        self.ended = True
        return [*calls, RunFrame(codec.encode(final), "final")]

    def _fail(self, failure: RunFailure) -> list[RunFrame]:
        self.failure = failure
        self.ended = True
        return []

    def _tolerate(self, requirement: str, message: str) -> None:
        if requirement not in self._told:
            self._reader.tolerate(requirement, message)
            self._told.add(requirement)


def _tool_call(call: frames.ToolCall) -> RunFrame:
    return RunFrame(codec.encode(call), "tool_call")


def _one_line(raw: bytes) -> bytes:
    """The same JSON without newlines, which stand only between its tokens once it was decoded."""
    return raw.replace(b"\n", b" ") if _LF in raw else raw
