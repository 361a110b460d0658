"""The answer to an `invoke` as plugins write most of them, read at once and as exactly as the rest.

The long way reads a line for what no decoder looks at, for its members, for those of the
result, and for the value when somebody asks for it.
"""

from typing import Any, ClassVar, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from executa_protocol import codec
from executa_protocol.limits import KIB


class PlainAnswer(Struct, gc=False):
    """The line of a success, read with all that it says.

    `size` is how many bytes the result has, `value` what its `data` means.
    """

    success: ClassVar[Literal[True]] = True
    error: ClassVar[UnsetType] = UNSET

    id: int
    size: int
    data: Raw
    value: Any


class _Line(Struct, gc=False, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    id: int
    result: Raw


class _Result(Struct, gc=False, forbid_unknown_fields=True):
    success: bool
    data: Raw
    duration_ms: float


_LINE: Final = msgspec.json.Decoder(_Line)
_RESULT: Final = msgspec.json.Decoder(_Result)
_VALUE: Final = msgspec.json.Decoder()

_LARGEST: Final = 4 * KIB
_START: Final = b'{"jsonrpc":"2.0","id":'
_MIDDLE: Final = b',"result":{"success":true,'
_REST: Final = _MIDDLE + b'"data":,"duration_ms":0}}'
_ID_FROM: Final = len(_START)
_ID_TO: Final = _ID_FROM + 20 + len(_MIDDLE)
_ROOM: Final = len(_REST) + len(b'"data":"\xff",')
"""Bytes after the id, without the data, from which on there is room for a second data. Both are
skipped, and the first would not be looked at; the least that might be wrong with it is a byte.

Before the id there is none: `jsonrpc` does not fit behind it, and leaves no room in front of it.
"""


def read_plain_answer(line: bytes) -> PlainAnswer | None:
    """Read a small line that answers an invoke; None for one that is to be read with more care.

    Every value is decoded, so nothing passes that `codec.check_content` would refuse.
    """
    end = line.find(_MIDDLE, _ID_FROM, _ID_TO)
    if end < 0 or len(line) > _LARGEST or not line[_ID_FROM:end].isdigit():
        return None
    try:
        answer = _LINE.decode(line)
        result = _RESULT.decode(answer.result)
        data = result.data
        value = _VALUE.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if (
        not result.success
        or len(line) - end - len(memoryview(data)) >= _ROOM
        or (isinstance(value, dict | list) and codec.too_deep(line))
    ):
        return None
    return PlainAnswer(answer.id, len(memoryview(answer.result)), data, value)
