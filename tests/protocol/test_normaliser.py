"""The frames of one run, from nexus's spelling to the plugin's."""

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_protocol.dialects import RunFailure
from executa_protocol.errors import DecodeFailure, StrictRefusal
from executa_protocol.frames import Final, RunFrame, ToolCall
from executa_protocol.limits import MAX_DEPTH
from executa_protocol.normaliser import FrameNormaliser
from executa_protocol.readings import STRICT
from tests.protocol.reading import Listening

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


DELTA = {"event": "delta", "text": "a"}
CALL = {"event": "tool_call", "name": "p.t", "call_id": "c", "args": {"n": 1}}
RESULT = {"event": "tool_result", "call_id": "c", "ok": True, "data": {"n": 2}}
FINAL = {"event": "final", "text": "a", "usage": {"tokens": 1}}


# --- What passes ----------------------------------------------------------------------


def test_the_seeds_frames_pass_as_their_own_bytes() -> None:
    normaliser = FrameNormaliser(STRICT)
    for frame in (DELTA, CALL, RESULT, FINAL):
        raw = b" " + encoded(frame) + b"\t"
        (given,) = normaliser.feed(raw)
        assert given.raw is raw
        assert given.event == frame["event"]
    assert normaliser.ended
    assert normaliser.failure is None


def test_unknown_members_of_the_four_pass_unchanged() -> None:
    raw = b'{"event":"delta","text":"a", "mood":"good"}'
    assert FrameNormaliser(STRICT).feed(raw)[0].raw == raw


def test_unknown_events_pass_unchanged_in_either_mode() -> None:
    raw = b'{"event":"thinking",  "seq":4, "done":false}'
    for normaliser in (FrameNormaliser(), FrameNormaliser(STRICT)):
        assert normaliser.feed(raw) == [RunFrame(raw, "thinking")]


def test_newlines_between_tokens_become_spaces_because_they_would_split_the_line() -> None:
    for frame in (DELTA, {"event": "x"}, {**DELTA, "mood": 1}):
        raw = msgspec.json.format(encoded(frame), indent=2)
        (given,) = FrameNormaliser().feed(raw)
        assert b"\n" not in given.raw
        assert msgspec.json.decode(given.raw) == frame


def test_a_newline_within_a_string_is_no_json() -> None:
    with pytest.raises(DecodeFailure):
        FrameNormaliser().feed(b'{"event":"delta","text":"a\nb"}')


def test_the_hosts_mark_is_taken_off_and_noted() -> None:
    normaliser = FrameNormaliser(STRICT)
    marked, unmarked = (
        normaliser.feed(encoded({**CALL, **extra}))[0]
        for extra in ({"executor": "host"}, {"executor": "nexus"})
    )
    assert marked.host_executes
    assert not unmarked.host_executes
    assert msgspec.json.decode(marked.raw) == CALL == msgspec.json.decode(unmarked.raw)
    assert marked.read() == ToolCall("p.t", "c", {"n": 1})


def test_only_a_tool_call_is_for_the_host() -> None:
    (frame,) = FrameNormaliser().feed(encoded({**RESULT, "executor": "host"}))
    assert not frame.host_executes


# --- The end --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "end",
    [{"done": True}, {"event": "end", "run_id": "r", "done": True}, {"event": "done"}, b"[DONE]"],
)
def test_an_end_without_a_final_frame_gets_one_made_from_the_text(end: Any) -> None:
    normaliser, frames = fed(DELTA, {"event": "delta", "text": "b"}, end)
    assert frames[-1] == {"event": "final", "text": "ab", "usage": {}}
    assert normaliser.ended


def test_done_on_the_last_frame_ends_the_stream_and_is_taken_off() -> None:
    _, frames = fed({**DELTA, "done": True})
    assert frames == [DELTA, {"event": "final", "text": "a", "usage": {}}]
    _, frames = fed({**FINAL, "done": True})
    assert frames == [FINAL]


def test_there_is_exactly_one_final_frame_and_what_follows_it_is_counted() -> None:
    normaliser, frames = fed(DELTA, FINAL, {"event": "end"}, DELTA, b"not json")
    assert frames == [DELTA, FINAL]
    assert normaliser.late == 3
    assert normaliser.cancel() == normaliser.close() == []


def test_a_cancelled_run_ends_with_the_text_so_far() -> None:
    normaliser, _ = fed(DELTA)
    (frame,) = normaliser.cancel()
    assert frame.read() == Final("a", cancelled=True)
    assert normaliser.ended


