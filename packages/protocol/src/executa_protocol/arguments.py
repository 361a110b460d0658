"""Arguments of a call, held against the tool's manifest entry before it is accepted.

Owns what fits a parameter. A boolean is never a number. ``1.0`` is an integer in
tolerant mode (JSON Schema says so) and not in strict mode. Null for an optional
argument reads as absent in tolerant mode. Arguments that the manifest does not
name pass: plugins of the field describe less than they take.
"""

from typing import Any, Final, cast

from msgspec import UNSET

from executa_protocol.manifest import Fault, Parameter, ParameterType, Tool

_WORDS: Final[dict[ParameterType, str]] = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "array": "an array",
    "object": "an object",
}

_TYPES: Final[tuple[tuple[type, ParameterType], ...]] = (
    (str, "string"),
    (bool, "boolean"),  # before int, of which bool is a subclass
    (int, "integer"),
    (float, "number"),
    (list, "array"),
    (dict, "object"),
)


def validate_arguments(
    tool: Tool, arguments: dict[str, Any], *, strict: bool = False
) -> list[Fault]:
    """Everything that is wrong with `arguments`, by paths such as ``$.text``; empty when all fit.

    With `multi_account` an optional string ``account`` is known too.
    """
    parameters = tool.parameters
    if tool.multi_account and all(known.name != "account" for known in parameters):
        parameters = [*parameters, Parameter(name="account", type="string", required=False)]
    faults: list[Fault] = []
    for parameter in parameters:
        path = f"$.{parameter.name}"
        if parameter.name not in arguments:
            if parameter.required and parameter.default is UNSET:
                faults.append(Fault(path, "required"))
            continue
        value = arguments[parameter.name]
        if value is None and not parameter.required and not strict:
            continue
        faults.extend(_faults(value, parameter, path, strict=strict))
    return faults


def _faults(value: Any, parameter: Parameter, path: str, *, strict: bool) -> list[Fault]:
    wrong = type_fault(value, parameter.type, strict=strict)
    if wrong is not None:
        return [Fault(path, wrong)]
    if parameter.enum is not UNSET and not any(_same(value, one) for one in parameter.enum):
        return [Fault(path, f"expected one of {parameter.enum!r}")]
    if parameter.type != "array" or parameter.items is UNSET:
        return []
    kind = parameter.items.type
    return [
        Fault(f"{path}[{index}]", wrong)
        for index, item in enumerate(cast("list[Any]", value))
        if (wrong := type_fault(item, kind, strict=strict)) is not None
    ]


def type_fault(value: Any, kind: ParameterType, *, strict: bool) -> str | None:
    """Why `value` is not of `kind`, or None when it is."""
    own = type_of(value)
    if own == kind or (kind == "number" and own == "integer"):
        return None
    if kind == "integer" and not strict and isinstance(value, float) and value.is_integer():
        return None
    # What it is, and not its content: arguments may be private.
    got = "null" if value is None else _WORDS[own] if own is not None else type(value).__name__
    return f"expected {_WORDS[kind]}, got {got}"


def type_of(value: Any) -> ParameterType | None:
    """The type of a JSON value; None for null and for what is no JSON value."""
    for python, kind in _TYPES:
        if isinstance(value, python):
            return kind
    return None


def _same(one: Any, other: Any) -> bool:
    """Equality of JSON values: in Python alone true would equal 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other
