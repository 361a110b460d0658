"""Tools to JSON Schema and back, and arguments held against them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from executa_protocol.arguments import validate_arguments
from executa_protocol.manifest import Items, ManifestError, Parameter, ParameterType, Tool
from executa_protocol.manifest_schema import parameters_from_json_schema, tool_to_json_schema
from executa_protocol.parameters import TYPES, schema_type

TOOL = Tool(
    name="t",
    parameters=[
        Parameter(name="text", type="string", description="What."),
        Parameter(name="count", type="integer", required=False, default=3),
        Parameter(name="tags", type="array", items=Items("string"), required=False),
        Parameter(name="mode", type="string", enum=["a", "b"], required=False),
    ],
)


def test_a_tool_is_an_object_schema() -> None:
    assert tool_to_json_schema(TOOL) == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What."},
            "count": {"type": "integer", "default": 3},
            "tags": {"type": "array", "items": {"type": "string"}},
            "mode": {"type": "string", "enum": ["a", "b"]},
        },
        "required": ["text"],
    }


def test_a_tool_without_parameters_requires_nothing() -> None:
    assert tool_to_json_schema(Tool(name="t")) == {"type": "object", "properties": {}}


def test_a_tool_for_several_accounts_takes_an_account() -> None:
    schema = tool_to_json_schema(Tool(name="t", multi_account=True))
    assert schema["properties"]["account"]["type"] == "string"
    assert "required" not in schema


def values(kind: ParameterType) -> st.SearchStrategy[Any]:
    """JSON values of a type."""
    return {
        "string": st.text(max_size=5),
        "integer": st.integers(),
        "number": st.floats(allow_nan=False, allow_infinity=False),
        "boolean": st.booleans(),
        "array": st.lists(st.text(max_size=3), max_size=3),
        "object": st.dictionaries(st.text(max_size=3), st.integers(), max_size=3),
    }[kind]


@st.composite
def parameters(draw: st.DrawFn) -> list[Parameter]:
    """Parameters as a plugin may have them."""
    names = draw(st.lists(st.text(max_size=5), unique=True, max_size=5))
    found: list[Parameter] = []
    for name in names:
        kind = draw(st.sampled_from(TYPES))
        parameter = Parameter(
            name=name,
            type=kind,
            description=draw(st.text(max_size=5)),
            required=draw(st.booleans()),
        )
        if draw(st.booleans()):
            parameter.default = draw(values(kind))
        if draw(st.booleans()):
            parameter.enum = draw(st.lists(values(kind), min_size=1, max_size=3))
        if kind == "array":
            parameter.items = Items(draw(st.sampled_from(TYPES)))
        found.append(parameter)
    return found


@given(parameters())
def test_parameters_survive_json_schema(found: list[Parameter]) -> None:
    schema = tool_to_json_schema(Tool(name="t", parameters=found))
    assert parameters_from_json_schema(schema) == found


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": ["null", "integer"]}, "integer"),
        ({"anyOf": [{"type": "null"}, {"type": "number"}]}, "number"),
        ({"oneOf": [5, {"type": "array"}]}, "array"),
        ({"allOf": [{"$ref": "#/x"}]}, "string"),
        ({"properties": {}}, "object"),
        ({"items": {}}, "array"),
        ({"enum": [1, 2]}, "integer"),
        ({"enum": [True]}, "boolean"),
        ({"enum": [None]}, "string"),
        ({"enum": []}, "string"),
        ({}, "string"),
    ],
)
def test_the_closest_type_of_a_schema_is_taken(schema: dict[str, Any], kind: str) -> None:
    assert schema_type(schema) == kind


def test_a_schema_with_odd_members_is_read_as_far_as_it_goes() -> None:
    schema = {
        "properties": {"a": True, "b": {"type": "array", "description": 5}, "c": {"default": 5}},
        "required": "a",
    }
    found = parameters_from_json_schema(schema)
    assert [(p.name, p.type, p.required, p.description) for p in found] == [
        ("b", "array", False, ""),
        ("c", "string", False, ""),
    ]
    assert found[0].items == Items("string")
    assert found[1].default is UNSET
    assert parameters_from_json_schema({}) == []


def test_a_schema_without_an_object_of_properties_is_refused() -> None:
    with pytest.raises(ManifestError, match="properties: expected an object"):
        parameters_from_json_schema({"properties": []})


# --- Arguments ---------------------------------------------------------------------------


def paths(arguments: dict[str, Any], tool: Tool = TOOL, *, strict: bool = False) -> list[str]:
    """Where the arguments are wrong."""
    return [fault.path for fault in validate_arguments(tool, arguments, strict=strict)]


def test_arguments_that_fit_have_no_faults() -> None:
    full = {"text": "x", "count": 1, "tags": ["a"], "mode": "b"}
    assert paths(full, strict=True) == []
    assert paths({"text": ""}, strict=True) == []


def test_a_missing_argument_is_named() -> None:
    assert paths({}) == ["$.text"]
    assert [str(fault) for fault in validate_arguments(TOOL, {})] == ["$.text: required"]


def test_a_default_makes_an_argument_optional() -> None:
    tool = Tool(name="t", parameters=[Parameter(name="a", type="string", default="x")])
    assert paths({}, tool) == []


def test_every_fault_is_named_by_its_path() -> None:
    wrong = {"text": 5, "count": "1", "tags": ["a", 1, "b", None], "mode": "c"}
    assert paths(wrong) == ["$.text", "$.count", "$.tags[1]", "$.tags[3]", "$.mode"]


VALUES: list[tuple[ParameterType, list[Any], list[Any]]] = [
    ("string", ["", "x"], [1, None, True, [], {}]),
    ("integer", [0, -1, 2**70], [True, "1", 1.5, None]),
    ("number", [0, 1.5, 2**70], [False, "1", None]),
    ("boolean", [True, False], [0, 1, "true", None]),
    ("array", [[], [1]], [{}, "x", None]),
    ("object", [{}, {"a": 1}], [[], "x", None]),
]


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    VALUES,
)
def test_a_value_must_have_the_type_of_its_parameter(
    kind: ParameterType, good: list[Any], bad: list[Any]
) -> None:
    tool = Tool(name="t", parameters=[Parameter(name="a", type=kind)])
    for value in good:
        assert paths({"a": value}, tool, strict=True) == []
    for value in bad:
        assert paths({"a": value}, tool) == ["$.a"]


def test_one_point_nought_is_an_integer_in_tolerant_mode_only() -> None:
    assert paths({"text": "x", "count": 1.0}) == []
    assert paths({"text": "x", "count": 1.0}, strict=True) == ["$.count"]


def test_null_for_an_optional_argument_reads_as_absent_in_tolerant_mode_only() -> None:
    assert paths({"text": "x", "mode": None}) == []
    assert paths({"text": "x", "mode": None}, strict=True) == ["$.mode"]


def test_true_is_not_one_of_the_numbers_allowed() -> None:
    tool = Tool(name="t", parameters=[Parameter(name="a", type="integer", enum=[1])])
    assert paths({"a": 1}, tool) == []
    assert paths({"a": True}, tool) == ["$.a"]


def test_arguments_that_the_manifest_does_not_name_pass() -> None:
    assert paths({"text": "x", "more": object()}, strict=True) == []


def test_the_account_of_a_tool_for_several_is_a_string() -> None:
    tool = Tool(name="t", multi_account=True)
    assert paths({"account": "a"}, tool) == []
    assert paths({"account": 5}, tool) == ["$.account"]
    own = Parameter(name="account", type="integer")
    assert paths({"account": 5}, Tool(name="t", multi_account=True, parameters=[own])) == []


def test_a_message_names_the_type_and_never_the_value() -> None:
    secret = {"text": ["hunter2"], "count": True, "mode": object()}
    messages = [fault.message for fault in validate_arguments(TOOL, secret)]
    assert messages == [
        "expected a string, got an array",
        "expected an integer, got a boolean",
        "expected a string, got object",
    ]
    assert validate_arguments(TOOL, {"text": None})[0].message == "expected a string, got null"
