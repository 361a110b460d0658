"""Whether a value fits a JSON Schema: the part of the language that response formats use.

Owns validation, and the resolution of local references. Knows the keywords of objects,
arrays, strings, numbers and the combinators; formats and everything unknown are
annotations, as the standard has them. Pure; nothing here produces values.
"""

import re
from typing import Any, Final, cast

Schema = dict[str, Any] | bool

_DEPTH: Final = 64
_NESTED: Final = re.compile(r"[+*}][^()]*\)[+*{]")


def problem(value: Any, schema: Schema, root: Schema | None = None) -> str | None:
    """Why `value` does not fit `schema`, with the path; None when it does."""
    return _check(value, schema, schema if root is None else root, "$", 0)


def resolve(schema: Schema, root: Schema) -> Schema:
    """Follow local ``$ref``s; an unknown one means nothing and allows everything."""
    for _ in range(_DEPTH):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            return schema
        target: Any = root
        for step in cast("str", schema["$ref"]).removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            target = cast("dict[str, Any]", target).get(name) if isinstance(target, dict) else None
        if not isinstance(target, dict | bool):
            return True
        schema = cast("Schema", target)
    return True


def types_of(schema: dict[str, Any]) -> list[str]:
    """The types that a schema names, as a list; empty when it names none."""
    kind: Any = schema.get("type")
    if isinstance(kind, list):
        return [str(name) for name in cast("list[Any]", kind)]
    return [kind] if isinstance(kind, str) else []


def has_type(value: Any, kind: str) -> bool:
    """Whether a decoded JSON value is of that type; 1.0 is an integer, true is not a number."""
    match kind:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "integer":
            return _is_number(value) and float(value).is_integer()
        case _:
            return kind == "number" and _is_number(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def same(one: Any, other: Any) -> bool:
    """Equality as JSON has it: true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _check(value: Any, schema: Schema, root: Schema, path: str, depth: int) -> str | None:
    schema = resolve(schema, root)
    if isinstance(schema, bool):
        return None if schema else f"{path}: nothing is allowed here"
    if depth > _DEPTH:
        return f"{path}: nests too deep"
    kinds = types_of(schema)
    if kinds and not any(has_type(value, kind) for kind in kinds):
        return f"{path}: expected {' or '.join(kinds)}"
    if "const" in schema and not same(value, schema["const"]):
        return f"{path}: expected the constant"
    if "enum" in schema and not any(same(value, option) for option in schema["enum"]):
        return f"{path}: not one of the options"
    fault = _combined(value, schema, root, path, depth)
    if fault is None and isinstance(value, str):
        fault = _string(value, schema, path)
    if fault is None and isinstance(value, int | float) and not isinstance(value, bool):
        fault = _number(value, schema, path)
    if fault is None and isinstance(value, list):
        fault = _array(cast("list[Any]", value), schema, root, path, depth)
    if fault is None and isinstance(value, dict):
        fault = _object(cast("dict[str, Any]", value), schema, root, path, depth)
    return fault


def _combined(
    value: Any, schema: dict[str, Any], root: Schema, path: str, depth: int
) -> str | None:
    for part in cast("list[Schema]", schema.get("allOf") or []):
        if (fault := _check(value, part, root, path, depth + 1)) is not None:
            return fault
    for word in ("anyOf", "oneOf"):
        options = cast("list[Schema]", schema.get(word) or [])
        fits = sum(_check(value, option, root, path, depth + 1) is None for option in options)
        if options and (fits == 0 or (word == "oneOf" and fits > 1)):
            return f"{path}: fits {fits} of {word}"
    if "not" in schema and _check(value, schema["not"], root, path, depth + 1) is None:
        return f"{path}: fits what it must not"
    return None


def _string(value: str, schema: dict[str, Any], path: str) -> str | None:
    if len(value) < schema.get("minLength", 0):
        return f"{path}: too short"
    if len(value) > schema.get("maxLength", len(value)):
        return f"{path}: too long"
    pattern: Any = schema.get("pattern")
    if isinstance(pattern, str):
        if _NESTED.search(pattern):  # could take time without end; nobody's answer needs it
            return f"{path}: the pattern repeats a repetition"
        try:
            if re.search(pattern, value) is None:
                return f"{path}: does not match the pattern"
        except re.error:
            return f"{path}: the pattern cannot be read"
    return None


def _number(value: float, schema: dict[str, Any], path: str) -> str | None:
    if "minimum" in schema and value < schema["minimum"]:
        return f"{path}: too small"
    if "maximum" in schema and value > schema["maximum"]:
        return f"{path}: too large"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        return f"{path}: too small"
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        return f"{path}: too large"
    step: Any = schema.get("multipleOf")
    if step and abs(value / step - round(value / step)) > 1e-9:
        return f"{path}: no multiple of {step}"
    return None


def _array(
    value: list[Any], schema: dict[str, Any], root: Schema, path: str, depth: int
) -> str | None:
    if len(value) < schema.get("minItems", 0):
        return f"{path}: too few items"
    if len(value) > schema.get("maxItems", len(value)):
        return f"{path}: too many items"
    if schema.get("uniqueItems") and any(
        same(item, other) for index, item in enumerate(value) for other in value[:index]
    ):
        return f"{path}: an item repeats"
    heads = cast("list[Schema]", schema.get("prefixItems") or [])
    rest = cast("Schema", schema.get("items", True))
    for index, item in enumerate(value):
        inner = heads[index] if index < len(heads) else rest
        if (fault := _check(item, inner, root, f"{path}[{index}]", depth + 1)) is not None:
            return fault
    return None


def _object(
    value: dict[str, Any], schema: dict[str, Any], root: Schema, path: str, depth: int
) -> str | None:
    for name in cast("list[str]", schema.get("required") or []):
        if name not in value:
            return f"{path}: {name} is missing"
    if len(value) < schema.get("minProperties", 0):
        return f"{path}: too few members"
    if len(value) > schema.get("maxProperties", len(value)):
        return f"{path}: too many members"
    known = cast("dict[str, Schema]", schema.get("properties") or {})
    patterns = cast("dict[str, Schema]", schema.get("patternProperties") or {})
    for name, item in value.items():
        inner = [known[name]] if name in known else []
        inner += [part for pattern, part in patterns.items() if re.search(pattern, name)]
        if not inner:
            inner = [cast("Schema", schema.get("additionalProperties", True))]
        for part in inner:
            if (fault := _check(item, part, root, f"{path}.{name}", depth + 1)) is not None:
                return fault
    return None
