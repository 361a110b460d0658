"""`sampling/createMessage`: every limit, at it and one past it, and every spelling."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from executa_protocol.errors import StrictRefusal
from executa_protocol.methods import InvalidParams
from executa_protocol.methods.common import CallContext, TextContent
from executa_protocol.methods.response_format import (
    JsonObjectFormat,
    JsonSchemaFormat,
    JsonSchemaSpec,
    check_response_format,
)
from executa_protocol.methods.sampling import (
    ModelPreferences,
    SamplingMessage,
    SamplingParams,
    SamplingResult,
    check_sampling,
    read_sampling,
    read_sampling_result,
)
from executa_protocol.readings import STRICT
from tests.protocol.reading import Listening, encoded, refusal_code

MESSAGE: dict[str, Any] = {"role": "user", "content": {"type": "text", "text": "hello"}}
PARAMS: dict[str, Any] = {"messages": [MESSAGE], "maxTokens": 100}


def refused(members: dict[str, Any]) -> InvalidParams:
    """Read, be refused with -32004, and hand over the refusal."""
    with pytest.raises(InvalidParams) as caught:
        read_sampling(encoded(members))
    assert caught.value.error.code == -32004
    return caught.value


def test_a_full_request_survives_the_round_trip() -> None:
    members = {
        **PARAMS,
        "systemPrompt": "be brief",
        "temperature": 0.5,
        "stopSequences": ["END"],
        "modelPreferences": {"hints": [{"name": "mini"}], "costPriority": 1.0},
        "includeContext": "none",
        "metadata": {"executa_invoke_id": "a"},
        "responseFormat": {"type": "json_object"},
        "onUnsupported": "text",
        "context": {"invoke_id": "a"},
    }
    params = read_sampling(encoded(members), STRICT)
    assert msgspec.json.decode(msgspec.json.encode(params)) == members


def test_absent_members_are_not_on_the_wire() -> None:
    params = SamplingParams(
        messages=[SamplingMessage("user", TextContent("text", "hi"))], max_tokens=1
    )
    assert msgspec.json.decode(msgspec.json.encode(params)).keys() == {"messages", "maxTokens"}


@pytest.mark.parametrize("count", [1, 64])
def test_one_to_sixty_four_messages_are_allowed(count: int) -> None:
    assert len(read_sampling(encoded(PARAMS | {"messages": [MESSAGE] * count})).messages) == count


@pytest.mark.parametrize("count", [0, 65])
def test_no_message_and_sixty_five_are_refused(count: int) -> None:
    assert refused(PARAMS | {"messages": [MESSAGE] * count}).path == "messages"
    messages = [SamplingMessage("user", TextContent("text", "hi"))] * count
    with pytest.raises(InvalidParams, match="messages: expected 1 to 64"):
        check_sampling(SamplingParams(messages=messages, max_tokens=1))


@pytest.mark.parametrize("tokens", [1, 8192, 100_000])
def test_how_many_tokens_a_call_may_ask_for_is_for_the_budget_to_say(tokens: int) -> None:
    assert read_sampling(encoded(PARAMS | {"maxTokens": tokens}), STRICT).max_tokens == tokens


@pytest.mark.parametrize("tokens", [0, -1, 1.5, "100", None, True])
def test_any_other_number_of_tokens_is_refused(tokens: Any) -> None:
    assert refused(PARAMS | {"maxTokens": tokens}).path == "maxTokens"


def test_tokens_of_params_built_by_hand_are_checked_too() -> None:
    params = SamplingParams(
        messages=[SamplingMessage("user", TextContent("text", "hi"))], max_tokens=0
    )
    with pytest.raises(InvalidParams, match="1 or more, got 0"):
        check_sampling(params)


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_the_three_roles_are_allowed(role: str) -> None:
    read_sampling(encoded(PARAMS | {"messages": [MESSAGE | {"role": role}]}), STRICT)


BAD_MESSAGES: list[tuple[Any, str]] = [
    (MESSAGE | {"role": "tool"}, "messages[1].role"),
    ({"role": "user"}, "messages[1]"),
    (MESSAGE | {"content": {"type": "image", "data": ""}}, "messages[1].content.type"),
    (MESSAGE | {"content": {"type": "text"}}, "messages[1].content"),
    (MESSAGE | {"content": 5}, "messages[1].content"),
    (MESSAGE | {"content": []}, "messages[1].content"),
    (MESSAGE | {"content": [{"type": "text", "text": "a"}] * 2}, "messages[1].content"),
    (MESSAGE | {"content": [{"type": "image"}]}, "messages[1].content"),
    (MESSAGE | {"content": [5]}, "messages[1].content"),
    ("hello", "messages[1]"),
]


@pytest.mark.parametrize(
    ("message", "path"),
    BAD_MESSAGES,
)
def test_a_bad_message_is_named_by_its_index(message: Any, path: str) -> None:
    assert refused(PARAMS | {"messages": [MESSAGE, message]}).path == path


@pytest.mark.parametrize(
    ("content", "requirement"),
    [
        ("hello", "SAMP-001"),
        ([{"type": "text", "text": "hello"}], "SAMP-002"),
        ([{"text": "hello"}], "SAMP-002"),
        (["hello"], "SAMP-002"),
    ],
)
def test_other_forms_of_text_content_are_tolerated(content: Any, requirement: str) -> None:
    members = encoded(PARAMS | {"messages": [{"role": "user", "content": content}]})
    reader = Listening()
    assert read_sampling(members, reader).messages[0].content == TextContent("text", "hello")
    assert reader.ids == [requirement]
    with pytest.raises(StrictRefusal, match=requirement):
        read_sampling(members, STRICT)


def test_a_null_member_reads_as_absent() -> None:
    reader = Listening()
    params = read_sampling(encoded(PARAMS | {"systemPrompt": None, "metadata": None}), reader)
    assert (params.system_prompt, params.metadata) == (UNSET, UNSET)
    assert reader.ids == ["CORE-001", "CORE-001"]
    with pytest.raises(StrictRefusal, match="CORE-001"):
        read_sampling(encoded(PARAMS | {"systemPrompt": None}), STRICT)


def test_a_null_inside_the_context_or_the_preferences_reads_as_absent() -> None:
    members = PARAMS | {"context": {"invoke_id": None}, "metadata": {"keep": None}}
    members |= {"modelPreferences": {"hints": None, "costPriority": 1}}
    reader = Listening()
    params = read_sampling(encoded(members), reader)
    assert params.context == CallContext()
    assert params.model_preferences == ModelPreferences(cost_priority=1)
    assert params.metadata == {"keep": None}
    assert reader.ids == ["CORE-001", "CORE-001"]


@pytest.mark.parametrize("name", ["costPriority", "speedPriority", "intelligencePriority"])
def test_priorities_go_from_nought_to_one(name: str) -> None:
    for value in (0, 1, 0.5):
        read_sampling(encoded(PARAMS | {"modelPreferences": {name: value}}), STRICT)
    for value in (-0.01, 1.01, "1"):
        members = PARAMS | {"modelPreferences": {name: value}}
        assert refused(members).path == f"modelPreferences.{name}"


@pytest.mark.parametrize(
    ("name", "value"), [("includeContext", "thisServer"), ("onUnsupported", "ignore")]
)
def test_words_that_are_not_offered_are_refused(name: str, value: str) -> None:
    assert refused(PARAMS | {name: value}).path == name


# --- Response formats ------------------------------------------------------------


def json_schema(schema: Any, name: str = "answer") -> dict[str, Any]:
    """Params that ask for a schema."""
    spec = {"name": name, "schema": schema}
    return PARAMS | {"responseFormat": {"type": "json_schema", "json_schema": spec}}


def nested(levels: int) -> dict[str, Any]:
    """An object of so many levels."""
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"properties": value}
    return value


def test_a_schema_is_strict_unless_it_says_otherwise() -> None:
    response_format = read_sampling(encoded(json_schema({"type": "object"}))).response_format
    assert isinstance(response_format, JsonSchemaFormat)
    assert response_format.json_schema.strict
    assert bytes(response_format.json_schema.schema) == b'{"type":"object"}'


@pytest.mark.parametrize("name", ["a", "a" * 64, "A-z_9"])
def test_a_schema_s_name_may_have_one_to_sixty_four_characters(name: str) -> None:
    read_sampling(encoded(json_schema({}, name)), STRICT)


@pytest.mark.parametrize("name", ["", "a" * 65, "a b", "ä", "a\n"])
def test_any_other_name_of_a_schema_is_refused(name: str) -> None:
    assert refused(json_schema({}, name)).path == "responseFormat.json_schema.name"


def test_a_schema_may_have_eight_levels_and_not_nine() -> None:
    read_sampling(encoded(json_schema(nested(8))), STRICT)
    fault = refused(json_schema(nested(9)))
    assert fault.path == "responseFormat.json_schema.schema"
    assert "8 levels" in str(fault)


def test_arrays_count_as_levels_of_a_schema() -> None:
    read_sampling(encoded(json_schema({"enum": [[[[[[[1]]]]]]]})))
    assert "8 levels" in str(refused(json_schema({"enum": [[[[[[[[1]]]]]]]]})))


def test_a_schema_may_have_512_values_and_not_513() -> None:
    read_sampling(encoded(json_schema({"enum": list(range(510))})), STRICT)
    assert "512 values" in str(refused(json_schema({"enum": list(range(511))})))


def test_a_schema_may_have_32_kibibytes_and_not_one_byte_more() -> None:
    frame = len(b'{"description":""}')
    read_sampling(encoded(json_schema({"description": "x" * (32 * 1024 - frame)})), STRICT)
    fault = refused(json_schema({"description": "x" * (32 * 1024 - frame + 1)}))
    assert "32,769 bytes" in str(fault)


@pytest.mark.parametrize("schema", [[], "object", 5, True, None])
def test_a_schema_is_an_object(schema: Any) -> None:
    assert refused(json_schema(schema)).path == "responseFormat.json_schema.schema"


@pytest.mark.parametrize("kind", ["text", "xml", None])
def test_another_kind_of_response_format_is_refused(kind: Any) -> None:
    refused(PARAMS | {"responseFormat": {"type": kind}})


def test_a_schema_built_by_hand_must_be_json() -> None:
    check_response_format(JsonObjectFormat())
    broken = JsonSchemaFormat(JsonSchemaSpec(name="a", schema=Raw(b"{")))
    with pytest.raises(InvalidParams):
        check_response_format(broken)


# --- Results and bad input -----------------------------------------------------------


def test_a_result_survives_the_round_trip() -> None:
    members = {
        "role": "assistant",
        "content": {"type": "text", "text": "hi"},
        "model": "m",
        "stopReason": "endTurn",
        "usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3},
        "_meta": {
            "provider": "p",
            "latencyMs": 1.5,
            "responseFormat": {"requested": "json_object", "downgraded": False},
        },
    }
    result = read_sampling_result(encoded(members), STRICT)
    assert msgspec.json.decode(msgspec.json.encode(result)) == members
    assert result.meta is not UNSET


def test_a_result_says_its_role_on_the_wire() -> None:
    result = SamplingResult(content=TextContent("text", "x"), model="m", stop_reason="endTurn")
    assert b'"role":"assistant"' in msgspec.json.encode(result)


@given(st.binary(max_size=80))
def test_any_bytes_raise_nothing_but_invalid_params(data: bytes) -> None:
    assert refusal_code(lambda: read_sampling(data)) in {None, -32004}


@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: st.none()
            | st.booleans()
            | st.integers()
            | st.text()
            | st.lists(st.dictionaries(st.sampled_from(["role", "content"]), st.text()))
            for name in ("messages", "maxTokens", "systemPrompt", "metadata", "responseFormat")
        },
    )
)
def test_any_members_raise_nothing_but_invalid_params(members: dict[str, Any]) -> None:
    text = msgspec.json.encode(members)
    assert refusal_code(lambda: read_sampling(text)) in {None, -32004}
