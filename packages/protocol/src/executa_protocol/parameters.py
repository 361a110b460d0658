"""A tool's parameters: the manifest's list, and the JSON Schema that some plugins send instead.

Owns the reading of both (R-03: a schema is converted, with a finding). Detail that a
parameter cannot hold (patterns, bounds, nested properties) is left out. How a tool is
offered to a model is `manifest_schema`'s business.
"""

from typing import Any, Final, cast, get_args

from msgspec import UNSET, UnsetType

from executa_protocol.arguments import type_fault, type_of
from executa_protocol.faults import Collector, Object, as_object
from executa_protocol.manifest import Items, ManifestError, Parameter, ParameterType
from executa_protocol.readings import TOLERANT, Reader

TYPES: Final[tuple[ParameterType, ...]] = get_args(ParameterType)

_OTHER_NAMES: Final[dict[str, ParameterType]] = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}


def read_parameters(value: Any, path: str, out: Collector) -> list[Parameter]:
    """The parameters of a tool from the value of its `parameters` member."""
    if value is None:
        return []
    schema = as_object(value)
    if schema is not None:
        out.tolerate("MANI-011", path, "a JSON Schema instead of an array; it is converted")
        return _from_schema(schema, path, out)
    if not isinstance(value, list):
        out.fault(path, "expected an array")
        return []
    parameters: list[Parameter] = []
    known: list[tuple[str, Object]] = []
    for index, entry in enumerate(cast("list[Any]", value)):
        here = f"{path}[{index}]"
        item = as_object(entry)
        if item is None:
            out.fault(here, "expected an object")
        else:
            parameters.append(_parameter(item, here, out))
            known.append((here, item))
    out.unique(known, "name")
    return parameters


def parameters_from_json_schema(schema: Object, reader: Reader = TOLERANT) -> list[Parameter]:
    """The parameters that a JSON Schema of type object describes.

    What a parameter cannot hold is left out. Raises `ManifestError` for a schema whose
    properties are no objects.
    """
    out = Collector(reader)
    parameters = _from_schema(schema, "", out)
    if out.faults:
        raise ManifestError(out.faults)
    return parameters


def _parameter(item: Object, path: str, out: Collector) -> Parameter:
    kind = _listed_type(item, path, out)
    return _finish(
        Parameter(
            name=out.required_text(item, "name", path),
            type=kind,
            description=out.text(item, "description", path) or "",
            required=out.flag(item, "required", path, default=True),
            items=_items(item, kind, path, out),
        ),
        item,
        path,
        out,
    )


def _finish(parameter: Parameter, item: Object, path: str, out: Collector) -> Parameter:
    """Take over `enum` and `default`, which mean the same in both forms."""
    enum = item.get("enum")
    if isinstance(enum, list) and enum:
        parameter.enum = cast("list[Any]", enum)
    elif enum is not None:
        out.fault(f"{path}.enum", "expected an array with at least one value")
    default = item.get("default")
    if default is not None:
        wrong = type_fault(default, parameter.type, strict=False)
        if wrong is not None:
            out.tolerate("MANI-012", f"{path}.default", f"{wrong}; it is left out")
        else:
            parameter.default = default
    return parameter


def _listed_type(item: Object, path: str, out: Collector) -> ParameterType:
    where = f"{path}.type"
    word = item.get("type")
    if word in TYPES:
        return word
    if "type" not in item:
        out.tolerate("MANI-013", where, "absent; read as string")
    elif isinstance(word, str) and word in _OTHER_NAMES:
        out.tolerate("MANI-014", where, f"{word!r} is read as {_OTHER_NAMES[word]}")
        return _OTHER_NAMES[word]
    else:
        out.fault(where, f"expected one of {', '.join(TYPES)}")
    return "string"


def _items(item: Object, kind: ParameterType, path: str, out: Collector) -> Items | UnsetType:
    if kind != "array":
        return UNSET
    if item.get("items_type") is not None:
        return Items(out.choice(item, "items_type", path, TYPES, "string"))
    items = out.object(item, "items", path)
    if items is None:
        if item.get("items") is None:
            out.tolerate("MANI-015", f"{path}.items", "absent; read as string")
        return Items("string")
    return Items(out.choice(items, "type", f"{path}.items", TYPES, "string"))


# --- JSON Schema ---------------------------------------------------------------


def _from_schema(schema: Object, path: str, out: Collector) -> list[Parameter]:
    where = f"{path}.properties" if path else "properties"
    properties = as_object(schema.get("properties"))
    if properties is None:
        if schema.get("properties") is not None:
            out.fault(where, "expected an object")
        return []
    required = schema.get("required")
    names = cast("list[Any]", required) if isinstance(required, list) else []
    parameters: list[Parameter] = []
    for name, entry in properties.items():
        here = f"{where}.{name}"
        item = as_object(entry)
        if item is None:
            if not isinstance(entry, bool):  # true and false are schemas too: anything, nothing
                out.fault(here, "expected an object")
            continue
        kind = schema_type(item)
        description = item.get("description")
        items = as_object(item.get("items"))
        parameter = Parameter(
            name=name,
            type=kind,
            description=description if isinstance(description, str) else "",
            required=name in names,
        )
        if kind == "array":
            parameter.items = Items(schema_type(items) if items is not None else "string")
        parameters.append(_finish(parameter, item, here, out))
    return parameters


def schema_type(schema: Object) -> ParameterType:
    """The one type that comes closest to a JSON Schema; ``string`` when it does not say."""
    word = schema.get("type")
    candidates = cast("list[Any]", word) if isinstance(word, list) else [word]
    for candidate in candidates:
        if candidate in TYPES:
            return candidate
    for member in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(member)
        if isinstance(branches, list):
            for branch in cast("list[Any]", branches):
                inner = as_object(branch)
                if inner is not None and inner.get("type") in TYPES:
                    return cast("ParameterType", inner["type"])
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    enum = schema.get("enum")
    if isinstance(enum, list) and enum:
        return type_of(cast("list[Any]", enum)[0]) or "string"
    return "string"
