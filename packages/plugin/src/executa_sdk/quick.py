"""Invokes of tools with plain parameters, read from line to arguments in one typed decode.

The long way reads a line four times: for what no decoder looks at, for its members, for its
params, and for the tool's arguments. Here nothing is passed over unread: every member is
known and has a type, so one decoder finds whatever the others would. A line that it does not
take as it stands says nothing by that; it goes the long way, which knows what is wrong with it.
"""

import types
import typing
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct, UnsetType

from executa_protocol.codec import too_deep
from executa_protocol.limits import KIB
from executa_protocol.methods.invoke import InvokeContext, InvokeParams

if TYPE_CHECKING:
    from executa_sdk.tool import Tool

_OFTEN: Final = 8
"""Calls the long way before a tool's decoder is made: it costs as much as many of them."""

_LARGEST: Final = 4 * KIB
"""Bytes of a line whose arguments may nest: looking how deep costs little up to here."""

_MARK: Final = b'"tool":"'
_HEAD: Final = 128
"""Bytes that the tool's name begins in, with any id that a host counts."""

_UNIONS: Final = (typing.Union, types.UnionType)
_FLAT: Final = (str, int, float, bool, type(None), UnsetType)
_NESTING: Final = (list, dict, tuple, set, frozenset)


class _Context(InvokeContext, kw_only=True, gc=False, forbid_unknown_fields=True):
    pass


class QuickParams(InvokeParams, kw_only=True, gc=False, forbid_unknown_fields=True):
    """The params of an invoke whose arguments have their types already."""

    arguments: Any = None  # the tool's own struct, which has to be there
    context: _Context | UnsetType = UNSET  # pyright: ignore[reportIncompatibleVariableOverride] - it is one


class QuickInvoke(Struct, gc=False, forbid_unknown_fields=True):
    """A whole request line."""

    jsonrpc: Literal["2.0"]
    id: int | float | str
    method: Literal["invoke"]
    params: QuickParams


class QuickReader:
    """Reads the invokes of some tools. A tool is `noted` with each call that went the long way."""

    __slots__ = ("_counts", "_decoders")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._decoders: dict[bytes, tuple[msgspec.json.Decoder[Any], bool]] = {}

    def read(self, line: bytes) -> QuickInvoke | None:
        """The invoke on a line; None for a line that is not one as plain as it could be."""
        start = line.find(_MARK, 0, _HEAD) + len(_MARK)
        found = self._decoders.get(line[start : line.find(b'"', start)])
        if found is None:
            return None
        decoder, nests = found
        if nests and (len(line) > _LARGEST or too_deep(line)):
            return None
        try:
            request: QuickInvoke = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        kind = type(request.id)
        return request if kind is int or kind is str else None

    def note(self, tool: "Tool") -> None:
        """Count a call that went the long way; prepare for more once there are many."""
        count = self._counts.get(tool.name, 0) + 1
        self._counts[tool.name] = count
        if count == _OFTEN:
            hints = tool.schema.hints
            if all(map(_is_read_whole, hints)):
                nests = not all(map(_is_flat, hints))
                self._decoders[tool.name.encode()] = (_decoder(tool), nests)


def _decoder(tool: "Tool") -> "msgspec.json.Decoder[Any]":
    members = [("tool", Literal[tool.name]), ("arguments", tool.schema.arguments)]
    params = msgspec.defstruct(
        "Params", members, bases=(QuickParams,), kw_only=True, gc=False, forbid_unknown_fields=True
    )
    request = msgspec.defstruct(
        "Request", [("params", params)], bases=(QuickInvoke,), gc=False, forbid_unknown_fields=True
    )
    return msgspec.json.Decoder(request)


def _is_flat(hint: Any) -> bool:
    """Whether a value of this type holds no other values."""
    if get_origin(hint) in _UNIONS:
        return all(map(_is_flat, get_args(hint)))
    return _is_one_of(hint, _FLAT) or get_origin(hint) is Literal


def _is_read_whole(hint: Any) -> bool:
    """Whether the decoder looks at all that stands in a value of this type, as JSON numbers do.

    One of a record passes over members that it does not know, and one of a raw value over all.
    """
    if hint is Any or _is_flat(hint) or _is_one_of(hint, _NESTING):
        return True
    origin = get_origin(hint)
    return _is_one_of(origin, _NESTING + _UNIONS) and all(
        argument is ... or _is_read_whole(argument) for argument in get_args(hint)
    )


def _is_one_of(hint: Any, types: tuple[Any, ...]) -> bool:
    """As `in`, for hints that cannot be hashed, or compare as they like."""
    return any(hint is each for each in types)
