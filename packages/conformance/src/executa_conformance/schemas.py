"""Holds a value against a JSON Schema of the protocol (draft 2020-12, what those schemas use).

A keyword that it does not know is an error and not a pass: a schema that began to use one
would otherwise check nothing.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, cast

from executa_protocol.schema import schemas as protocol_schemas

Object = dict[str, Any]
Keyword = Callable[[Any, Any, Object, str], Iterator[str]]


class UnknownKeyword(Exception):
    """A schema uses what this validator does not know."""


@cache
def schema(name: str) -> Object | None:
    """A schema of the protocol by its name, such as ``invoke.result``; None if there is none."""
    return _all().get(name)


@cache
def _all() -> Mapping[str, Object]:
    return protocol_schemas()


def faults(value: Any, name: str) -> list[str]:
    """What in `value` breaks the schema of this name; empty if all is well, or if there is none."""
    document = schema(name)
    return [] if document is None else list(validate(value, document, document, "$"))


def validate(value: Any, part: Any, root: Object, path: str) -> Iterator[str]:
    """Every fault of `value` under `part` of the document `root`. Raises `UnknownKeyword`."""
    if part is True or part is False:
        if part is False:
            yield f"{path}: nothing is allowed here"
        return
    for keyword, argument in cast("Object", part).items():
        if keyword in _SILENT:
            continue
        rule = _RULES.get(keyword)
        if rule is None:
            msg = f"the schema uses {keyword!r}"
            raise UnknownKeyword(msg)
        beside = (argument, part) if keyword == "additionalProperties" else argument
        yield from rule(value, beside, root, path)


_SILENT: Final = frozenset(
    # The last one only hints at which of `anyOf` it will be.
    {"$schema", "$defs", "title", "description", "default", "examples", "discriminator"}
)

_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "string": lambda it: isinstance(it, str),
    "boolean": lambda it: isinstance(it, bool),
    "null": lambda it: it is None,
    "array": lambda it: isinstance(it, list),
    "object": lambda it: isinstance(it, dict),
    "number": lambda it: isinstance(it, int | float) and not isinstance(it, bool),
    "integer": lambda it: (
        (isinstance(it, int) and not isinstance(it, bool))
        or (isinstance(it, float) and it.is_integer())
    ),
}


def _type(value: Any, wanted: Any, root: Object, path: str) -> Iterator[str]:
    words = cast("list[str]", wanted) if isinstance(wanted, list) else [str(wanted)]
    if not any(_TYPES[word](value) for word in words):
        yield f"{path}: expected {' or '.join(words)}, got {_kind(value)}"


def _kind(value: Any) -> str:
    order = ("null", "boolean", "integer", "number", "string", "array", "object")
    return next(word for word in order if _TYPES[word](value))


def _reference(value: Any, target: str, root: Object, path: str) -> Iterator[str]:
    part: Any = root
    for step in target.removeprefix("#/").split("/"):
        part = part[step]
    yield from validate(value, part, root, path)


def _properties(value: Any, known: Object, root: Object, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        members = cast("Object", value)
        for name, part in known.items():
            if name in members:
                yield from validate(members[name], part, root, f"{path}.{name}")


def _required(value: Any, names: list[str], root: Object, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{path}.{name}: required" for name in names if name not in value)


def _additional(value: Any, argument: Any, root: Object, path: str) -> Iterator[str]:
    part, beside = argument
    if isinstance(value, dict):
        known = beside.get("properties", {})
        for name, member in cast("Object", value).items():
            if name not in known:
                yield from validate(member, part, root, f"{path}.{name}")


def _items(value: Any, part: Any, root: Object, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from validate(item, part, root, f"{path}[{index}]")


def _any_of(value: Any, parts: list[Any], root: Object, path: str) -> Iterator[str]:
    found = [list(validate(value, part, root, path)) for part in parts]
    if all(found):
        yield f"{path}: fits none of {len(parts)} forms ({min(found, key=len)[0]})"


def _enum(value: Any, allowed: list[Any], root: Object, path: str) -> Iterator[str]:
    if not any(_same(value, one) for one in allowed):
        yield f"{path}: expected one of {allowed!r}, got {value!r:.60}"


def _const(value: Any, wanted: Any, root: Object, path: str) -> Iterator[str]:
    if not _same(value, wanted):
        yield f"{path}: expected {wanted!r}, got {value!r:.60}"


def _same(one: Any, other: Any) -> bool:
    """Equality of JSON values: in Python alone true would equal 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _pattern(value: Any, pattern: str, root: Object, path: str) -> Iterator[str]:
    if isinstance(value, str) and not re.search(pattern, value):
        yield f"{path}: does not match {pattern}"


def _itself(value: Any) -> Any:
    return value


def _bound(kinds: type | tuple[type, ...], measure: Any, sign: int, word: str) -> Keyword:
    def rule(value: Any, bound: float, root: Object, path: str) -> Iterator[str]:
        if isinstance(value, kinds) and not isinstance(value, bool):
            size = measure(value)
            if (size - bound) * sign < 0:
                yield f"{path}: {size} is {word} {bound}"

    return rule


_RULES: Final[dict[str, Keyword]] = {
    "type": _type,
    "$ref": _reference,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "items": _items,
    "anyOf": _any_of,
    "enum": _enum,
    "const": _const,
    "pattern": _pattern,
    "minimum": _bound((int, float), _itself, 1, "less than"),
    "maximum": _bound((int, float), _itself, -1, "more than"),
    "minLength": _bound(str, len, 1, "fewer characters than"),
    "maxLength": _bound(str, len, -1, "more characters than"),
    "minItems": _bound(list, len, 1, "fewer items than"),
    "maxItems": _bound(list, len, -1, "more items than"),
}
