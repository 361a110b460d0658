"""A docstring taken apart: what the tool does, and what each parameter means.

Reads the three common styles: Google (``Args:``), NumPy (``Parameters`` underlined)
and Sphinx (``:param name:``). What it does not recognise stays part of the description.
"""

import re
from typing import Final

from msgspec import Struct

_PARAMETERS: Final = frozenset({"args", "arguments", "params", "parameters", "other parameters"})
_OTHERS: Final = frozenset(
    {
        "attributes", "example", "examples", "note", "notes", "raises", "references", "return",
        "returns", "see also", "todo", "warning", "warnings", "warns", "yield", "yields",
    }
)  # fmt: skip

# Compiled, and kept by `re`, when a docstring first needs them: most plugins use one style.
_GOOGLE_ITEM: Final = r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)"
_NUMPY_ITEM: Final = r"\*{0,2}(\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$"
_SPHINX_PARAM: Final = (
    r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)"
)
_SPHINX_FIELD: Final = r":[a-z]+(?:\s[^:]*)?:"
_UNDERLINE: Final = r"[-=~]{3,}$"


class Documented(Struct, frozen=True):
    """`description` is the text before any section; `parameters` are texts by name."""

    description: str
    parameters: dict[str, str]


def parse(docstring: str | None) -> Documented:
    """Read a docstring; an absent one has no description and no parameters."""
    lines = _dedent(docstring or "")
    found: dict[str, str] = {}
    prose: list[str] = []
    in_prose = True
    index = 0
    while index < len(lines):
        line = lines[index]
        heading, width = _heading(lines, index)
        sphinx = re.match(_SPHINX_PARAM, line)
        if heading:
            in_prose = False
            end = _section_end(lines, index + width)
            if heading in _PARAMETERS:
                read = _read_numpy if width == 2 else _read_google
                found |= read(lines[index + width : end])
            index = end
        elif sphinx:
            in_prose = False
            end = _block_end(lines, index)
            found[sphinx[1]] = _joined([sphinx[2], *lines[index + 1 : end]])
            index = end
        elif re.match(_SPHINX_FIELD, line):
            in_prose = False
            index = _block_end(lines, index)
        else:
            if in_prose:
                prose.append(line)
            index += 1
    return Documented(_paragraphs(prose), {name: text for name, text in found.items() if text})


def _dedent(text: str) -> list[str]:
    """Lines without the indent that all of them but the first share."""
    lines = text.expandtabs().splitlines()
    indents = [_indent(line) for line in lines[1:] if line.strip()]
    margin = min(indents, default=0)
    return [lines[0].strip(), *(line[margin:].rstrip() for line in lines[1:])] if lines else []


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _heading(lines: list[str], index: int) -> tuple[str, int]:
    """The name of the section that begins here and how many lines its heading has."""
    line = lines[index]
    name = line.strip().casefold()
    if name.endswith(":") and name[:-1] in _PARAMETERS | _OTHERS and _indent(line) == 0:
        return name[:-1], 1
    below = lines[index + 1].strip() if index + 1 < len(lines) else ""
    if name in _PARAMETERS | _OTHERS and re.match(_UNDERLINE, below):
        return name, 2
    return "", 0


def _section_end(lines: list[str], start: int) -> int:
    """Where a section ends: at the next heading, or where unindented text follows a blank line."""
    numpy = start >= 2 and re.match(_UNDERLINE, lines[start - 1].strip()) is not None
    for index in range(start, len(lines)):
        if _heading(lines, index)[0] or re.match(_SPHINX_FIELD, lines[index]):
            return index
        if not numpy and lines[index].strip() and _indent(lines[index]) == 0:
            return index
    return len(lines)


def _block_end(lines: list[str], start: int) -> int:
    """Where the more indented lines after `start` end."""
    index = start + 1
    while index < len(lines) and (_indent(lines[index]) > 0 and lines[index].strip()):
        index += 1
    return index


def _read_google(lines: list[str]) -> dict[str, str]:
    items: dict[str, list[str]] = {}
    margin = min((_indent(line) for line in lines if line.strip()), default=0)
    current: list[str] | None = None
    for line in lines:
        item = re.match(_GOOGLE_ITEM, line.strip()) if _indent(line) == margin else None
        if item:
            current = items[item[1]] = [item[2]]
        elif current is not None:
            current.append(line)
    return {name: _joined(texts) for name, texts in items.items()}


def _read_numpy(lines: list[str]) -> dict[str, str]:
    items: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        item = re.match(_NUMPY_ITEM, line) if line.strip() and _indent(line) == 0 else None
        if item:
            current = []
            for name in item[1].replace("*", "").split(","):
                items[name.strip()] = current
        elif current is not None:
            current.append(line)
    return {name: _joined(texts) for name, texts in items.items()}


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())


def _paragraphs(lines: list[str]) -> str:
    """Paragraphs as one line each, with a blank line between them."""
    text = "\n".join(line.strip() for line in lines).strip()
    return "\n\n".join(_joined(block.splitlines()) for block in re.split(r"\n\s*\n", text) if block)
