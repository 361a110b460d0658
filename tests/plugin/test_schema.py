"""A signature becomes parameters, and arguments become what the function asks for."""

import datetime
import enum
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_protocol.errors import UsageError
from executa_protocol.methods import InvalidParams
from executa_sdk import Context, SyncContext
from executa_sdk.schema import Schema


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 9


@dataclass
class Point:
    x: float
    y: float = 0.0
    tags: list[str] = field(default_factory=list[str])


class Trip(TypedDict):
    city: str
    days: NotRequired[int]


class Box(msgspec.Struct, rename="camel"):
    max_width: int
    label: str | None = None


class Tree(msgspec.Struct):
    name: str
    children: "list[Tree]" = []


UserId = NewType("UserId", str)


def parameters(fn: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in Schema(fn, "tool").parameters}


def read(fn: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
    return Schema(fn, "tool").read(msgspec.Raw(msgspec.json.encode(arguments)))


def refusal(fn: Callable[..., Any], **arguments: Any) -> InvalidParams:
    with pytest.raises(InvalidParams) as caught:
        read(fn, **arguments)
    return caught.value


@pytest.mark.parametrize(
    ("hint", "described"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (int | float, {"type": "number"}),
        (bytes, {"type": "string"}),
        (datetime.datetime, {"type": "string"}),
        (uuid.UUID, {"type": "string"}),
        (UserId, {"type": "string"}),
        (list, {"type": "array", "items": {"type": "string"}}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (set[Color], {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}}),
        (dict[str, int], {"type": "object"}),
        (Mapping[str, Any], {"type": "object"}),
        (Any, {"type": "object"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Literal["a"] | Literal["b"], {"type": "string", "enum": ["a", "b"]}),  # noqa: PYI030
        (int | str, {"type": "string", "description": "One of: integer, string."}),
        (bool | list[int], {"type": "array", "description": "One of: boolean, array."}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (Level, {"type": "integer", "enum": [1, 9]}),
        (
            Point,
            {
                "type": "object",
                "properties": {
                    "x": {"type": "number"},
                    "y": {"type": "number"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
            },
        ),
        (
            Trip,
            {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            },
        ),
        (
            Box,
            {
                "type": "object",
                "properties": {"maxWidth": {"type": "integer"}, "label": {"type": "string"}},
            },
        ),
        (
            list[Trip],
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                    "required": ["city"],
                },
            },
        ),
    ],
    ids=str,
)
def test_a_hint_becomes_one_of_the_six_types(hint: Any, described: dict[str, Any]) -> None:
    def tool(value: Any) -> None: ...

    tool.__annotations__["value"] = hint

    assert parameters(tool)["value"] == {
        "name": "value",
        "description": "",
        "required": True,
        **described,
    }


def test_defaults_and_optional_hints_make_a_parameter_optional() -> None:
    def tool(a: int, b: int = 3, c: str | None = None, *, d: list[int] | None) -> None: ...

    found = parameters(tool)

    assert [found[name]["required"] for name in "abcd"] == [True, False, False, False]
    assert "default" not in found["a"]
    assert found["b"]["default"] == 3
    assert "default" not in found["c"]
    assert found["d"]["items"] == {"type": "integer"}


def test_what_is_left_out_takes_the_functions_own_default() -> None:
    def tool(a: int, b: int = 3, c: str | None = None, *, d: list[int] | None) -> None: ...

    assert read(tool, a=1) == {"a": 1, "d": None}
    assert read(tool, a=1, b=2, c=None, d=[1]) == {"a": 1, "b": 2, "c": None, "d": [1]}


def test_arguments_arrive_as_the_types_that_were_asked_for() -> None:
    def tool(color: Color, point: Point, trip: Trip, box: Box, when: datetime.date) -> None: ...

    values = read(
        tool,
        color="blue",
        point={"x": 1},
        trip={"city": "Oslo"},
        box={"maxWidth": 2},
        when="2026-01-02",
    )

    assert values == {
        "color": Color.BLUE,
        "point": Point(1.0),
        "trip": {"city": "Oslo"},
        "box": Box(2),
        "when": datetime.date(2026, 1, 2),
    }


def test_recursive_types_are_described_to_a_bounded_depth() -> None:
    def tool(tree: Tree) -> None: ...

    described = parameters(tool)["tree"]
    depth = 0
    while "children" in described.get("properties", {}):
        described = described["properties"]["children"]["items"]
        depth += 1

    assert 1 < depth < 10
    assert read(tool, tree={"name": "a", "children": [{"name": "b"}]})["tree"].children


def test_descriptions_come_from_the_docstring_or_the_hint() -> None:
    def tool(a: int, b: Annotated[int, "from the hint"], c: int) -> None:
        """Do it.

        Args:
            a: From the docstring.
        """

    found = parameters(tool)

    assert found["a"]["description"] == "From the docstring."
    assert found["b"]["description"] == "from the hint"
    assert found["c"]["description"] == ""
    assert Schema(tool, "tool").description == "Do it."


def test_bounds_of_msgspec_are_kept() -> None:
    def tool(count: Annotated[int, msgspec.Meta(ge=1, le=9, description="how many")]) -> None: ...

    assert parameters(tool)["count"]["description"] == "how many"
    assert read(tool, count=9) == {"count": 9}
    assert refusal(tool, count=10).path == "count"


@pytest.mark.parametrize("hint", [Context, SyncContext, Context | None, "Context", "SyncContext"])
def test_the_context_is_no_parameter(hint: Any) -> None:
    def tool(a: int, where: Any) -> None: ...

    tool.__annotations__["where"] = hint
    schema = Schema(tool, "tool")

    assert schema.context == "where"
    assert [entry["name"] for entry in schema.parameters] == ["a"]


# --- Refusals: the argument is named, before the tool runs. -------------------------------------


def test_a_missing_argument_is_named() -> None:
    def tool(a: int, b: int) -> None: ...

    fault = refusal(tool, a=1)

    assert fault.path == "b"
    assert "missing argument 'b'" in str(fault)
    assert fault.error.code == -32602


def test_an_extra_argument_is_named_with_what_the_tool_takes() -> None:
    def tool(a: int, b: int = 0) -> None: ...

    fault = refusal(tool, a=1, z=2)

    assert fault.path == "z"
    assert str(fault) == "unexpected argument 'z'; this tool takes a, b"


@pytest.mark.parametrize("value", ["7", 7.5, True, None, [7], {}])
def test_a_mistyped_argument_is_named(value: Any) -> None:
    def tool(count: int) -> None: ...

    fault = refusal(tool, count=value)

    assert fault.path == "count"
    assert "argument count" in str(fault)


def test_the_path_inside_an_argument_is_named() -> None:
    def tool(points: list[Point]) -> None: ...

    fault = refusal(tool, points=[{"x": 1}, {"x": "one"}])

    assert fault.path == "points[1].x"


# --- Signatures that no manifest can state. -----------------------------------------------------


def test_a_parameter_without_a_hint_is_refused_when_the_tool_is_described() -> None:
    def tool(a) -> None: ...  # type: ignore[no-untyped-def]

    with pytest.raises(UsageError, match=r"'a'.*type hint"):
        Schema(tool, "tool")  # pyright: ignore[reportUnknownArgumentType]


def test_parameters_that_have_no_name_are_refused() -> None:
    def many(*values: int) -> None: ...
    def named(**values: int) -> None: ...
    def positional(a: int, /) -> None: ...

    for tool in (many, named, positional):
        with pytest.raises(UsageError, match="by name"):
            Schema(tool, "tool")


def test_a_method_without_its_object_is_refused_with_a_hint() -> None:
    class Thing:
        def tool(self, a: int) -> None: ...

    with pytest.raises(UsageError, match=r"plugin\.tool\(thing\.method\)"):
        Schema(Thing.tool, "tool")
    assert parameters(Thing().tool).keys() == {"a"}


def test_a_type_without_a_json_form_is_refused() -> None:
    def tool(connection: Lock) -> None: ...

    def other(connection: uuid.SafeUUID | Callable[[], None]) -> None: ...

    with pytest.raises(UsageError, match="no JSON form"):
        Schema(tool, "tool")
    with pytest.raises(UsageError, match="no JSON form"):
        Schema(other, "tool")


def test_a_type_that_cannot_be_found_is_refused_with_advice() -> None:
    def tool(a: int) -> None: ...

    tool.__annotations__["a"] = "Nowhere"

    with pytest.raises(UsageError, match=r"'Nowhere'.*top of the module"):
        Schema(tool, "tool")


def test_a_union_that_json_cannot_tell_apart_is_refused() -> None:
    def tool(shape: Point | Box) -> None: ...

    with pytest.raises(UsageError, match="cannot be read from JSON"):
        Schema(tool, "tool")


def test_an_enum_of_mixed_values_is_refused() -> None:
    def tool(a: Literal[1, "one"]) -> None: ...

    with pytest.raises(UsageError, match="all be strings or all be integers"):
        Schema(tool, "tool")


# --- Any values at all. -------------------------------------------------------------------------


def everything(
    *,
    text: str,
    count: int,
    ratio: float,
    flag: bool,
    color: Color,
    names: list[str],
    counts: dict[str, int],
    point: Point,
    note: str | None = None,
    size: int = 10,
) -> None: ...


ARGUMENTS = st.fixed_dictionaries(
    {
        "text": st.text(),
        "count": st.integers(-(2**63), 2**64 - 1),
        "ratio": st.floats(allow_nan=False, allow_infinity=False),
        "flag": st.booleans(),
        "color": st.sampled_from(["red", "blue"]),
        "names": st.lists(st.text()),
        "counts": st.dictionaries(st.text(), st.integers(-(2**63), 2**63)),
        "point": st.fixed_dictionaries({"x": st.integers(-1000, 1000)}),
    },
    optional={"note": st.none() | st.text(), "size": st.integers(-(2**63), 2**63)},
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(ARGUMENTS)
def test_good_arguments_reach_the_function_unchanged(arguments: dict[str, Any]) -> None:
    values = Schema(everything, "tool").read(msgspec.Raw(msgspec.json.encode(arguments)))

    assert values.keys() == arguments.keys()
    assert values["color"] == Color(arguments["color"])
    assert values["point"] == Point(float(arguments["point"]["x"]))
    for name in arguments.keys() - {"color", "point"}:
        assert values[name] == arguments[name]
        assert type(values[name]) is type(arguments[name])


@given(ARGUMENTS, st.data())
def test_any_other_value_is_refused_by_name_or_is_of_the_right_type(
    arguments: dict[str, Any], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(arguments)))
    value = data.draw(JSON)
    changed = {**arguments, name: value}
    try:
        values = Schema(everything, "tool").read(msgspec.Raw(msgspec.json.encode(changed)))
    except InvalidParams as fault:
        assert fault.path.startswith(name)  # noqa: PT017 - either is right
    else:
        hint = everything.__annotations__[name]
        assert msgspec.convert(value, hint) == values[name]


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_any_object_is_read_or_refused_and_never_anything_else(arguments: dict[str, Any]) -> None:
    try:
        Schema(everything, "tool").read(msgspec.Raw(msgspec.json.encode(arguments)))
    except InvalidParams as fault:  # it may also be read
        assert fault.error.code == -32602  # noqa: PT017 - either is right
