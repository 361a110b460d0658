"""The dialects of run frames: each is read as the seed's four, reported, and refused if strict."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_protocol.errors import DecodeFailure, StrictRefusal
from executa_protocol.frames import RunFrame
from executa_protocol.normaliser import FrameNormaliser
from executa_protocol.readings import STRICT
from tests.protocol.reading import Listening
from tests.protocol.run_frames import CALL, DELTA, FINAL, RESULT, Object, decoded, encoded, fed

CHUNK: Object = {"choices": [{"delta": {"content": "x"}}]}
TEXT: list[Object] = [{"event": "delta", "text": "x"}]
END: list[Object] = [{"event": "final", "text": "", "usage": {}}]
USED: list[Object] = [{"event": "final", "text": "", "usage": {"n": 1}}]
CANCELLED: list[Object] = [{"event": "final", "text": "", "cancelled": True}]
META: Object = {"event": "run_meta", "granted_tools": []}
PART: Object = {"type": "text", "text": "x"}
PING: Object = {"type": "ping", "n": 1}


def sse(payload: Any) -> Object:
    """A provider's payload as the field wraps it."""
    return {"event": "sse", "data": payload}


DIALECTS: list[tuple[str, Any, list[Object]]] = [
    ("FRAME-001", {"event": "token", "text": "x"}, TEXT),
    ("FRAME-001", {"event": "model_token", "text": "x"}, TEXT),
    ("FRAME-001", {"event": "token", "text": ""}, []),
    ("FRAME-002", {"event": "message", "role": "assistant", "content": "x"}, TEXT),
    ("FRAME-002", {"event": "message", "content": PART}, TEXT),
    ("FRAME-002", {"event": "message", "role": "user", "content": "x"}, []),
    ("FRAME-003", {"event": "complete", "text": "", "usage": {"n": 1}}, USED),
    ("FRAME-003", {"event": "complete"}, END),
    ("FRAME-003", {"event": "complete", "aborted": True}, CANCELLED),
    ("FRAME-003", {"event": "complete", "stopReason": "cancelled"}, CANCELLED),
    ("FRAME-003", {"event": "task_complete", "token_usage": {"n": 1}}, USED),
    ("FRAME-004", {"event": "queued"}, []),
    ("FRAME-004", {"event": "started"}, []),
    ("FRAME-004", {"event": "keepalive"}, []),
    ("FRAME-005", META, [META]),
    ("FRAME-006", {"event": "end"}, END),
    ("FRAME-006", b" [DONE]\n", END),
    ("FRAME-007", sse(CHUNK), TEXT),
    ("FRAME-007", sse(encoded(CHUNK).decode()), TEXT),
    ("FRAME-007", {"event": "sse", "payload": CHUNK}, TEXT),
    ("FRAME-007", {"event": "sse", **CHUNK}, TEXT),
    ("FRAME-007", sse("[DONE]"), END),
    ("FRAME-007", sse({"type": "task_complete", "token_usage": {"n": 1}, "model": "m"}), USED),
    ("FRAME-007", sse({"event": "task_cancelled", "reason": "user"}), CANCELLED),
    ("FRAME-007", sse(PING), [{"event": "ping", **PING}]),
    ("FRAME-008", CHUNK, TEXT),
    ("FRAME-009", {"event": "task_cancelled", "reason": "user"}, CANCELLED),
    ("FRAME-010", {**DELTA, "seq": 3, "stream_id": "s"}, [DELTA]),
    ("FRAME-012", {"stream_id": "s", "seq": 1, "payload": DELTA, "done": False}, [DELTA]),
    ("FRAME-012", {"seq": 2, "payload": None, "done": True}, END),
    ("FRAME-013", {"event": "final"}, [{"event": "final", "text": ""}]),
    ("FRAME-014", {"error": "e", "error_type": "t"}, []),
]


@pytest.mark.parametrize(("requirement", "frame", "expected"), DIALECTS)
def test_each_dialect_is_read_as_the_seeds_frames_and_reported(
    requirement: str, frame: Any, expected: list[Object]
) -> None:
    reader = Listening()
    assert decoded(FrameNormaliser(reader).feed(encoded(frame))) == expected
    assert requirement in reader.ids


