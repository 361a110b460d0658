"""Which tool a prompt asks for, and with which arguments.

Owns the rules by which the offline model calls tools (*assumed*): a full name counts
wherever it stands; a bare name counts as a whole word, an everyday verb only with a
cue such as `use`; `look up ... in PLUGIN` finds that plugin's first tool that takes a
query. A JSON object right after the name is taken as the arguments.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, cast

from executa_nexus_stub.models.base import ToolSpec, ToolUse
from executa_nexus_stub.models.prompt import quoted
from executa_nexus_stub.models.text import keywords, words
from executa_nexus_stub.models.vocabulary import EVERYDAY, STOPWORDS
from executa_protocol import codec
from executa_protocol.errors import DecodeFailure

_CUE: Final = r"(?:us(?:e|ing)|call(?:ing)?|run(?:ning)?|invok(?:e|ing)|with|via|through|tool)"
_LOOK_UP: Final = re.compile(
    r"\b(?:look(?:\s+it)?\s+up|search|find|check|consult)\b(?:.{0,200}?)\b(?:in|the)\s+(?:my\s+|the\s+)?"
    r"([A-Za-z0-9_-]+)",
    re.IGNORECASE | re.DOTALL,
)
_QUERY_NAMES: Final = frozenset({"query", "q", "question", "search", "topic", "term", "keyword"})
_TEXT_NAMES: Final = frozenset({"text", "content", "prompt", "message", "note", "body", "value"})
_BRACES: Final = 64
"""Closing braces that are tried as the end of inline arguments."""

_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")

Schema = dict[str, Any]


def wanted_tools(prompt: str, tools: Sequence[ToolSpec]) -> list[ToolUse]:
    """The calls that `prompt` asks for, in the order in which it names them, each tool once."""
    found = (
        _by_full_name(prompt, tools) or _by_bare_name(prompt, tools) or _by_plugin(prompt, tools)
    )
    calls: list[ToolUse] = []
    for end, tool in sorted(found, key=lambda item: item[0]):
        given = _inline_arguments(prompt[end:])
        calls.append(ToolUse(tool.name, given if given is not None else arguments(tool, prompt)))
    return calls


def arguments(tool: ToolSpec, prompt: str) -> dict[str, Any]:
    """Arguments for `tool` out of the prompt's words: the required ones, each of its type."""
    properties = cast("dict[str, Schema]", tool.parameters.get("properties") or {})
    required = cast("list[str]", tool.parameters.get("required") or [])
    phrases = quoted(prompt)
    numbers = _NUMBER.findall(re.sub(r"[A-Za-z]\w*", " ", prompt))
    spoken = _without_names(prompt, tool)
    texts = [name for name in required if _is_free_text(properties.get(name, {}))]
    filled: dict[str, Any] = {}
    for name in required:
        schema = properties.get(name, {})
        if name in texts:
            index = texts.index(name)
            if index < len(phrases):
                filled[name] = phrases[index]
            else:
                filled[name] = spoken if name in _TEXT_NAMES else _query(spoken)
        else:
            filled[name] = _value(schema, prompt, numbers)
    if not required:  # a tool whose query may be absent still gets one
        for name, schema in properties.items():
            if name in _QUERY_NAMES | _TEXT_NAMES and _type(schema) == "string":
                filled[name] = phrases[0] if phrases else _query(spoken)
                break
    return filled


def _by_full_name(prompt: str, tools: Sequence[ToolSpec]) -> list[tuple[int, ToolSpec]]:
    found: list[tuple[int, ToolSpec]] = []
    for tool in tools:
        match = re.search(rf"(?<![\w.]){re.escape(tool.name)}(?!\w|\.\w)", prompt)
        if match is not None:
            found.append((match.end(), tool))
    return found


def _by_bare_name(prompt: str, tools: Sequence[ToolSpec]) -> list[tuple[int, ToolSpec]]:
    found: list[tuple[int, ToolSpec]] = []
    taken: set[str] = set()
    for tool in tools:
        bare = tool.name.rpartition(".")[2]
        if bare in taken:  # two plugins with a tool of this name: the first one offered
            continue
        pattern = rf"(?<![\w.]){re.escape(bare)}(?![\w.]\w)\b"
        if bare.lower() in EVERYDAY:
            cued = rf"\b{_CUE}\s+(?:the\s+|my\s+)?[`\"']?{pattern}"
            pattern = rf"(?:{cued}|`{pattern}`|{pattern}\s+tool\b)"
        match = re.search(pattern, prompt, re.IGNORECASE)
        if match is not None:
            taken.add(bare)
            found.append((match.end(), tool))
    return found


