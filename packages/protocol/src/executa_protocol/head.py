"""Whose a line is that cannot be read whole: its id, and whether it is a request (R-10, R-11).

A scanner over the first bytes of a line: keys of the top level only, and an id that
is an int or a string. It believes no value that it has not seen to its end, never
recurses, and never raises.
"""

from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from executa_protocol.limits import HEAD_BYTES

_SPACE: Final = b" \t\r\n"
_OPEN: Final = b"[{"
_CLOSE: Final = b"]}"
_DELIMITER: Final = b",]}" + _SPACE
_STRING = msgspec.json.Decoder(str)
_INTEGER = msgspec.json.Decoder(int)


class Head(Struct, frozen=True):
    """What the head of a line gives.

    `id` is `UNSET` if there is none that may be believed. `is_request` says that there
    is a ``method``, whatever it is: only a request has one, readable or not.
    """

    id: int | str | UnsetType = UNSET
    is_request: bool = False


def read_head(line: bytes) -> Head:
    """Look for a top-level ``id`` and ``method`` in the first `HEAD_BYTES` of `line`.

    As everywhere, the last of duplicate keys wins. Costs one pass over the head.
    """
    data = line[:HEAD_BYTES]
    token = b""
    is_request = False
    before = b"{"
    position = _skip_space(data, 0)
    while data[position : position + 1] == before:
        before = b","
        position = _skip_space(data, position + 1)
        end = _string_end(data, position)
        if end < 0:
            break
        key = _decoded(_STRING, data[position:end])
        position = _skip_space(data, end)
        if data[position : position + 1] != b":":
            break
        is_request = is_request or key == "method"
        position = _skip_space(data, position + 1)
        end = _value_end(data, position)
        if end < 0:
            break
        if key == "id":
            token = data[position:end]
        position = _skip_space(data, end)
    identity = _decoded(_STRING if token[:1] == b'"' else _INTEGER, token)
    return Head(identity if isinstance(identity, int | str) else UNSET, is_request)


def _decoded(
    decoder: "msgspec.json.Decoder[str] | msgspec.json.Decoder[int]", token: bytes
) -> object:
    try:
        return decoder.decode(token)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return UNSET


def _skip_space(data: bytes, position: int) -> int:
    while position < len(data) and data[position] in _SPACE:
        position += 1
    return position


def _string_end(data: bytes, position: int) -> int:
    """The position after the string that begins here; -1 if none does or it is cut off."""
    if data[position : position + 1] != b'"':
        return -1
    position += 1
    while position < len(data):
        byte = data[position]
        if byte == 0x22:
            return position + 1
        position += 2 if byte == 0x5C else 1
    return -1


def _value_end(data: bytes, position: int) -> int:
    """The position after the value that begins here; -1 if it is cut off."""
    if data[position : position + 1] == b'"':
        return _string_end(data, position)
    if data[position : position + 1] not in (b"{", b"["):
        # A number or a word ends where something else begins; at the end of the
        # head it may go on, and half an id would be another id.
        while position < len(data) and data[position] not in _DELIMITER:
            position += 1
        return position if position < len(data) else -1
    depth = 0
    while position < len(data):
        byte = data[position]
        if byte == 0x22:
            position = _string_end(data, position)
            if position < 0:
                return -1
            continue
        depth += (byte in _OPEN) - (byte in _CLOSE)
        position += 1
        if depth == 0:
            return position
    return -1
