"""Python types as the protocol's parameter types.

A manifest knows six types: string, integer, number, boolean, array and object. `describe`
says which one a hint becomes, with `enum`, `items` and, for objects, `properties`. What
msgspec cannot decode is refused here, before anyone calls the tool.
"""

import types
import typing
from typing import Any, Final, Literal, Union, cast

import msgspec
from msgspec import Struct, UnsetType

from executa_protocol.errors import UsageError

_SCALARS: Final[dict[type, str]] = {str: "string", bool: "boolean", int: "integer", float: "number"}
_TEXTS: Final = frozenset(
    {
        "bytes", "bytearray", "datetime.datetime", "datetime.date", "datetime.time",
        "datetime.timedelta", "uuid.UUID", "decimal.Decimal",
    }
)  # fmt: skip
_ARRAYS: Final = frozenset(
    {
        "list", "tuple", "set", "frozenset", "collections.abc.Collection",
        "collections.abc.MutableSequence", "collections.abc.MutableSet",
        "collections.abc.Sequence", "collections.abc.Set",
    }
)  # fmt: skip
_OBJECTS: Final = frozenset({"dict", "collections.abc.Mapping", "collections.abc.MutableMapping"})
_MOST_LEVELS: Final = 8
"""How deep nested structures are described; recursive ones end here."""

Member = tuple[str, Any, bool]
"""Name and hint of a record's member, and whether it must be given."""

Described = dict[str, Any]
"""A type in the manifest's words: ``type``, and ``description``, ``enum``, ``items``,
``properties`` and ``required`` where they say something."""


def describe(hint: Any, where: str, level: int = 0) -> Described:
    """Describe a type hint. Raises `UsageError` for one without a JSON form, naming `where`."""
    described: Described = {}
    hint, notes = unwrap(hint)
    members = without_none(hint)
    if members is not None:
        if len(members) == 1:
            return {**describe(members[0], where, level), **notes}
        described = _union([describe(member, where, level) for member in members])
    elif typing.get_origin(hint) is Literal:
        described = _choice(list(typing.get_args(hint)), where)
    elif hint is Any or hint is object:
        described = {"type": "object"}
    else:
        described = _plain(hint, where, level)
    return {**described, **notes}


def unwrap(hint: Any) -> tuple[Any, Described]:
    """A hint without `Annotated`, `NewType` and aliases, and the description found on the way."""
    notes: Described = {}
    while True:
        if typing.get_origin(hint) is typing.Annotated:
            for extra in hint.__metadata__:
                text = extra if isinstance(extra, str) else getattr(extra, "description", None)
                if isinstance(text, str):
                    notes.setdefault("description", text)
            hint = hint.__origin__
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        else:
            return hint, notes


def without_none(hint: Any) -> list[Any] | None:
    """The members of a union but None; None itself if `hint` is no union."""
    if typing.get_origin(hint) not in (Union, types.UnionType):
        return None
    return [member for member in typing.get_args(hint) if member not in (type(None), UnsetType)]


def is_optional(hint: Any) -> bool:
    """Whether null is one of the values."""
    hint, _ = unwrap(hint)
    members = without_none(hint)
    return hint is None or (members is not None and len(members) < len(typing.get_args(hint)))


def _union(parts: list[Described]) -> Described:
    kinds = list(dict.fromkeys(part["type"] for part in parts))
    if set(kinds) == {"integer", "number"}:
        return {"type": "number"}
    if len(kinds) == 1:
        enums = [part.get("enum") for part in parts]
        if all(enums):
            return {"type": kinds[0], "enum": [value for enum in enums for value in enum or ()]}
        return parts[0] if all(part == parts[0] for part in parts) else {"type": kinds[0]}
    kind = next(
        (kind for kind in ("string", "object", "array", "number") if kind in kinds), kinds[0]
    )
    return {"type": kind, "description": "One of: " + ", ".join(kinds) + "."}


