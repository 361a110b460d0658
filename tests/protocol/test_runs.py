"""A whole run as one answer: the caps of the buffer, and both shapes of the answer."""

import contextlib
import json
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from executa_protocol.errors import AgentError, DecodeFailure, SamplingError
from executa_protocol.frames import RunFrame
from executa_protocol.limits import AGENT_MAX_FRAMES, MAX_LINE
from executa_protocol.runs import RUN_ANSWER_CAP, RunBuffer, read_run_answer

DELTA = RunFrame(b'{"event":"delta","text":"a"}', "delta")
FINAL = RunFrame(b'{"event":"final","text":"a","usage":{}}', "final")


def filled(*frames: RunFrame, **caps: int) -> RunBuffer:
    """A buffer that took these frames."""
    buffer = RunBuffer("r1", **caps)
    for frame in frames:
        buffer.add(frame)
    return buffer


# --- The buffer ----------------------------------------------------------------------


def test_the_answer_carries_the_run_id_the_frames_and_the_final_frame() -> None:
    answer = filled(DELTA, FINAL).encode()
    assert answer == (
        b'{"run_id":"r1","frames":['
        + DELTA.raw
        + b","
        + FINAL.raw
        + b'],"final":'
        + FINAL.raw
        + b"}"
    )


def test_strict_mode_answers_the_seeds_bare_array() -> None:
    assert filled(DELTA, FINAL).encode(strict=True) == b"[" + DELTA.raw + b"," + FINAL.raw + b"]"


def test_an_answer_without_a_final_frame_has_no_final() -> None:
    assert msgspec.json.decode(filled(DELTA).encode()) == {
        "run_id": "r1",
        "frames": [{"event": "delta", "text": "a"}],
    }
    assert filled().encode(strict=True) == b"[]"


def test_the_last_final_frame_is_the_one_that_counts() -> None:
    other = RunFrame(b'{"event":"final","text":"longer"}', "final")
    buffer = filled(FINAL, other)
    assert msgspec.json.decode(buffer.encode())["final"]["text"] == "longer"
    assert buffer.size == len(buffer.encode())


@given(st.lists(st.sampled_from([DELTA, FINAL, RunFrame(b'{"event":"x"}', "x")])), st.text())
def test_the_size_is_that_of_the_encoded_answer(frames: list[RunFrame], run_id: str) -> None:
    buffer = RunBuffer(run_id)
    for frame in frames:
        buffer.add(frame)
        assert buffer.size == len(buffer.encode())
    assert len(buffer) == len(frames)


def test_as_many_frames_as_the_seed_allows_are_kept_and_one_more_is_too_many() -> None:
    buffer = filled(*[DELTA] * AGENT_MAX_FRAMES)
    with pytest.raises(AgentError) as caught:
        buffer.add(FINAL)
    assert caught.value.code == -32047
    assert caught.value.symbol == "AGENT_RUN_TOO_LARGE"
    assert caught.value.data["frames"] == AGENT_MAX_FRAMES + 1
    assert len(buffer) == AGENT_MAX_FRAMES


def test_an_answer_may_fill_its_cap_and_not_one_byte_more() -> None:
    size = filled(DELTA, FINAL).size
    assert len(filled(DELTA, FINAL, max_bytes=size).encode()) == size
    with pytest.raises(AgentError, match="bytes are over the cap"):
        filled(DELTA, FINAL, max_bytes=size - 1)


def test_a_run_that_is_too_large_is_caught_as_a_sampling_error() -> None:
    with pytest.raises(SamplingError):
        filled(DELTA, max_bytes=1)


def test_the_default_cap_leaves_room_for_the_envelope() -> None:
    longest_id = 2048
    assert len('{"jsonrpc":"2.0","id":,"result":}') + longest_id + RUN_ANSWER_CAP <= MAX_LINE


# --- Reading the answer ---------------------------------------------------------------


def answer_of(value: Any) -> bytes:
    """The JSON of an answer."""
    return msgspec.json.encode(value)


FRAMES: list[dict[str, Any]] = [
    {"event": "delta", "text": "a"},
    {"event": "final", "text": "a", "usage": {}},
]


def test_the_object_is_read() -> None:
    answer = read_run_answer(answer_of({"run_id": "r", "frames": FRAMES, "final": FRAMES[1]}))
    assert (answer.run_id, answer.count, answer.frames) == ("r", 2, FRAMES)
    assert list(answer) == FRAMES
    assert answer.final_frame == FRAMES[1]


@pytest.mark.parametrize("raw", [answer_of(FRAMES), b" \n" + answer_of(FRAMES)])
def test_the_seeds_bare_array_is_read(raw: bytes) -> None:
    for form in (raw, Raw(raw)):
        answer = read_run_answer(form)
        assert (answer.run_id, answer.count, answer.frames) == (None, 2, FRAMES)
        assert answer.final is None
        assert answer.final_frame == FRAMES[1]


def test_an_answer_without_a_final_frame_says_so() -> None:
    assert read_run_answer(answer_of(FRAMES[:1])).final_frame is None
    assert read_run_answer(b"[]").final_frame is None
    assert read_run_answer(b'{"frames":[],"final":null}').final is None


def test_unknown_events_and_members_are_kept() -> None:
    frames: list[Any] = [{"event": "thinking", "n": 1}, *FRAMES]
    answer = read_run_answer(answer_of({"frames": frames, "stream_id": "s", "run_id": None}))
    assert answer.frames == frames
    assert answer.run_id is None


