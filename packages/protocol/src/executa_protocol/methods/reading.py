"""Params and results from raw JSON to a struct, the same way for every method.

The common case is one typed decode. Only when the text may hold a spelling that
the field has and the seeds do not, or when that decode fails, are the members
taken apart, renamed by name and decoded again; their values stay raw meanwhile,
so nothing is lost. What is wrong is an `InvalidParams` that names the path and
carries the error to answer with. This module knows no method.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from executa_protocol import codec
from executa_protocol.code_table import Row
from executa_protocol.codes import ErrorObject, by_symbol, wire_error
from executa_protocol.errors import DecodeFailure, StrictRefusal
from executa_protocol.readings import TOLERANT, Reader

T = TypeVar("T", bound=Struct)

Members = dict[str, Raw]
"""An object whose values are still JSON text."""

_MEMBERS: Final = msgspec.json.Decoder(Members)
_ITEMS: Final = msgspec.json.Decoder(list[Raw])
_NULL: Final = b"null"
_SPACE: Final = b" \t\r\n"
_OBJECTS: Final = ("context", "modelPreferences", "quota_caps")
"""Members that are objects of optional members themselves; `metadata` is free to hold null."""


class InvalidParams(DecodeFailure):
    """Params that cannot be served. `row` says by which code they are refused."""

    def __init__(self, row: Row | str, message: str, *, path: str = "") -> None:
        super().__init__(message, path=path)
        self.row = by_symbol(row) if isinstance(row, str) else row

    @property
    def error(self) -> ErrorObject:
        """The answer: the row's code, this message, and the path in its data."""
        return wire_error(self.row, str(self), path=self.path or None)


def refusal(fault: DecodeFailure | StrictRefusal, row: Row | str) -> ErrorObject:
    """The answer to params that could not be read, by `row` unless the fault knows better."""
    if isinstance(fault, InvalidParams):
        return fault.error
    if isinstance(fault, StrictRefusal):
        return wire_error(row, str(fault), requirement=fault.requirement)
    return wire_error(row, str(fault), path=fault.path or None)


class Alias(Struct, frozen=True):
    """A member name of the field, the name it stands for, and the requirement it departs from."""

    old: str
    new: str
    requirement: str


class Shape(Generic[T]):
    """How one struct is read.

    `fault` names the error row for what does not fit. `check` is the struct's pure
    check, `aliases` are renamed, and `fold` may rewrite members in place for anything
    that a rename cannot say; it runs when one of `hints` stands in the text or the
    plain decode fails. `finish` fills what tolerant mode presumes.
    """

    __slots__ = (
        "_aliases", "_check", "_cls", "_decoder", "_fault", "_finish", "_fold", "_hints",
    )  # fmt: skip

    def __init__(
        self,
        cls: type[T],
        fault: str,
        *,
        check: Callable[[T], None] | None = None,
        aliases: tuple[Alias, ...] = (),
        fold: Callable[[Members, Reader], None] | None = None,
        hints: tuple[str, ...] = (),
        finish: Callable[[T, Reader], None] | None = None,
    ) -> None:
        self._cls = cls
        self._fault = fault
        self._check = check
        self._aliases = aliases
        self._fold = fold
        self._finish = finish
        names = (*(alias.old for alias in aliases), *hints)
        # A name may also be written with \u escapes; then the longer way must be gone.
        self._hints = tuple(f'"{name}"'.encode() for name in names) + (b"\\u",) * bool(names)
        self._decoder: msgspec.json.Decoder[T] | None = None

    def read(self, data: bytes | Raw | UnsetType, reader: Reader = TOLERANT) -> T:
        """Read params or a result; absent ones read as an empty object.

        Raises `InvalidParams`, or `StrictRefusal` through `reader`.
        """
        if data is UNSET:
            data = b"{}"
        if self._hints and self._hinted(bytes(data)):
            params = self._reread(data, reader)
        else:
            try:
                params = (self._decoder or self._prepare()).decode(data)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                params = self._reread(data, reader)
        if self._finish is not None:
            self._finish(params, reader)
        if self._check is not None:
            self._check(params)
        return params

    def _prepare(self) -> "msgspec.json.Decoder[T]":
        self._decoder = decoder = msgspec.json.Decoder(self._cls)
        return decoder

    def _reread(self, data: bytes | Raw, reader: Reader) -> T:
        """Read what may hold another spelling, or does not fit as it stands."""
        decoder = self._decoder or self._prepare()
        try:
            members = codec.decode(data, _MEMBERS)
            self._loosen(members, reader)
            return codec.decode(msgspec.json.encode(members), decoder)
        except InvalidParams:
            raise
        except DecodeFailure as fault:
            raise InvalidParams(self._fault, str(fault), path=fault.path) from None

    def _hinted(self, text: bytes) -> bool:
        return any(text.find(hint) >= 0 for hint in self._hints)

    def _loosen(self, members: Members, reader: Reader) -> None:
        """Bring the field's spellings to ours. Of duplicate keys only the last is here."""
        for alias in self._aliases:
            # Beside the right name the other one is only a copy for older readers.
            if alias.old in members and alias.new not in members:
                reader.tolerate(alias.requirement, f"{alias.old} is read as {alias.new}")
                members[alias.new] = members[alias.old]
        for name in self._optional():
            if name in members and bytes(members[name]) == _NULL:
                reader.tolerate("CORE-001", f"{name} is null and is read as absent")
                del members[name]
        for name in _OBJECTS:
            inner = members_of(members[name]) if name in members else None
            nulls = [key for key, item in (inner or {}).items() if bytes(item) == _NULL]
            if nulls:
                reader.tolerate("CORE-001", f"{name}.{nulls[0]} is null and is read as absent")
                kept = {key: item for key, item in (inner or {}).items() if key not in nulls}
                members[name] = raw(kept)
        if self._fold is not None:
            self._fold(members, reader)

    def _optional(self) -> list[str]:
        """The members that may be absent and have no null of their own."""
        names = self._cls.__struct_encode_fields__
        defaults = self._cls.__struct_defaults__
        last = names[len(names) - len(defaults) :]
        return [name for name, default in zip(last, defaults, strict=True) if default is UNSET]


def _opens(data: bytes | Raw, mark: bytes) -> bool:
    return bytes(data).lstrip(_SPACE).startswith(mark)


def members_of(data: bytes | Raw) -> Members | None:
    """The members of a JSON object as raw text; None for any other value."""
    return codec.decode(data, _MEMBERS) if _opens(data, b"{") else None


def items_of(data: bytes | Raw) -> list[Raw] | None:
    """The items of a JSON array as raw text; None for any other value."""
    return codec.decode(data, _ITEMS) if _opens(data, b"[") else None


def text_of(data: bytes | Raw) -> str | None:
    """The string behind raw text; None for any other value."""
    value: Any = codec.decode_any(data) if _opens(data, b'"') else None
    return cast("str | None", value)


def raw(value: object) -> Raw:
    """A value as raw JSON text."""
    return Raw(msgspec.json.encode(value))


def single_text(data: bytes | Raw) -> str | None:
    """The text of content that the field wraps otherwise: a part, or a list of one part."""
    items = items_of(data)
    if items is not None:
        if len(items) != 1:
            return None
        data = items[0]
    part = members_of(data)
    if part is None:
        return text_of(data) if items is not None else None
    if text_of(part.get("type", raw("text"))) != "text" or "text" not in part:
        return None
    return text_of(part["text"])
