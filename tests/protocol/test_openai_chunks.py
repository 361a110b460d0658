"""A provider's chunks: text, tool calls in fragments, and what they may cost."""

from typing import Any

import pytest

from executa_protocol.errors import DecodeFailure
from executa_protocol.frames import ToolCall
from executa_protocol.openai_chunks import ChunkReader, text_of


def chunk(finish: str | None = None, **message: Any) -> dict[str, Any]:
    """A chunk with this delta."""
    return {"choices": [{"delta": message, "finish_reason": finish}]}


def call(arguments: Any = "", index: Any = 0, **members: Any) -> dict[str, Any]:
    """A fragment of a tool call."""
    function = {"arguments": arguments, "name": members.pop("name", None)}
    return {"index": index, "function": function, **members}


def test_text_is_given_as_it_comes_and_empty_text_is_not() -> None:
    reader = ChunkReader()
    assert reader.read(chunk(role="assistant", content="")) == []
    assert reader.read(chunk(content="a")) == ["a"]
    assert reader.read(chunk(content=None)) == []


def test_a_whole_message_is_read_like_a_chunk() -> None:
    message = {"content": "a", "tool_calls": [call({"n": 1}, id="c", name="t")]}
    answer = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    assert ChunkReader().read(answer) == ["a", ToolCall("t", "c", {"n": 1})]


def test_parallel_calls_are_kept_apart_by_their_index_and_given_in_its_order() -> None:
    reader = ChunkReader()
    reader.read(chunk(tool_calls=[call('{"n":', 1, id="b", name="y")]))
    reader.read(chunk(tool_calls=[call("{}", 0, id="a", name="x"), call("2}", 1)]))
    assert reader.read(chunk("tool_calls")) == [ToolCall("x", "a"), ToolCall("y", "b", {"n": 2})]
    assert reader.finished


def test_a_call_without_an_index_is_known_by_its_place() -> None:
    fragment = call("", id="a", name="x")
    del fragment["index"]
    assert ChunkReader().read(chunk("stop", tool_calls=[fragment])) == [ToolCall("x", "a")]


@pytest.mark.parametrize("arguments", ["[1]", "{", "nonsense", "[" * 1000])
def test_arguments_that_are_no_object_make_no_call(arguments: str) -> None:
    good = call("{}", 1, id="b", name="y")
    bad = call(arguments, 0, id="a", name="x")
    assert ChunkReader().read(chunk("stop", tool_calls=[bad, good])) == [ToolCall("y", "b")]


@pytest.mark.parametrize(
    "fragment",
    [call(index="0"), call(index=True), call(5), call(id=5), call(name=5), {"function": 5}],
)
def test_a_member_of_the_wrong_type_is_refused(fragment: dict[str, Any]) -> None:
    with pytest.raises(DecodeFailure):
        ChunkReader().read(chunk(tool_calls=[fragment]))


def test_what_waits_to_become_whole_may_fill_the_cap_and_not_one_byte_more() -> None:
    reader = ChunkReader(max_bytes=70)
    reader.read(chunk(tool_calls=[call("x" * 6)]))
    with pytest.raises(DecodeFailure):
        reader.read(chunk(tool_calls=[call("x")]))
    assert reader.flush() == []


def test_many_empty_calls_are_bounded_too() -> None:
    reader = ChunkReader(max_bytes=640)
    for index in range(10):
        reader.read(chunk(tool_calls=[call(index=index)]))
    with pytest.raises(DecodeFailure):
        reader.read(chunk(tool_calls=[call(index=10)]))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a", "a"),
        ({"type": "text", "text": "a"}, "a"),
        ([{"type": "text", "text": "a"}, {"type": "image"}, "b"], "ab"),
        ({"type": "image"}, None),
        (5, None),
        (None, None),
    ],
)
def test_the_text_of_each_form_of_content(content: Any, text: str | None) -> None:
    assert text_of(content) == text


def test_deep_content_is_no_danger() -> None:
    content: Any = "a"
    for _ in range(120):
        content = [content]
    assert text_of(content) == "a"