@pytest.mark.parametrize(("requirement", "frame", "expected"), DIALECTS)
def test_strict_mode_refuses_each_dialect_by_its_requirement(
    requirement: str, frame: Any, expected: list[Object]
) -> None:
    normaliser = FrameNormaliser(STRICT)
    with pytest.raises(StrictRefusal) as caught:
        normaliser.feed(encoded(frame))
    assert caught.value.requirement == requirement
    assert not normaliser.ended
    assert decoded(normaliser.feed(encoded(DELTA))) == [DELTA]
    assert expected is not None


def test_a_departure_is_reported_once_a_run() -> None:
    reader = Listening()
    normaliser = FrameNormaliser(reader)
    for _ in range(3):
        normaliser.feed(encoded({"event": "token", "text": "x"}))
    assert reader.ids == ["FRAME-001"]


def test_the_streams_own_name_of_the_event_counts_where_the_frame_has_none() -> None:
    reader = Listening()
    normaliser = FrameNormaliser(reader)
    assert decoded(normaliser.feed(b'{"text":"a"}', "delta")) == [DELTA]
    assert decoded(normaliser.feed(encoded(DELTA), "token")) == [DELTA]
    assert reader.ids == ["FRAME-011"]
    with pytest.raises(DecodeFailure):
        normaliser.feed(b'{"text":"a"}', "message")


def test_a_message_whose_pieces_were_streamed_is_not_given_again() -> None:
    message = {"event": "message", "content": "a"}
    _, frames = fed(DELTA, message, message, {"done": True})
    assert frames == [DELTA, DELTA, {"event": "final", "text": "aa", "usage": {}}]


def test_an_empty_message_gives_nothing() -> None:
    assert fed({"event": "message", "text": ""})[1] == []


# --- A provider's tool calls ----------------------------------------------------------


def fragment(index: int, arguments: str, **members: Any) -> Object:
    """A chunk with a fragment of one tool call."""
    call = {"index": index, "function": {"arguments": arguments, **members.pop("function", {})}}
    return {"choices": [{"delta": {"tool_calls": [{**call, **members}]}}]}


FRAGMENTS = [
    fragment(0, "", id="c1", function={"name": "p.t"}),
    fragment(0, '{"n"'),
    fragment(0, ":1}"),
]
WHOLE = {"event": "tool_call", "name": "p.t", "call_id": "c1", "args": {"n": 1}}
FINISH: Object = {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}


def test_a_tool_call_is_given_when_a_finish_reason_completes_it() -> None:
    assert fed(*FRAGMENTS)[1] == []
    assert fed(*FRAGMENTS, FINISH)[1] == [WHOLE]


@pytest.mark.parametrize(
    "other", [DELTA, {**DELTA, "seq": 1}, {"event": "x"}, {"event": "token", "text": "a"}]
)
def test_a_tool_call_is_given_before_any_other_frame(other: Object) -> None:
    frames = fed(*FRAGMENTS, other)[1]
    assert frames[0] == WHOLE
    assert len(frames) == 2


def test_a_provider_that_stops_after_its_finish_reason_has_ended_the_run() -> None:
    usage: Object = {"choices": [], "usage": {"total_tokens": 3}}
    normaliser, _ = fed(CHUNK, {"choices": [{"delta": None, "finish_reason": "stop"}]}, usage)
    assert decoded(normaliser.close()) == [
        {"event": "final", "text": "x", "usage": {"total_tokens": 3}}
    ]


def test_a_tool_call_that_was_cut_off_is_left_out() -> None:
    normaliser, frames = fed(*FRAGMENTS[:2], DELTA)
    assert frames == [DELTA]
    assert decoded(normaliser.close()) == []
    assert normaliser.failure is not None


# --- Any mixture of them ---

PIECES: list[Any] = [
    *(DELTA, CALL, RESULT, FINAL, *FRAGMENTS, FINISH),
    *(frame for _, frame, _ in DIALECTS),
]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=20)), max_size=30))
def test_whatever_comes_a_run_has_at_most_one_final_frame_and_it_is_the_last(
    stream: list[Any],
) -> None:
    normaliser = FrameNormaliser()
    given_frames: list[RunFrame] = []
    for raw in stream:
        try:
            given_frames += normaliser.feed(encoded(raw))
        except DecodeFailure:
            continue
    given_frames += normaliser.close()
    events = [frame.event for frame in given_frames]
    assert normaliser.ended
    assert events.count("final") == (normaliser.failure is None)
    assert "final" not in events[:-1]
    for frame in given_frames:
        assert b"\n" not in frame.raw
        assert msgspec.json.decode(frame.raw)["event"] == frame.event
