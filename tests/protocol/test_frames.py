"""One run frame: the seed's four shapes, and reading one at a time."""

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from executa_protocol import frames
from executa_protocol.errors import DecodeFailure, NotEncodable
from executa_protocol.frames import Delta, Final, Frame, HostToolCall, ToolCall, ToolResult
from executa_protocol.limits import MAX_DEPTH

FOUR: list[tuple[Frame, bytes]] = [
    (Delta("hi"), b'{"event":"delta","text":"hi"}'),
    (
        ToolCall("web.search", "c1", {"q": "x"}),
        b'{"event":"tool_call","name":"web.search","call_id":"c1","args":{"q":"x"}}',
    ),
    (
        ToolResult("c1", ok=True, data={"n": 1}),
        b'{"event":"tool_result","call_id":"c1","ok":true,"data":{"n":1}}',
    ),
    (Final("hi", {"tokens": 2}), b'{"event":"final","text":"hi","usage":{"tokens":2}}'),
]


@pytest.mark.parametrize(("frame", "raw"), FOUR)
def test_each_of_the_four_is_written_as_the_seed_shows_it(frame: Frame, raw: bytes) -> None:
    assert frames.encode_frame(frame) == raw


@pytest.mark.parametrize(("frame", "raw"), FOUR)
def test_each_of_the_four_is_read_back_equal(frame: Frame, raw: bytes) -> None:
    assert frames.read_frame(raw) == frame
    assert frames.read_frame(Raw(raw)) == frame
    assert frame.event == frames.frame_event(raw)


def test_a_cancelled_final_frame_has_the_form_of_the_ruling() -> None:
    raw = frames.encode_frame(Final("so far", cancelled=True))
    assert raw == b'{"event":"final","text":"so far","cancelled":true}'


def test_the_mark_for_the_host_stands_beside_the_call() -> None:
    raw = frames.encode_frame(HostToolCall("a.b", "c1"))
    assert msgspec.json.decode(raw)["executor"] == "host"


def test_members_that_the_seed_does_not_name_are_ignored() -> None:
    assert frames.read_frame(b'{"event":"delta","text":"a","new":[1]}') == Delta("a")


def test_an_event_of_another_name_is_none_of_the_four() -> None:
    assert frames.read_frame(b'{"event":"thinking","text":"a"}') is None


def test_the_last_of_two_events_counts() -> None:
    assert frames.read_frame(b'{"event":"x","event":"delta","text":"a"}') == Delta("a")
    assert frames.read_frame(b'{"event":"final","event":"delta","text":"a"}') == Delta("a")
    assert frames.read_frame(b'{"event":"delta","event":"x","text":"a"}') is None


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b'{"event":"delta"}', ""),
        (b'{"event":"delta","text":5}', "text"),
        (b'{"event":"tool_result","call_id":"c","ok":"yes"}', "ok"),
        (b'{"text":"a"}', ""),
        (b'{"event":7}', "event"),
        (b"[]", ""),
        (b"{", ""),
        (b"", ""),
        (b'{"event":"delta","text":"\xff"}', ""),
    ],
)
def test_what_is_no_frame_is_refused_with_the_path_of_the_fault(raw: bytes, path: str) -> None:
    with pytest.raises(DecodeFailure) as caught:
        frames.read_frame(raw)
    assert caught.value.path == path


def test_a_value_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(NotEncodable):
        frames.encode_frame(ToolResult("c", ok=True, data=float("nan")))


def nested(levels: int) -> bytes:
    """A frame of that many levels, its own object among them."""
    inner = levels - 1
    return b'{"event":"x","a":' + b"[" * inner + b"]" * inner + b"}"


def test_a_frame_may_nest_as_deep_as_its_line_leaves_room_for_and_no_deeper() -> None:
    frames.check_depth(nested(MAX_DEPTH - 3))
    with pytest.raises(DecodeFailure):
        frames.check_depth(nested(MAX_DEPTH - 2))


def test_brackets_in_text_are_not_levels() -> None:
    frames.check_depth(b'{"event":"delta","text":"' + b"[" * 500 + b'"}')


json_values: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.text(), json_values)
def test_any_content_survives_writing_and_reading(text: str, data: Any) -> None:
    for frame in (
        Delta(text),
        ToolCall(text, text, {text: data}),
        ToolResult(text, ok=False, data=data),
    ):
        assert frames.read_frame(frames.encode_frame(frame)) == frame


@given(st.binary())
def test_arbitrary_bytes_raise_nothing_but_a_decode_failure(raw: bytes) -> None:
    with contextlib.suppress(DecodeFailure):
        frames.read_frame(raw)