def _choice(values: list[Any], where: str) -> Described:
    values = [value for value in values if value is not None]
    kinds = {_scalar(value) for value in values}
    if len(kinds) != 1 or None in kinds:
        msg = f"{where}: the values of a Literal or Enum must all be strings or all be integers"
        raise UsageError(msg)
    return {"type": kinds.pop(), "enum": values}


def _scalar(value: object) -> str | None:
    return _SCALARS.get(type(value))


def _plain(hint: Any, where: str, level: int) -> Described:
    origin = _origin(hint)
    if origin in _SCALARS:
        return {"type": _SCALARS[origin]}
    name = _name(origin)
    if name in _TEXTS:
        return {"type": "string"}
    if name in _ARRAYS:
        return _array(hint, where, level)
    if name in _OBJECTS:
        return {"type": "object"}
    if isinstance(origin, type):
        values: Any = getattr(origin, "__members__", None)
        if values is not None:
            return _choice([member.value for member in values.values()], where)
        fields = _fields(cast("Any", origin))
        if fields is not None:
            return _object(fields, where, level)
    msg = (
        f"{where}: {hint!r} has no JSON form; use str, int, float, bool, list, dict, Literal, "
        "an Enum, a dataclass, a TypedDict or a msgspec.Struct"
    )
    raise UsageError(msg)


def _origin(hint: Any) -> Any:
    return typing.get_origin(hint) or hint


def _name(origin: Any) -> str:
    module, name = getattr(origin, "__module__", ""), getattr(origin, "__qualname__", "")
    return name if module == "builtins" else f"{module}.{name}"


def _array(hint: Any, where: str, level: int) -> Described:
    args = [arg for arg in typing.get_args(hint) if arg is not Ellipsis]
    if not args:
        return {"type": "array", "items": {"type": "string"}}
    items = [describe(arg, f"{where}[]", level + 1) for arg in args]
    return {"type": "array", "items": items[0] if len(items) == 1 else _union(items)}


def _object(fields: list[Member], where: str, level: int) -> Described:
    described: Described = {"type": "object"}
    if fields and level < _MOST_LEVELS:
        described["properties"] = {
            name: describe(hint, f"{where}.{name}", level + 1) for name, hint, _ in fields
        }
        required = [name for name, _, needed in fields if needed]
        if required:
            described["required"] = required
    return described


def _fields(cls: type[Any]) -> list[Member] | None:
    """The members of a record; None if `cls` is none."""
    if issubclass(cls, Struct):
        return _struct_fields(cls)
    if hasattr(cls, "__dataclass_fields__"):
        return _dataclass_fields(cls)
    if hasattr(cls, "__required_keys__"):
        hints = typing.get_type_hints(cls, include_extras=True)
        return [(name, _bare(hint), name in cls.__required_keys__) for name, hint in hints.items()]
    return None


def _struct_fields(cls: type[Struct]) -> list[Member]:
    hints = typing.get_type_hints(cls, include_extras=True)
    optional = len(cls.__struct_defaults__)
    needed = len(cls.__struct_fields__) - optional
    return [
        (
            encoded,
            hints[name],
            index < needed or cls.__struct_defaults__[index - needed] is msgspec.NODEFAULT,
        )
        for index, (name, encoded) in enumerate(
            zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True)
        )
    ]


def _dataclass_fields(cls: Any) -> list[Member]:
    from dataclasses import MISSING, fields  # noqa: PLC0415 - whoever has one has paid for this

    hints = typing.get_type_hints(cls, include_extras=True)
    return [
        (
            field.name,
            hints[field.name],
            field.default is MISSING and field.default_factory is MISSING,
        )
        for field in fields(cls)
        if field.init
    ]


def _bare(hint: Any) -> Any:
    """A TypedDict's hint without Required, NotRequired and ReadOnly."""
    while getattr(typing.get_origin(hint), "_name", "") in ("Required", "NotRequired", "ReadOnly"):
        hint = typing.get_args(hint)[0]
    return hint
