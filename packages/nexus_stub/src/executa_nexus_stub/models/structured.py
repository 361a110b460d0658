"""JSON out of text: values for a schema's members, taken from the material where they can be.

Owns how the offline model fills JSON mode and JSON schema mode. What it returns has
been validated by `schema`; a schema that it cannot satisfy gives the nearest it has,
and the caller reports it as invalid.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, cast

from executa_nexus_stub.models import extract
from executa_nexus_stub.models.estimate import count_tokens, cut_to_tokens
from executa_nexus_stub.models.prompt import Prompt
from executa_nexus_stub.models.schema import Schema, problem, resolve, same, types_of
from executa_nexus_stub.models.text import key_stems, keywords, matches, scores, sentences
from executa_protocol import codec

_RICHNESS: Final = (40, 20, 10, 5, 2, 1)
"""Tokens of one text member, from generous to barely there, until the whole fits."""

_OPTIONAL_DEPTH: Final = 3
_DEPTH: Final = 24
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)")
_SAMPLES: Final = (
    "1970-01-01", "1970-01-01T00:00:00Z", "00:00:00", "none@example.com", "https://example.com/",
    "00000000-0000-4000-8000-000000000000", "1.0.0", "127.0.0.1", "en", "EN", "USD", "#000000",
    "+10000000000", "a", "A", "A1", "AB-12", "a-b", "a_b", "00000",
)  # fmt: skip
_FORMATS: Final = {
    "date": "1970-01-01",
    "date-time": "1970-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "none@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
}
_IN_TEXT: Final = {
    "date": re.compile(r"\b\d{4}-\d{2}-\d{2}\b"),
    "date-time": re.compile(
        r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})"
    ),
    "email": re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"),
    "uri": re.compile(r"\bhttps?://[^\s<>\"')]+[^\s<>\"').,;]"),
}


def fill_text(schema: dict[str, Any] | None, prompt: Prompt, max_tokens: int) -> str:
    """JSON for `schema` (or any object if None), as rich as fits into `max_tokens`."""
    if schema is None:
        schema = {
            "type": "object",
            "properties": {
                "answer": {"type": "string"},
                "keywords": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
            },
            "required": ["answer", "keywords"],
        }
    text = "{}"
    for richness in _RICHNESS:
        value = _Filler(schema, prompt, richness).value(schema, "", 0)
        text = codec.encode(value).decode()
        if count_tokens(text) <= max_tokens:
            break
    return text


class _Filler:
    """Fills one schema once. Strings are handed out in order, so that lists vary."""

    def __init__(self, root: dict[str, Any], prompt: Prompt, richness: int) -> None:
        self._root = root
        self._richness = richness
        self._text = prompt.material or prompt.instruction
        self._parts = sentences(self._text) or [self._text.strip() or "-"]
        self._ranks = scores(self._parts)
        self._best = extract.answer(prompt, max(richness, 1)) or "-"
        self._words = keywords(self._text, 24) or ["text"]
        self._numbers = [float(found) for found in _NUMBER.findall(self._text)]

    def value(self, schema: Schema, name: str, depth: int, turn: int = 0) -> Any:
        """A value for `schema`; `name` is the member's, `turn` counts items of one list."""
        schema = resolve(schema, self._root)
        if isinstance(schema, bool):
            return None if depth > _DEPTH else self._string({}, name, turn)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._option(cast("list[Any]", schema["enum"]))
        for word in ("anyOf", "oneOf"):
            if schema.get(word):
                return self._branch(schema, word, name, depth, turn)
        if schema.get("allOf"):
            schema = self._merged(schema)
        kind = self._kind(schema)
        if depth > _DEPTH or kind == "null":
            return None
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, name, depth)
        if kind in ("integer", "number"):
            return self._number(schema, kind, turn)
        if kind == "boolean":
            return bool(
                matches(self._parts, key_stems(name.replace("_", " "))) and self._named(name)
            )
        return self._string(schema, name, turn)

    def _kind(self, schema: dict[str, Any]) -> str:
        kinds = [kind for kind in types_of(schema) if kind != "null"] or types_of(schema)
        if kinds:
            return kinds[0]
        if "properties" in schema or "required" in schema:
            return "object"
        if "items" in schema or "prefixItems" in schema:
            return "array"
        return "number" if "minimum" in schema or "maximum" in schema else "string"

    def _named(self, name: str) -> bool:
        return any(matches([self._text], key_stems(name.replace("_", " "))))

    def _option(self, options: list[Any]) -> Any:
        """The option that the text names first, else the first."""
        lower = self._text.lower()
        found = [(lower.find(str(item).lower()), index) for index, item in enumerate(options)]
        named = [pair for pair in found if pair[0] >= 0 and isinstance(options[pair[1]], str)]
        return options[min(named)[1]] if named else options[0]

    def _branch(self, schema: dict[str, Any], word: str, name: str, depth: int, turn: int) -> Any:
        rest = {key: item for key, item in schema.items() if key != word}
        options = cast("list[Schema]", schema[word])
        first: Any = None
        for index, option in enumerate(options):
            choice = resolve(option, self._root)
            merged = self._merged({"allOf": [rest, choice]}) if isinstance(choice, dict) else rest
            value = self.value(merged, name, depth + 1, turn)
            if problem(value, schema, self._root) is None:
                return value
            first = value if index == 0 else first
        return first

    def _merged(self, schema: dict[str, Any]) -> dict[str, Any]:
        """`allOf` laid over the rest: members join, later bounds win."""
        merged = {key: item for key, item in schema.items() if key != "allOf"}
        for part in cast("list[Schema]", schema["allOf"]):
            inner = resolve(part, self._root)
            if not isinstance(inner, dict):
                continue
            inner = self._merged(inner) if inner.get("allOf") else inner
            for key, item in inner.items():
                if key == "properties":
                    merged[key] = {**merged.get(key, {}), **item}
                elif key == "required":
                    merged[key] = [*merged.get(key, []), *item]
                else:
                    merged[key] = item
        return merged

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        known = cast("dict[str, Schema]", schema.get("properties") or {})
        required = cast("list[str]", schema.get("required") or [])
        names = list(dict.fromkeys([*(name for name in known if name in required), *required]))
        if depth < _OPTIONAL_DEPTH and self._richness > 1:
            names = list(dict.fromkeys([*known, *required]))
        names = names[: max(len(required), schema.get("maxProperties", len(names)))]
        spare = cast("Schema", schema.get("additionalProperties", True))
        filled = {name: self.value(known.get(name, spare), name, depth + 1) for name in names}
        for name in [
            *known,
            *(f"item{number}" for number in range(schema.get("minProperties", 0))),
        ]:
            if len(filled) >= schema.get("minProperties", 0):
                break
            filled.setdefault(name, self.value(known.get(name, spare), name, depth + 1))
        return filled

    def _array(self, schema: dict[str, Any], name: str, depth: int) -> list[Any]:
        heads = cast("list[Schema]", schema.get("prefixItems") or [])
        least = max(schema.get("minItems", 0), len(heads))
        wanted = max(least, 3 if self._richness > 5 else 1)
        wanted = min(wanted, schema.get("maxItems", wanted))
        items = cast("Schema", schema.get("items", True))
        filled: list[Any] = []
        for turn in range(wanted * (8 if schema.get("uniqueItems") else 1)):
            if len(filled) == wanted:
                break
            inner = heads[len(filled)] if len(filled) < len(heads) else items
            item = self.value(inner, name, depth + 1, turn)
            if not schema.get("uniqueItems") or not any(same(item, other) for other in filled):
                filled.append(item)
        return filled

    def _number(self, schema: dict[str, Any], kind: str, turn: int) -> float:
        for value in self._number_candidates(schema, turn):
            fitting = int(value) if kind == "integer" or value.is_integer() else value
            if problem(fitting, schema, self._root) is None:
                return fitting
        return 0

    def _number_candidates(self, schema: dict[str, Any], turn: int) -> Iterator[float]:
        shift = turn % len(self._numbers) if self._numbers else 0
        yield from self._numbers[shift:] + self._numbers[:shift]
        step = float(schema.get("multipleOf") or 1)
        low: Any = schema.get("minimum", schema.get("exclusiveMinimum"))
        high: Any = schema.get("maximum", schema.get("exclusiveMaximum"))
        if low is not None and high is not None:
            yield (low + high) / 2
        base = low if low is not None else high if high is not None else 0
        start = float(base // step * step)
        for offset in (turn, 0, 1, -1, 2, -2):
            yield start + offset * step
        yield from (float(bound) for bound in (low, high) if bound is not None)

    def _string(self, schema: dict[str, Any], name: str, turn: int) -> str:
        least = schema.get("minLength", 0)
        most = schema.get("maxLength", max(4096, least))
        for text in self._string_candidates(schema, name, turn):
            fitting = _lengthen(text, least)[:most].strip() if most else ""
            fitting = fitting if len(fitting) >= least else _lengthen(text, least)[:most]
            if problem(fitting, schema, self._root) is None:
                return fitting
        return self._best[:most]

    def _string_candidates(self, schema: dict[str, Any], name: str, turn: int) -> Iterator[str]:
        kind = str(schema.get("format", ""))
        if kind in _IN_TEXT:
            yield from _IN_TEXT[kind].findall(self._text)
        if kind in _FORMATS:
            yield _FORMATS[kind]
        word = self._words[turn % len(self._words)]
        if turn >= len(self._parts):  # a list longer than the text has sentences
            yield word if turn < len(self._parts) + len(self._words) else f"{word} {turn}"
        if "pattern" not in schema:
            if re.search(r"keyword|tag|topic|category|label|name$|^id$|word|lang|code", name):
                yield word
            elif re.search(r"title|heading|subject", name):
                yield cut_to_tokens(self._ranked(turn), min(10, self._richness)).rstrip(".")
            else:
                whole = (
                    self._best if turn == 0 and not self._goal(name) else self._ranked(turn, name)
                )
                yield cut_to_tokens(whole, self._richness)
        yield from self._words[turn:]
        yield from re.findall(r"\S+", self._text)
        yield from _SAMPLES
        yield from (sign * count for count in range(1, 65) for sign in "0aA1")

    def _goal(self, name: str) -> frozenset[str]:
        goal = key_stems(name.replace("_", " "))
        return goal if any(matches(self._parts, goal)) else frozenset()

    def _ranked(self, turn: int, name: str = "") -> str:
        """The sentence of rank `turn` for a member of that name."""
        goal = self._goal(name)
        ranks = matches(self._parts, goal) if goal else self._ranks
        order = sorted(range(len(ranks)), key=lambda index: (-ranks[index], index))
        return self._parts[order[turn % len(order)]]


def _lengthen(text: str, least: int) -> str:
    while len(text) < least:
        text = f"{text} {text}" if text else "-"
    return text
