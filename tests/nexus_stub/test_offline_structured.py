"""The offline model's JSON: it fits the schema, is filled from the text, and is cut to size."""

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executa_nexus_stub.models.base import Message, ModelRequest
from executa_nexus_stub.models.estimate import count_tokens
from executa_nexus_stub.models.offline import OfflineModel
from executa_nexus_stub.models.schema import problem
from executa_nexus_stub.models.text import sentences
from executa_protocol import codec

TEXT = """\
The ferry Astrid leaves Bergen at 7 and takes 42 passengers. It is red. Tickets cost 12.5 crowns
and are sold by ada@example.org until 2024-05-03. The trip is free for children.
"""

Schema = dict[str, Any]


async def fill(schema: Schema | None, text: str = TEXT, max_tokens: int = 4000) -> Any:
    """The value that the model gives."""
    request = ModelRequest(
        messages=(Message(role="user", text=f"Extract the facts:\n\n{text}"),),
        max_tokens=max_tokens,
        format="json_object" if schema is None else "json_schema",
        schema=schema,
    )
    answer = await OfflineModel().complete(request)
    assert count_tokens(answer.text) == answer.usage.output_tokens <= max_tokens
    return codec.decode_any(answer.text.encode())


async def test_json_mode_gives_an_object_with_an_answer_from_the_text() -> None:
    value = cast("dict[str, Any]", await fill(None))

    assert set(value) == {"answer", "keywords"}
    assert all(part in TEXT.replace("\n", " ") for part in sentences(value["answer"]))


async def test_members_are_filled_from_what_the_text_says() -> None:
    schema: Schema = {
        "type": "object",
        "properties": {
            "passengers": {"type": "integer", "minimum": 20},
            "colour": {"enum": ["blue", "red"]},
            "mail": {"type": "string", "format": "email"},
            "until": {"type": "string", "format": "date"},
            "free": {"type": "boolean"},
            "stormy": {"type": "boolean"},
            "price": {"type": "number", "exclusiveMaximum": 20, "exclusiveMinimum": 10},
            "tickets": {"type": "string"},
        },
        "required": ["passengers"],
        "additionalProperties": False,
    }

    assert await fill(schema) == {
        "passengers": 42,
        "colour": "red",
        "mail": "ada@example.org",
        "until": "2024-05-03",
        "free": True,
        "stormy": False,
        "price": 12.5,
        "tickets": "Tickets cost 12.5 crowns and are sold by ada@example.org until 2024-05-03.",
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 300, "maxLength": 301},
        {"type": "string", "maxLength": 0},
        {"type": "string", "pattern": "^[a-z]+$", "maxLength": 4},
        {"type": "string", "pattern": r"^\d{5}$"},
        {"type": "integer", "multipleOf": 7, "minimum": 50},
        {"type": "number", "minimum": 0.1, "maximum": 0.2},
        {"type": "integer", "maximum": -3},
        {"type": ["null", "integer"], "maximum": -3},
        {"type": "array", "items": {"type": "string"}, "minItems": 6, "uniqueItems": True},
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
        {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2, "uniqueItems": True},
        {"const": {"a": [None]}},
        {"enum": [True, 1]},
        {"type": "object", "minProperties": 3, "additionalProperties": {"type": "integer"}},
        {"type": "object", "maxProperties": 1, "properties": {"a": {}, "b": {}}},
        {"anyOf": [{"type": "string", "pattern": "^\u2603$"}, {"type": "integer"}]},
        {"oneOf": [{"type": "integer", "maximum": 5}, {"type": "number", "minimum": 6}]},
        {"allOf": [{"type": "object", "properties": {"a": {"type": "null"}}}, {"required": ["a"]}]},
        {"$ref": "#/$defs/x", "$defs": {"x": {"type": "boolean"}}},
        {
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                    },
                    "required": ["name"],
                }
            },
            "$ref": "#/$defs/node",
        },
        {},
    ],
)
async def test_the_value_fits_its_schema(schema: Schema) -> None:
    assert problem(await fill(schema), schema) is None


