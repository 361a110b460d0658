"""A whole run as one answer, because `agent/session.run` is buffered (seed agent-sessions).

Owns the caps of a buffered run, its encoding, and the reading of both shapes that
its answer has (R-31). Frames are kept and passed on as the bytes they came as, so
that a run of thousands costs one pass and no re-encoding. This module does not know
what the frames say beyond their events, nor where they come from.
"""

from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from executa_protocol import codec
from executa_protocol.codes import AGENT_RUN_TOO_LARGE
from executa_protocol.errors import AgentError, DecodeFailure
from executa_protocol.frames import RunFrame, frame_event
from executa_protocol.limits import AGENT_MAX_FRAMES, HEAD_BYTES, KIB, MAX_LINE

RUN_ANSWER_CAP = MAX_LINE - HEAD_BYTES - KIB
"""Default cap of a run's encoded answer: the line cap less room for its envelope."""

# --- What a host buffers -------------------------------------------------------------


class RunBuffer:
    """The frames of one run until it ends, bounded in count and in bytes (R-31).

    `max_bytes` caps the encoded answer, not the line around it. `size` is the exact
    length of what `encode` would return now.
    """

    __slots__ = ("_final", "_frames", "_head", "max_bytes", "max_frames", "size")

    def __init__(
        self,
        run_id: str,
        *,
        max_frames: int = AGENT_MAX_FRAMES,
        max_bytes: int = RUN_ANSWER_CAP,
    ) -> None:
        self.max_frames = max_frames
        self.max_bytes = max_bytes
        self._frames: list[bytes] = []
        self._final: bytes | None = None
        self._head = b'{"run_id":' + codec.encode(run_id) + b',"frames":['
        self.size = len(self._head) + len(b"]}")

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, frame: RunFrame) -> None:
        """Keep `frame`. Raises `AgentError` (-32047) if it is one too many, and keeps it not.

        The error is terminal: the upstream stream is to be closed (R-31).
        """
        raw = frame.raw
        frames = self._frames
        size = self.size + len(raw) + (1 if frames else 0)
        final = frame.event == "final"
        if final:
            size += len(raw) - len(self._final) if self._final else len(raw) + len(b',"final":')
        if len(frames) >= self.max_frames or size > self.max_bytes:
            raise self._too_large(size)
        self.size = size
        frames.append(raw)
        if final:
            self._final = raw

    def encode(self, *, strict: bool = False) -> bytes:
        """The result of `agent/session.run`: an object, or the seed's bare array if `strict`."""
        if strict:
            return b"[" + b",".join(self._frames) + b"]"
        parts = [self._head, b",".join(self._frames), b"]"]
        if self._final is not None:
            parts += (b',"final":', self._final)
        parts.append(b"}")
        return b"".join(parts)

    def _too_large(self, size: int) -> AgentError:
        count = len(self._frames) + 1
        if count > self.max_frames:
            reason = f"frame {count:,} is over the cap of {self.max_frames:,} frames a run"
        else:
            reason = f"{size:,} bytes are over the cap of {self.max_bytes:,} for one answer"
        return AgentError(
            AGENT_RUN_TOO_LARGE,
            f"the run is too large: {reason}; shrink the run",
            {"errorCode": "AGENT_RUN_TOO_LARGE", "frames": count, "bytes": size},
        )


# --- What a plugin reads --------------------------------------------------------------


class RunAnswer(Struct, frozen=True):
    """The answer to `agent/session.run`, every event checked, the rest of each frame still raw.

    `run_id` is None where the seed's bare array has none, and `count` is the number of
    frames. `raw` is the answer in either shape; whatever else is asked for is read from it.
    Iterating decodes one frame at a time to the dict that business code reads.
    """

    run_id: str | None
    count: int
    raw: bytes

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for raw in self._raws():
            yield cast("dict[str, Any]", codec.decode_any(raw))

    @property
    def frames(self) -> list[dict[str, Any]]:
        """All frames, decoded."""
        found = codec.decode(self.raw, _PLAIN)
        return found.frames if isinstance(found, _Plain) else found

    @property
    def final(self) -> Raw | None:
        """The answer's `final`; None where the seed's bare array has none."""
        found = codec.decode(self.raw, _PARTS)
        if not isinstance(found, _Parts) or bytes(found.final) == _NULL:
            return None
        return found.final

    @property
    def final_frame(self) -> dict[str, Any] | None:
        """The final frame, decoded: the answer's `final`, else its last frame if that is one."""
        final = self.final
        if final is not None:
            return cast("dict[str, Any]", codec.decode_any(final))
        if self.count:
            last = self._raws()[-1]
            if frame_event(last) == "final":
                return cast("dict[str, Any]", codec.decode_any(last))
        return None

    def encode(self) -> bytes:
        """The answer again, its frames not re-encoded; a bare array stays one."""
        return self.raw

    def _raws(self) -> list[Raw]:
        found = codec.decode(self.raw, _SPLIT)
        return found.frames if isinstance(found, _Split) else found


