"""A whole run as one answer, because `agent/session.run` is buffered (seed agent-sessions).

Owns the caps of a buffered run, its encoding, and the reading of both shapes that
its answer has (R-31). Frames are kept and passed on as the bytes they came as, so
that a run of thousands costs one pass and no re-encoding. This module does not know
what the frames say beyond their events, nor where they come from.
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

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

    `run_id` and `final` are None where the seed's bare array has none. `count` is the
    number of frames. Iterating decodes one frame at a time to the dict that business
    code reads.
    """

    run_id: str | None
    raw_frames: Raw
    final: Raw | None
    count: int

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for raw in codec.decode(self.raw_frames, _RAWS):
            yield cast("dict[str, Any]", codec.decode_any(raw))

    @property
    def frames(self) -> list[dict[str, Any]]:
        """All frames, decoded."""
        return cast("list[dict[str, Any]]", codec.decode_any(self.raw_frames))

    @property
    def final_frame(self) -> dict[str, Any] | None:
        """The final frame, decoded: the answer's `final`, else its last frame if that is one."""
        if self.final is not None:
            return cast("dict[str, Any]", codec.decode_any(self.final))
        if self.count:
            last = codec.decode(self.raw_frames, _RAWS)[-1]
            if frame_event(last) == "final":
                return cast("dict[str, Any]", codec.decode_any(last))
        return None

    def encode(self) -> bytes:
        """The answer again, its frames copied and not re-encoded; a bare array stays one."""
        if self.run_id is None and self.final is None:
            return bytes(self.raw_frames)
        parts = [b"{"]
        if self.run_id is not None:
            parts += (b'"run_id":', codec.encode(self.run_id), b",")
        parts += (b'"frames":', self.raw_frames)
        if self.final is not None:
            parts += (b',"final":', self.final)
        parts.append(b"}")
        return b"".join(parts)


class _Event(Struct, frozen=True, gc=False):
    event: str


class _Answer(Struct, frozen=True):
    frames: Raw
    run_id: str | None = None
    final: Raw = Raw(b"null")


class _DeltaTag(Struct, frozen=True, gc=False, tag_field="event", tag="delta"):
    pass


class _ToolCallTag(Struct, frozen=True, gc=False, tag_field="event", tag="tool_call"):
    pass


class _ToolResultTag(Struct, frozen=True, gc=False, tag_field="event", tag="tool_result"):
    pass


class _FinalTag(Struct, frozen=True, gc=False, tag_field="event", tag="final"):
    pass


_ANSWER = msgspec.json.Decoder(_Answer)
_RAWS = msgspec.json.Decoder(list[Raw])
_EVENTS = msgspec.json.Decoder(list[_Event])
_TAGS = msgspec.json.Decoder(list[_DeltaTag | _ToolCallTag | _ToolResultTag | _FinalTag])


def read_run_answer(raw: bytes | Raw) -> RunAnswer:
    """Read the result of `agent/session.run` in either shape (R-31): object or bare array.

    `raw` has passed `codec.check_content`. Raises `DecodeFailure`.
    """
    data = memoryview(raw)
    if bytes(data[:16]).lstrip()[:1] == b"[":
        frames = raw if isinstance(raw, Raw) else Raw(raw)
        return RunAnswer(None, frames, None, _check_events(frames))
    answer = codec.decode(raw, _ANSWER)
    final: Raw | None = answer.final
    if bytes(memoryview(answer.final)) == b"null":
        final = None
    elif frame_event(answer.final) != "final":
        msg = "final: expected a frame whose event is `final`"
        raise DecodeFailure(msg, path="final")
    return RunAnswer(answer.run_id, answer.frames, final, _check_events(answer.frames))


def _check_events(frames: Raw) -> int:
    """Count the frames; raise `DecodeFailure` unless each is an object with a string event."""
    try:
        # Tags are compared in place; only a run with an unknown event needs their strings.
        return len(_TAGS.decode(frames))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return len(codec.decode(frames, _EVENTS))
    except DecodeFailure:
        # An event may be there twice, the first time of a wrong type; the last one counts.
        plain = codec.encode(codec.decode_any(frames))
        return len(codec.decode(plain, _EVENTS))
