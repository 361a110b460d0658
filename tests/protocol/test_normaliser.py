"""The frames of one run: what passes, how a run ends, and what is refused."""

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_protocol.dialects import RunFailure
from executa_protocol.errors import DecodeFailure
from executa_protocol.frames import Final, RunFrame, ToolCall
from executa_protocol.limits import MAX_DEPTH
from executa_protocol.normaliser import FrameNormaliser
from executa_protocol.readings import STRICT
from tests.protocol.run_frames import CALL, DELTA, FINAL, RESULT, Object, decoded, encoded, fed

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


@given(st.binary())
def test_arbitrary_bytes_raise_nothing_but_a_decode_failure(raw: bytes) -> None:
    for form in (raw, b'{"event":"sse","data":' + raw + b"}", b'{"choices":' + raw + b"}"):
        with contextlib.suppress(DecodeFailure):
            FrameNormaliser().feed(form)