def _by_plugin(prompt: str, tools: Sequence[ToolSpec]) -> list[tuple[int, ToolSpec]]:
    for match in _LOOK_UP.finditer(prompt):
        plugin = match.group(1).lower()
        for tool in tools:
            owner = tool.name.partition(".")[0].lower()
            properties = cast("dict[str, Schema]", tool.parameters.get("properties") or {})
            if owner == plugin and _QUERY_NAMES & properties.keys():
                return [(match.end(), tool)]
    return []


def _inline_arguments(rest: str) -> dict[str, Any] | None:
    """A JSON object right after the tool's name, or None."""
    start = rest.find("{")
    if start < 0 or rest[:start].strip(" \t\n`'\":=(") not in ("", "with"):
        return None
    end = start
    for _ in range(_BRACES):
        end = rest.find("}", end) + 1
        if not end:
            break
        try:
            value = codec.decode_any(rest[start:end].encode())
        except DecodeFailure:
            continue
        return cast("dict[str, Any]", value)
    return None


def _query(spoken: str) -> str:
    """The key words of a sentence, in its own order."""
    found = [word for word in words(spoken) if word not in STOPWORDS and word not in EVERYDAY]
    wanted = set(keywords(" ".join(found), 6)) | {word for word in found if word.isdigit()}
    ordered = list(dict.fromkeys(word for word in found if word in wanted))
    return " ".join(ordered) or spoken.strip()


def _without_names(prompt: str, tool: ToolSpec) -> str:
    """The prompt without the words that only say which tool to use."""
    plugin, _, bare = tool.name.rpartition(".")
    name = rf"`?(?:{re.escape(tool.name)}|\b{re.escape(bare)}\b)`?(?:\s+tool\b)?"
    text = re.sub(rf"\b{_CUE}\s+(?:the\s+|my\s+)?{name}", " ", prompt, flags=re.IGNORECASE)
    text = re.sub(name, " ", text, flags=re.IGNORECASE)
    if plugin:
        text = re.sub(rf"\b(?:in|from)\s+(?:the\s+|my\s+)?{re.escape(plugin)}\b", " ", text)
        text = re.sub(rf"\b{re.escape(plugin)}\b", " ", text)
    return re.sub(r"\s+", " ", text).strip(" :,.;-") or prompt.strip()


def _is_free_text(schema: Schema) -> bool:
    return _type(schema) == "string" and not {"enum", "const", "default"} & schema.keys()


def _type(schema: Schema) -> str:
    kind: Any = schema.get("type", "string")
    if isinstance(kind, list):
        names = [name for name in cast("list[str]", kind) if name != "null"]
        return names[0] if names else "null"
    return str(kind)


def _value(schema: Schema, prompt: str, numbers: list[str]) -> Any:
    if "const" in schema:
        return schema["const"]
    options = cast("list[Any]", schema.get("enum") or [])
    if options:
        lower = prompt.lower()
        named = [value for value in options if isinstance(value, str) and value.lower() in lower]
        return named[0] if named else options[0]
    if "default" in schema:
        return schema["default"]
    kind = _type(schema)
    if kind in ("integer", "number"):
        low, high = schema.get("minimum"), schema.get("maximum")
        value: float = float(numbers.pop(0)) if numbers else low if low is not None else 1
        value = value if low is None else max(value, low)
        value = value if high is None else min(value, high)
        return int(value) if kind == "integer" or float(value).is_integer() else value
    if kind == "boolean":
        return False
    if kind == "array":
        items = cast("Schema", schema.get("items") or {})
        if _type(items) == "string" and not items.get("enum"):
            return quoted(prompt) or keywords(prompt, 3)
        return [_value(items, prompt, numbers)] if schema.get("minItems") else []
    if kind == "object":
        inner = cast("dict[str, Schema]", schema.get("properties") or {})
        names = cast("list[str]", schema.get("required") or [])
        return {name: _value(inner.get(name, {}), prompt, numbers) for name in names}
    return None if kind == "null" else _query(prompt)