class _DeltaTag(Struct, frozen=True, gc=False, tag_field="event", tag="delta"):
    pass


class _ToolCallTag(Struct, frozen=True, gc=False, tag_field="event", tag="tool_call"):
    pass


class _ToolResultTag(Struct, frozen=True, gc=False, tag_field="event", tag="tool_result"):
    pass


class _FinalTag(Struct, frozen=True, gc=False, tag_field="event", tag="final"):
    pass


_Tag = _DeltaTag | _ToolCallTag | _ToolResultTag | _FinalTag


class _Exact(Struct, frozen=True, forbid_unknown_fields=True):
    """The object as this project's hosts write it."""

    run_id: str
    frames: list[_Tag]
    final: _Tag | UnsetType = UNSET


class _Event(Struct, frozen=True, gc=False):
    event: str


class _Parts(Struct, frozen=True):
    frames: Raw
    run_id: str | None = None
    final: Raw = Raw(b"null")


class _Split(Struct, frozen=True):
    frames: list[Raw]


class _Plain(Struct, frozen=True):
    frames: list[dict[str, Any]]


_NULL: Final = b"null"
_LF: Final = 0x0A  # as a number: testing for one byte of bytes costs seven times as much
# Each of the two shapes: the array, or the object around it.
_EXACT = msgspec.json.Decoder(list[_Tag] | _Exact)
_PARTS = msgspec.json.Decoder(list[Raw] | _Parts)
_SPLIT = msgspec.json.Decoder(list[Raw] | _Split)
_PLAIN = msgspec.json.Decoder(list[dict[str, Any]] | _Plain)
_OBJECT = msgspec.json.Decoder(_Parts)  # names no array in what it says about a fault
_EVENTS = msgspec.json.Decoder(list[_Event])


def read_run_answer(raw: bytes | Raw) -> RunAnswer:
    """Read the result of `agent/session.run` in either shape (R-31): object or bare array.

    `raw` has passed `codec.check_content`. Raises `DecodeFailure`.
    """
    data = bytes(raw)
    try:
        # Tags are compared in place; only a run with an unknown event needs their strings.
        found = _EXACT.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _read_parts(data)
    if not isinstance(found, _Exact):
        return RunAnswer(None, len(found), data)
    if _LF in data or not isinstance(found.final, _FinalTag | UnsetType):
        return _read_parts(data)
    return RunAnswer(found.run_id, len(found.frames), data)


def _read_parts(data: bytes) -> RunAnswer:
    """An answer with an unknown event or member, or none; what is known of it written anew."""
    bare = data[:16].lstrip()[:1] == b"["
    parts = _Parts(Raw(data)) if bare else codec.decode(data, _OBJECT)
    final = bytes(parts.final)
    if final != _NULL and frame_event(final) != "final":
        msg = "final: expected a frame whose event is `final`"
        raise DecodeFailure(msg, path="final")
    count = _count_events(parts.frames)
    if parts.run_id is None and final == _NULL:
        return RunAnswer(None, count, bytes(parts.frames))
    written = [b"{"]
    if parts.run_id is not None:
        written += (b'"run_id":', codec.encode(parts.run_id), b",")
    written += (b'"frames":', bytes(parts.frames))
    if final != _NULL:
        written += (b',"final":', final)
    written.append(b"}")
    return RunAnswer(parts.run_id, count, b"".join(written))


def _count_events(frames: Raw) -> int:
    """Count the frames; raise `DecodeFailure` unless each is an object with a string event."""
    try:
        return len(codec.decode(frames, _EVENTS))
    except DecodeFailure:
        # An event may be there twice, the first time of a wrong type; the last one counts.
        plain = codec.encode(codec.decode_any(frames))
        return len(codec.decode(plain, _EVENTS))
