"""What the tests of run frames share: feeding a normaliser, and the seed's four frames."""

from typing import Any

import msgspec

from executa_protocol.frames import RunFrame
from executa_protocol.normaliser import FrameNormaliser

Object = dict[str, Any]


def encoded(frame: Any) -> bytes:
    """A frame as nexus sends it; bytes are sent as they are."""
    return frame if isinstance(frame, bytes) else msgspec.json.encode(frame)


def decoded(frames: list[RunFrame]) -> list[Object]:
    """The frames as the plugin reads them."""
    return [msgspec.json.decode(frame.raw) for frame in frames]


def fed(*frames: Any) -> tuple[FrameNormaliser, list[Object]]:
    """A normaliser that took these frames, and what it gave."""
    normaliser = FrameNormaliser()
    given = [frame for raw in frames for frame in normaliser.feed(encoded(raw))]
    return normaliser, decoded(given)


DELTA: Object = {"event": "delta", "text": "a"}
CALL: Object = {"event": "tool_call", "name": "p.t", "call_id": "c", "args": {"n": 1}}
RESULT: Object = {"event": "tool_result", "call_id": "c", "ok": True, "data": {"n": 2}}
FINAL: Object = {"event": "final", "text": "a", "usage": {"tokens": 1}}