@pytest.mark.parametrize(
    "value",
    [
        FRAMES,
        {"run_id": "r", "frames": FRAMES, "final": FRAMES[1]},
        {"run_id": "r", "frames": []},
        {"frames": FRAMES, "final": FRAMES[1]},
    ],
)
def test_an_answer_is_encoded_again_byte_for_byte(value: Any) -> None:
    raw = answer_of(value)
    assert read_run_answer(raw).encode() == raw


@pytest.mark.parametrize(
    ("raw", "encoded"),
    [
        (b'{"frames":[],"run_id":"r"}', b'{"frames":[],"run_id":"r"}'),
        (b'{ "run_id": "r", "frames": [] }', b'{ "run_id": "r", "frames": [] }'),
        (b'{\n"run_id":"r",\n"frames":[]\n}', b'{"run_id":"r","frames":[]}'),
        (b'{"run_id":"r","frames":[],"stream_id":"s"}', b'{"run_id":"r","frames":[]}'),
        (b'{"run_id":"r","frames":[],"final":null}', b'{"run_id":"r","frames":[]}'),
        (b'{"run_id":null,"frames":[]}', b"[]"),
        (
            b'{"run_id":"r","frames":[],"final":{"event":"delta","event":"final"}}',
            b'{"run_id":"r","frames":[],"final":{"event":"delta","event":"final"}}',
        ),
    ],
)
def test_an_answer_of_known_members_alone_is_passed_on_and_another_is_written_anew(
    raw: bytes, encoded: bytes
) -> None:
    assert read_run_answer(raw).encode() == encoded


events = st.sampled_from(["delta", "tool_call", "tool_result", "final", "final", "thinking", ""])
odd_members_of_frames = st.tuples(st.sampled_from(["event", "text"]), events | st.none())
odd_frames = st.lists(
    st.tuples(events, st.lists(odd_members_of_frames, max_size=2)).map(
        lambda parts: [*parts[1][:1], ("event", parts[0]), *parts[1][1:]]
    ),
    max_size=3,
)
odd_members = st.one_of(
    st.tuples(st.just("frames"), odd_frames),
    st.tuples(st.just("final"), odd_frames.map(lambda frames: frames[0] if frames else None)),
    st.tuples(st.just("run_id"), st.none() | st.text(max_size=3)),
    st.tuples(st.just("stream_id"), events),
)
odd_answers = odd_frames | st.lists(odd_members, min_size=1, max_size=4)


def spelled(value: Any, space: str) -> str:
    """JSON of `value`, where lists of pairs are objects, with `space` between its tokens."""
    if not isinstance(value, list):
        return json.dumps(value)
    items = cast("list[Any]", value)
    if not items or not isinstance(items[0], tuple):
        return "[" + f"{space},".join(spelled(item, space) for item in items) + "]"
    pairs = [f"{json.dumps(key)}{space}:{spelled(item, space)}" for key, item in items]
    return "{" + space + f",{space}".join(pairs) + space + "}"


def read_plainly(raw: str | bytes) -> dict[str, Any] | None:
    """What an answer says, or None for what is none."""
    value: Any = json.loads(raw)
    members: dict[str, Any] = {"frames": value} if isinstance(value, list) else value
    known = {name: members.get(name) for name in ("run_id", "frames", "final")}
    if known["frames"] is None:
        return None
    final = [] if known["final"] is None else [known["final"]]
    right = all(isinstance(frame["event"], str) for frame in [*known["frames"], *final])
    return known if right and all(frame["event"] == "final" for frame in final) else None


@given(odd_answers, st.sampled_from(["", " ", "\n"]))
def test_an_answer_is_read_and_passed_on_as_a_plain_reader_reads_it(
    value: list[Any], space: str
) -> None:
    text = spelled(value, space)
    known = read_plainly(text)
    if known is None:
        with pytest.raises(DecodeFailure):
            read_run_answer(text.encode())
        return
    final, frames = known["final"], known["frames"]
    if final is None and frames and frames[-1]["event"] == "final":
        final = frames[-1]
    answer = read_run_answer(text.encode())
    for found in (answer, read_run_answer(answer.encode())):
        assert (found.run_id, found.count) == (known["run_id"], len(frames))
        assert found.frames == list(found) == frames
        assert found.final_frame == final
    assert read_plainly(answer.encode()) == known


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b'[{"text":"a"}]', "[0]"),
        (b'[{"event":"delta"},{"event":5}]', "[1].event"),
        (b'{"frames":[1]}', "[0]"),
        (b'{"frames":{}}', ""),
        (b'{"run_id":"r"}', ""),
        (b'{"frames":[],"final":{"event":"delta"}}', "final"),
        (b'{"frames":[],"final":5}', ""),
        (b"5", ""),
        (b"", ""),
        (b"[", ""),
    ],
)
def test_what_is_no_answer_is_refused_with_the_path_of_the_fault(raw: bytes, path: str) -> None:
    with pytest.raises(DecodeFailure) as caught:
        read_run_answer(raw)
    assert caught.value.path == path


@given(st.binary())
def test_arbitrary_bytes_raise_nothing_but_a_decode_failure(raw: bytes) -> None:
    for form in (raw, b"[" + raw + b"]", b'{"frames":[' + raw + b"]}"):
        with contextlib.suppress(DecodeFailure):
            read_run_answer(form)


@given(st.lists(st.sampled_from([DELTA, RunFrame(b'{"event":"x","n":[1,2]}', "x")])))
def test_what_the_buffer_writes_the_reader_reads(frames: list[RunFrame]) -> None:
    buffer = filled(*frames, FINAL)
    for strict in (False, True):
        answer = read_run_answer(buffer.encode(strict=strict))
        assert answer.count == len(frames) + 1
        assert answer.final_frame == msgspec.json.decode(FINAL.raw)
