"""Arguments that the kit makes are valid, and its scripted model answers in the wanted form."""

from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from executa_conformance.plugin.answer import Answer
from executa_conformance.plugin.facts import Facts, Tried
from executa_conformance.plugin.speech import TEXT, instance, said
from executa_conformance.plugin.tools import FILE_TEXT, Case, cases_of, echoed
from executa_protocol.arguments import validate_arguments
from executa_protocol.manifest import Items, Manifest, Parameter, ParameterType, Tool
from executa_protocol.methods.sampling import read_sampling

KINDS = st.sampled_from(get_args(ParameterType))
NAMES = st.sampled_from(
    ["text", "path", "file", "url", "email", "date", "count", "folder", "tags", "files", "lang"]
)


@st.composite
def parameters(draw: st.DrawFn) -> Parameter:
    """A parameter of any kind."""
    kind = draw(KINDS)
    parameter = Parameter(name=draw(NAMES), type=kind, required=draw(st.booleans()))
    if kind == "array" and draw(st.booleans()):
        parameter.items = Items(draw(KINDS))
    if kind == "string" and draw(st.booleans()):
        parameter.enum = draw(st.lists(st.text(), min_size=1, max_size=3))
    if kind == "integer" and draw(st.booleans()):
        parameter.default = draw(st.integers())
    return parameter


def manifest_of(*tools: Tool) -> Manifest:
    """A manifest with these tools."""
    return Manifest(name="p", version="1", tools=list(tools))


@given(st.lists(parameters(), max_size=5, unique_by=lambda it: it.name))
def test_made_arguments_fit_the_parameters(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Parameter]
) -> None:
    tool = Tool(name="t", parameters=rows)
    cases = cases_of(manifest_of(tool), {}, tmp_path_factory.getbasetemp())

    assert cases
    for case in cases:
        assert validate_arguments(tool, case.arguments, strict=True) == []
    needed = {each.name for each in rows if each.required and not isinstance(each.default, int)}
    assert cases[0].arguments.keys() == needed


def test_a_path_is_that_of_a_small_text_file_and_otherwise_one_inside_a_store(
    tmp_path: Path,
) -> None:
    tool = Tool(name="read", parameters=[Parameter(name="source_path", type="string")])
    first, second = cases_of(manifest_of(tool), {}, tmp_path)

    assert Path(first.arguments["source_path"]).read_text(encoding="utf-8") == FILE_TEXT
    assert (second.arguments, second.otherwise) == ({"source_path": "tea.txt"}, True)


def test_a_tool_that_needs_approval_is_called_with_given_arguments_only(tmp_path: Path) -> None:
    manifest = manifest_of(Tool(name="pay", approval=True))

    assert cases_of(manifest, {}, tmp_path) == []
    assert cases_of(manifest, {"pay": [{"sum": 1}]}, tmp_path) == [Case("pay", {"sum": 1})]


def test_a_tool_echoes_if_its_text_stands_in_the_result() -> None:
    case = Case("t", {"name": "Ada", "text": "Tea is at four", "count": 1})

    assert echoed(case, {"said": ["Hello, Tea is at four!"]}) == "text"
    assert echoed(case, {"said": "Hello"}) is None


def test_the_plainest_call_works_asks_nothing_and_is_quick() -> None:
    worked, failed = Answer(1, {"success": True}), Answer(1, {"success": False})
    tried = [
        Tried(Case("fails", {}), failed, (), 0.1),
        Tried(Case("asks", {}), worked, ("storage/get",), 0.2),
        Tried(Case("slow", {}), worked, (), 0.4),
        Tried(Case("quick", {}), worked, (), 0.3),
        Tried(Case("hangs", {}), None, (), 9.0),
    ]

    assert Facts(tried=tried).plain.tool == "quick"
    assert Facts(tried=tried[:2]).plain.tool == "asks"
    assert [note.split()[1] for note in Facts(tried=tried).notes()] == ["fails", "hangs"]


# --- The model ---------------------------------------------------------------------------------

SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": 5}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}},
    {"type": "array", "minItems": 3, "items": {"type": "boolean"}},
    {"enum": ["red", "green"]},
    {"const": 7},
    {"type": ["null", "string"]},
    {"properties": {"x": {"type": "number"}}, "required": ["x"]},
    {},
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_model_answers_in_the_schema_that_is_asked_for(schema: dict[str, Any]) -> None:
    validator: Any = Draft202012Validator(schema)

    validator.validate(instance(schema))


def test_the_model_speaks_text_unless_a_format_is_asked_for() -> None:
    message = {"role": "user", "content": {"type": "text", "text": "Tea?"}}
    params: dict[str, Any] = {"messages": [message], "maxTokens": 5}
    form = {"name": "tea", "schema": {"type": "object", "required": ["when"]}}

    assert said(read_sampling(msgspec.json.encode(params))) == TEXT
    params["responseFormat"] = {"type": "json_schema", "json_schema": form}
    text = said(read_sampling(msgspec.json.encode(params)))
    assert msgspec.json.decode(text) == {"when": TEXT}
    params["responseFormat"] = {"type": "json_object"}
    assert msgspec.json.decode(said(read_sampling(msgspec.json.encode(params)))) == {"text": TEXT}