def a_text(low: int, span: int) -> Schema:
    return {"type": "string", "minLength": low, "maxLength": low + span}


def a_number(low: int, span: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": low + span}


def an_option(options: list[int | str]) -> Schema:
    return {"enum": options}


def an_object(members: dict[str, Schema], closed: bool) -> Schema:
    return {
        "type": "object",
        "properties": members,
        "required": sorted(members)[::2],
        "additionalProperties": not closed,
    }


def a_list(items: Schema, low: int, span: int) -> Schema:
    return {"type": "array", "items": items, "minItems": low, "maxItems": low + span}


def one_of_some(some: list[Schema]) -> Schema:
    return {"anyOf": some}


def deeper(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    """Schemas around schemas."""
    names = st.sampled_from(["title", "summary", "tags", "count", "x", "name"])
    few = st.integers(0, 3)
    return st.one_of(
        st.builds(an_object, st.dictionaries(names, inner, max_size=4), st.booleans()),
        st.builds(a_list, inner, few, few),
        st.builds(one_of_some, st.lists(inner, min_size=1, max_size=2)),
    )


def schemas() -> st.SearchStrategy[Schema]:
    """Schemas of every type, some levels deep."""
    options = st.lists(st.integers() | st.text(max_size=5), min_size=1, max_size=3)
    bare: list[Schema] = [{"type": kind} for kind in ("boolean", "null", "number", "string")]
    leaves: st.SearchStrategy[Schema] = st.one_of(
        st.builds(a_text, st.integers(0, 30), st.integers(0, 30)),
        st.builds(a_number, st.integers(-100, 100), st.integers(0, 50)),
        st.sampled_from(bare),
        st.builds(an_option, options),
    )
    return st.recursive(leaves, deeper, max_leaves=8)


@settings(deadline=None)
@given(schemas())
async def test_any_schema_of_the_common_kinds_is_met(schema: Schema) -> None:
    value = await fill(schema, max_tokens=100_000)

    assert problem(value, schema) is None
    assert value == await fill(schema, max_tokens=100_000)


async def test_little_room_gives_a_smaller_value_that_still_fits() -> None:
    schema: Schema = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "long": {"type": "string"}},
        "required": ["title", "long"],
    }

    rich, poor = await fill(schema), await fill(schema, max_tokens=20)

    assert problem(poor, schema) is None
    assert len(poor["long"]) < len(rich["long"])


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (True, {"type": "integer"}),
        (1, {"const": True}),
        (1.5, {"type": "integer"}),
        ("a", {"minLength": 2}),
        ("abc", {"maxLength": 2}),
        ("b", {"pattern": "^a"}),
        ("aaaaaaaaaaaaaaaaaaaaaaaaaaaa!", {"pattern": "^(a+)+$"}),
        (3, {"multipleOf": 2}),
        (3, {"exclusiveMaximum": 3}),
        (3, {"exclusiveMinimum": 3}),
        ([1, 1], {"uniqueItems": True}),
        ([1], {"minItems": 2}),
        ([1, 2], {"maxItems": 1}),
        ([1], {"items": False}),
        ({}, {"required": ["a"]}),
        ({"a": 1}, {"additionalProperties": False}),
        ({"a": 1}, {"properties": {"a": {"type": "string"}}}),
        ({"a": 1}, {"patternProperties": {"^a": {"type": "string"}}}),
        ({"a": 1}, {"maxProperties": 0}),
        (1, {"anyOf": [{"type": "string"}, {"minimum": 2}]}),
        (3, {"oneOf": [{"type": "integer"}, {"minimum": 2}]}),
        (3, {"not": {"type": "integer"}}),
        (None, {"type": ["string", "integer"]}),
    ],
)
def test_what_does_not_fit_is_found(value: Any, schema: Schema) -> None:
    assert problem(value, schema) is not None