def test_a_stream_that_stops_without_a_final_frame_is_a_failure() -> None:
    normaliser, _ = fed(DELTA)
    assert normaliser.close() == []
    assert normaliser.failure == RunFailure("", "the stream ended before the run's final frame")


@pytest.mark.parametrize(
    ("frame", "failure"),
    [
        ({"event": "error", "code": "rate", "message": "slow"}, RunFailure("rate", "slow")),
        ({"event": "error", "code": 7}, RunFailure(7, "nexus gave no reason")),
        ({"event": "error", "error": "broken"}, RunFailure("", "broken")),
        ({"event": "error", "error": {"code": "c", "message": "m"}}, RunFailure("c", "m")),
        (
            {"event": "error", "error": "e", "error_type": "quota_exhausted"},
            RunFailure("quota_exhausted", "e"),
        ),
        ({"error": "e", "error_type": "empty_completion"}, RunFailure("empty_completion", "e")),
        ({"error": {"message": "m"}}, RunFailure("", "m")),
        ({"event": "error", "code": [1]}, RunFailure("", "nexus gave no reason")),
    ],
)
def test_an_error_ends_the_run_as_a_failure_and_is_no_frame(
    frame: Any, failure: RunFailure
) -> None:
    normaliser, frames = fed(DELTA, frame)
    assert frames == [DELTA]
    assert normaliser.ended
    assert normaliser.failure == failure


def test_a_final_frame_without_text_gets_the_text_of_the_deltas() -> None:
    _, frames = fed(DELTA, {"event": "final", "usage": {"n": 1}})
    assert frames[-1] == {"event": "final", "usage": {"n": 1}, "text": "a"}


# --- The dialects ---------------------------------------------------------------------

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


# --- Bad input ------------------------------------------------------------------------


def wrapped(times: int) -> Object:
    """A delta inside that many stream records."""
    frame: Object = DELTA
    for _ in range(times):
        frame = {"payload": frame}
    return frame


def test_a_frame_may_be_wrapped_four_times_and_no_more() -> None:
    assert fed(wrapped(4))[1] == [DELTA]
    with pytest.raises(DecodeFailure):
        fed(wrapped(5))


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"{",
        b"[]",
        b'"delta"',
        b"null",
        {},
        {"text": "a"},
        {"done": False},
        {"event": None},
        {"event": 5},
        {"event": ["delta"]},
        {"event": "delta"},
        {"event": "delta", "text": 5},
        {"event": "tool_call", "name": "a"},
        {"event": "token"},
        {"event": "message", "content": 5},
        {"event": "sse", "data": "not json"},
        {"event": "sse", "data": 5},
        {"event": "sse", "data": "[" * 500},
        {"payload": 5},
        {"choices": 5},
        {"choices": [5]},
        {"choices": [{"delta": 5}]},
        {"choices": [{"delta": {"content": 5}}]},
        {"choices": [{"delta": {"tool_calls": 5}}]},
        b'{"event":"delta","text":"\xff"}',
        b'{"event":"x","text":"\xff"}',
        b'{"event":"delta","text":"\\ud800"}',
        b'{"event":"x","n":1e999}',
        b'{"event":"x","n":NaN}',
        b'{"event":"x","n":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
        b'{"event":"x","n":' + b"[" * 100_000,
    ],
)
def test_what_is_no_frame_is_refused_and_the_run_goes_on(frame: Any) -> None:
    normaliser = FrameNormaliser()
    with pytest.raises(DecodeFailure):
        normaliser.feed(encoded(frame))
    assert not normaliser.ended
    assert decoded(normaliser.feed(encoded(DELTA))) == [DELTA]


def test_a_large_integer_stays_exact_when_a_frame_is_rewritten() -> None:
    number = 2**70
    _, frames = fed({**RESULT, "data": number, "seq": 1})
    assert frames == [{**RESULT, "data": number}]


PIECES: list[Any] = [DELTA, CALL, RESULT, FINAL, *FRAGMENTS, FINISH]
PIECES += [frame for _, frame, _ in DIALECTS]


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


@given(st.binary())
def test_arbitrary_bytes_raise_nothing_but_a_decode_failure(raw: bytes) -> None:
    for form in (raw, b'{"event":"sse","data":' + raw + b"}", b'{"choices":' + raw + b"}"):
        with contextlib.suppress(DecodeFailure):
            FrameNormaliser().feed(form)
