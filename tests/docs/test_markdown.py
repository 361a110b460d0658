"""The pieces that generated pages are made of."""

import ast
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct

from scripts.docs import licences
from scripts.docs.limits import limits_of, limits_page
from scripts.docs.markdown import bounds_of, members, paragraphs, prose, table, type_of


class Inner(Struct):
    """What is inside."""

    name: str


class Outer(Struct, kw_only=True):
    """A struct with everything."""

    count: Annotated[int, Meta(ge=1, le=9)]
    parts: list[Inner] = []
    word: str = "x"
    rest: dict[str, Any] = {}


def test_bars_and_line_ends_do_not_break_a_table() -> None:
    assert table(("a",), [["x | y\nz"]])[2] == "| x \\| y z |"


def test_a_docstring_is_its_first_paragraph_and_its_marks_become_markdown() -> None:
    text = "One ``code`` and `name`,\nover lines: a < b * c.\n\nMore."

    assert prose(text) == "One `code` and `name`, over lines: a &lt; b \\* c."
    assert prose(None) == ""


def test_indented_parts_of_a_docstring_stay_code() -> None:
    found = paragraphs("Like so::\n\n    one()\n      two()\n\nEnd.")

    assert found == ["Like so", "", "```text", "one()", "  two()", "```", "", "End.", ""]


def test_the_members_of_a_struct_have_types_bounds_and_links() -> None:
    shapes: dict[str, Any] = {}
    lines = members(Outer, shapes)

    assert "| `count` | integer | yes | at least 1, at most 9 |" in lines
    assert "| `parts` | array of [Inner](#inner) |  |  |" in lines
    assert '| `word` | string |  | default `"x"` |' in lines
    assert list(shapes) == ["Inner"]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "string"}, "string"),
        ({}, "any JSON"),
        ({"const": "x"}, '`"x"`'),
        ({"enum": ["a", "b"]}, "`a` or `b`"),
        ({"anyOf": [{"type": "string"}, {"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "object of integer"),
    ],
)
def test_a_type_is_told_in_one_cell(schema: dict[str, Any], told: str) -> None:
    assert type_of(schema) == told


def test_bounds_are_told_in_words() -> None:
    schema: dict[str, Any] = {"minItems": 1, "maxItems": 64, "default": []}

    assert bounds_of(schema) == "1 or more items, at most 64 items"


def test_limits_have_the_unit_that_they_are_written_in() -> None:
    page = limits_page()

    assert "| `MAX_LINE` | 16 MiB |" in page
    assert "| `RESUME_TOKEN_TTL` | 30 days |" in page
    assert "| `RETAIN_COUNT` | 1,000,000 |" in page
    assert "| `SWEEP_INTERVAL` | 0.05 |" in page


def test_one_text_speaks_for_the_limits_right_above_it(tmp_path: Path) -> None:
    source = 'A: int = 1\nB: int = 2\n"""Both."""\nC: int = 3\n'
    file = tmp_path / "limits.py"
    file.write_text(source, encoding="utf-8")
    module = ModuleType("limits")
    module.__file__ = str(file)

    found = {limit.name: limit.why for limit in limits_of(module)}

    assert found == {"A": "Both.", "B": "Both.", "C": ""}
    assert isinstance(limits_of(module)[0].value, ast.expr)


def test_a_licence_that_nobody_has_accepted_stops_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(licences, "ACCEPTED", {"MIT"})

    with pytest.raises(licences.LicenceError, match="msgspec: licence 'BSD-3-Clause'"):
        licences.licence_of("msgspec")
