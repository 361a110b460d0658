"""A function's signature as a tool's parameters, and the arguments of a call as its values.

Owns what a call must look like: `Schema.read` turns the raw arguments of an invoke into
keyword arguments or refuses them, naming the argument, before the tool runs. Which
parameter takes the `Context` is found here too.
"""

import inspect
import typing
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Union

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import asdict

from executa_protocol import codec
from executa_protocol.errors import DecodeFailure, UsageError
from executa_protocol.methods.reading import InvalidParams
from executa_sdk import docstrings, jsontypes

CONTEXT_TYPES: Final = frozenset({"Context", "SyncContext"})

_MISSING: Final = "Object missing required field `"
_UNKNOWN: Final = "Object contains unknown field `"
_JSON_DEFAULTS: Final = (str, int, float, bool, list, dict, tuple, set, frozenset)


class Schema:
    """What a tool takes.

    `parameters` are entries of the manifest. `context` is the name of the parameter that
    the call's context goes to, or None. `description` is the docstring's first part.
    `arguments` is the type that arguments are read as, `hints` are the types of its members.
    """

    __slots__ = (
        "_decoder", "_may_lack", "_names", "arguments", "context", "description", "hints",
        "parameters",
    )  # fmt: skip

    def __init__(self, fn: Callable[..., Any], tool: str) -> None:
        target = function_of(fn)
        documented = docstrings.parse(target.__doc__ or fn.__doc__)
        self.description = documented.description
        self.context: str | None = None
        self.parameters: list[dict[str, Any]] = []
        fields: list[Any] = []
        hints = _hints(target, tool)
        for parameter in inspect.signature(fn).parameters.values():
            name = parameter.name
            where = f"tool {tool!r}, parameter {name!r}"
            if is_context(hints.get(name)):
                if self.context is not None:
                    msg = f"{where}: the context is taken by {self.context!r} already"
                    raise UsageError(msg)
                self.context = name
                continue
            hint = _checked(parameter, hints, where)
            self.parameters.append(_entry(parameter, hint, documented.parameters, where))
            if parameter.default is not parameter.empty:
                # Left out means that the function's own default applies.
                fields.append((name, Union[hint, UnsetType], UNSET))  # noqa: UP007 - a value
            elif jsontypes.is_optional(hint):
                fields.append((name, hint, None))
            else:
                fields.append((name, hint))
        self._names = tuple(entry["name"] for entry in self.parameters)
        self._may_lack = any(field[2:] == (UNSET,) for field in fields)
        self.hints = tuple(field[1] for field in fields)
        self.arguments, self._decoder = _decoder(fields, tool)

    def read(self, arguments: Raw) -> dict[str, Any]:
        """The keyword arguments of a call, of the types that the function asks for.

        Raises `InvalidParams` (-32602) for a missing, unexpected or mistyped argument.
        """
        try:
            values = codec.decode(arguments, self._decoder)
        except DecodeFailure as fault:
            raise _refusal(fault, self._names) from None
        return self.keywords(values)

    def keywords(self, values: Struct) -> dict[str, Any]:
        """The keyword arguments in decoded `arguments`: those that were given."""
        if not self._may_lack:
            return asdict(values)
        read: dict[str, Any] = {}
        for name in self._names:
            value = getattr(values, name)
            if value is not UNSET:
                read[name] = value
        return read


def function_of(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function or method behind partials and callable objects."""
    while isinstance(fn, partial):
        fn = fn.func
    return fn if inspect.isroutine(fn) else fn.__call__


def is_context(hint: Any) -> bool:
    """Whether a hint asks for the call's context."""
    hint, _ = jsontypes.unwrap(hint)
    for member in jsontypes.without_none(hint) or (hint,):
        if getattr(member, "__name__", "") in CONTEXT_TYPES:
            return str(getattr(member, "__module__", "")).startswith("executa_sdk.")
    return False


def _hints(fn: Callable[..., Any], tool: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(fn, include_extras=True)
    except NameError as fault:
        msg = (
            f"tool {tool!r}: the type hint {fault.name!r} cannot be found where the function "
            "is defined; define or import the type at the top of the module"
        )
        raise UsageError(msg) from fault


def _checked(parameter: inspect.Parameter, hints: dict[str, Any], where: str) -> Any:
    if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD and (
        parameter.kind is not parameter.KEYWORD_ONLY
    ):
        msg = f"{where}: arguments come by name, so *, ** and / have no place in a tool"
        raise UsageError(msg)
    if parameter.name == "self":
        msg = f"{where}: register the method of an object instead, plugin.tool(thing.method)"
        raise UsageError(msg)
    if parameter.name not in hints:
        msg = f"{where}: a type hint is needed, because the manifest states the type"
        raise UsageError(msg)
    return hints[parameter.name]


def _entry(
    parameter: inspect.Parameter, hint: Any, texts: dict[str, str], where: str
) -> dict[str, Any]:
    described = jsontypes.describe(hint, where)
    described.pop("required", None)  # of an object's members; the entry's own is a flag
    has_default = parameter.default is not parameter.empty
    text: str = described.pop("description", "")
    entry: dict[str, Any] = {
        "name": parameter.name,
        "type": described.pop("type"),
        "description": texts.get(parameter.name) or text,
        "required": not has_default and not jsontypes.is_optional(hint),
    }
    default: Any = parameter.default
    if isinstance(default, _JSON_DEFAULTS):
        entry["default"] = msgspec.to_builtins(default)
    return entry | described


def _decoder(fields: list[Any], tool: str) -> "tuple[type[Struct], msgspec.json.Decoder[Struct]]":
    try:
        arguments = msgspec.defstruct(
            "Arguments", fields, kw_only=True, forbid_unknown_fields=True, gc=False
        )
        return arguments, msgspec.json.Decoder(arguments)
    except (TypeError, ValueError) as fault:
        msg = f"tool {tool!r}: its arguments cannot be read from JSON: {fault}"
        raise UsageError(msg) from fault


def _refusal(fault: DecodeFailure, names: tuple[str, ...]) -> InvalidParams:
    text, path = str(fault), fault.path
    message = f"argument {text}"
    for start, what in () if path else ((_MISSING, "missing"), (_UNKNOWN, "unexpected")):
        if text.startswith(start):
            path = text.removeprefix(start).removesuffix("`")
            takes = ", ".join(names) or "no arguments"
            message = f"{what} argument {path!r}; this tool takes {takes}"
    return InvalidParams("INVALID_PARAMS", message, path=path)
