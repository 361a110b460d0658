"""A line to a message and a message to a line.

`parse` turns one line into a `Message` or, when it is none, into a `Malformed`
that says what may be answered. Nothing here raises for what a peer sent: a bad
line is a value. Params, results and errors stay raw until someone needs them.
The writers at the end build frames from parts that are encoded already.
"""

from functools import lru_cache
from typing import Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from executa_protocol import codec
from executa_protocol.codes import INVALID_REQUEST, PARSE_ERROR
from executa_protocol.errors import DecodeFailure, NotEncodable, StrictRefusal
from executa_protocol.framing import Oversized
from executa_protocol.head import read_head
from executa_protocol.limits import SAMPLE_BYTES
from executa_protocol.readings import TOLERANT, Reader

Id = int | str | float | bool | None
"""Every JSON scalar: an id is echoed as it came (R-13). A legal one is an int or a string."""


class Message(Struct, gc=False):
    """One JSON-RPC object as it stood on the line. `UNSET` is absent, which null is not.

    A `method` makes it a request (with `id`) or a notification (without); anything
    else is a response, whose content is a `result`, an `error` or a file `pointer`.
    """

    id: Id | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    pointer: str | UnsetType = field(default=UNSET, name="__file_transport")
    old_pointer: str | UnsetType = field(default=UNSET, name="__trans_file__")
    jsonrpc: Literal["2.0"] | UnsetType = UNSET


class _Loose(Struct, gc=False):
    """The same members without their types, for lines that `Message` refuses."""

    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    pointer: Raw | UnsetType = field(default=UNSET, name="__file_transport")
    old_pointer: Raw | UnsetType = field(default=UNSET, name="__trans_file__")
    jsonrpc: Raw | UnsetType = UNSET


Role = Literal["request", "response", ""]
"""What a line that is no message would have been; empty if it does not say."""


class Malformed(Struct, frozen=True):
    """A line that is no message.

    `code` is what a request is answered with (-32700 or -32600) and `reason` why.
    `id` is the readable id or `UNSET`. With the role of a request the line is answered;
    with another, a call of ours with that id fails, and nothing is answered (R-10, R-11).
    `sample` is its first bytes, `size` its length in bytes without the LF. `symbol` is
    ``frame_too_large`` for a line over the cap.
    """

    code: int
    reason: str
    id: Id | UnsetType
    role: Role
    sample: bytes
    size: int
    symbol: str = ""


FRAME_TOO_LARGE: Final = "frame_too_large"
BLANK: Final = b" \t\r\n"

_MESSAGE = msgspec.json.Decoder(Message)
_LOOSE = msgspec.json.Decoder(_Loose)
_ID: "msgspec.json.Decoder[Id]" = msgspec.json.Decoder(Id)
_NULL: Final = b"null"
_VERSION: Final = Raw(b'"2.0"')
_LF: Final = 0x0A  # as a number: looking for one byte of bytes costs seven times as much


def parse(line: bytes, reader: Reader = TOLERANT) -> Message | Malformed | None:
    """Read one line; None for a blank one. Tolerated departures go to `reader` (R-03)."""
    if line.isspace() and not line.strip(BLANK):
        return None
    try:
        codec.check_content(line)
        message = _MESSAGE.decode(line)
    except (DecodeFailure, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        return _explain(line, fault, reader) if line else None
    kind = type(message.id)
    if (
        (kind is int or kind is str)
        and message.jsonrpc is not UNSET
        and (message.method is UNSET) is (message.result is not UNSET)
        and message.error is UNSET
        and message.pointer is UNSET
        and message.old_pointer is UNSET
    ):
        return message
    return _second_look(line, message, reader)


def _second_look(line: bytes, message: Message, reader: Reader) -> Message | Malformed:
    """What is legal but rare, tolerated, or wrong only in its combination of members."""
    try:
        if message.jsonrpc is UNSET:
            reader.tolerate("WIRE-001", 'the message has no "jsonrpc": "2.0"')
        fault = (_response if message.method is UNSET else _request)(message, reader)
    except StrictRefusal as refusal:
        fault = str(refusal)
    if fault is None:
        return message
    return _malformed(line, INVALID_REQUEST, fault, message.id, _role_of(message))


def _request(message: Message, reader: Reader) -> str | None:
    """What is wrong with a request or a notification, or None. A result beside it is ignored."""
    if message.pointer is not UNSET or message.old_pointer is not UNSET:
        return "a file pointer stands beside a method"  # never taken for a request
    if message.id is not UNSET and not _is_proper(message.id):
        reader.tolerate("WIRE-002", "a request's id is neither an integer nor a string")
    return None


def _response(message: Message, reader: Reader) -> str | None:
    """What is wrong with a response, or None."""
    if message.error is not UNSET and message.result is not UNSET:
        if bytes(message.error) == _NULL:
            reader.tolerate("WIRE-003", "a result comes with an error of null")
            message.error = UNSET
        elif bytes(message.result) == _NULL:
            reader.tolerate("WIRE-004", "an error comes with a result of null")
            message.result = UNSET
        else:
            return "both a result and an error"
    if message.old_pointer is not UNSET and message.pointer is UNSET:
        reader.tolerate("WIRE-005", "a file pointer is spelled __trans_file__")
        message.pointer = message.old_pointer
    if message.result is UNSET and message.error is UNSET:
        if message.pointer is UNSET:
            return "neither a method nor a result nor an error"
    elif message.pointer is not UNSET:
        return "a file pointer stands beside a result or an error"
    return "a response without an id" if message.id is UNSET else None


def _is_proper(identity: Id | UnsetType) -> bool:
    return isinstance(identity, int | str) and not isinstance(identity, bool)


def _role_of(message: "Message | _Loose") -> Role:
    if message.method is not UNSET:
        return "request"
    contents = (message.result, message.error, message.pointer, message.old_pointer)
    return "" if all(content is UNSET for content in contents) else "response"


def _explain(line: bytes, fault: Exception, reader: Reader) -> Message | Malformed:
    """Why `line` is no `Message`, and whose it may be."""
    if isinstance(fault, msgspec.DecodeError):
        try:
            loose = _LOOSE.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # not a JSON object at all: only its head can tell
        else:
            return _explain_object(line, loose, reader)
    head = read_head(line)
    return _malformed(line, PARSE_ERROR, str(fault), head.id, "request" if head.is_request else "")


def _explain_object(line: bytes, loose: _Loose, reader: Reader) -> Message | Malformed:
    """A JSON object with a member of the wrong type, or twice, where only the first time it is."""
    identity = _loose_id(loose.id)
    try:
        if loose.jsonrpc is not UNSET and codec.decode_any(loose.jsonrpc) != "2.0":
            wrong = bytes(memoryview(loose.jsonrpc)[:20]).decode(errors="replace")
            reader.tolerate("WIRE-006", f'"jsonrpc" is {wrong}, not "2.0"')
            loose.jsonrpc = _VERSION
        message = _MESSAGE.decode(msgspec.json.encode(loose))
    except (StrictRefusal, msgspec.ValidationError) as fault:
        reason = str(fault)
    else:
        return _second_look(line, message, reader)
    if loose.id is not UNSET and identity is UNSET and loose.method is not UNSET:
        # An id that is an array or an object cannot be echoed; JSON-RPC has null for that.
        identity = None
    return _malformed(line, INVALID_REQUEST, reason, identity, _role_of(loose))


def _loose_id(raw: Raw | UnsetType) -> Id | UnsetType:
    if raw is UNSET:
        return UNSET
    try:
        return _ID.decode(raw)
    except msgspec.DecodeError:
        return UNSET


def _malformed(
    line: bytes, code: int, reason: str, identity: Id | UnsetType, role: Role
) -> Malformed:
    return Malformed(
        code=code,
        reason=reason,
        id=identity,
        role=role,
        sample=line[:SAMPLE_BYTES],
        size=len(line) - line.endswith(b"\n"),
    )


def parse_oversized(line: Oversized, limit: int) -> Malformed:
    """What may be said about a line over the cap (R-11)."""
    head = read_head(line.head)
    return Malformed(
        code=INVALID_REQUEST,
        reason=f"the line has {line.size:,} bytes and the cap is {limit:,}",
        id=head.id,
        role="request" if head.is_request else "response",
        sample=line.head[:SAMPLE_BYTES],
        size=line.size,
        symbol=FRAME_TOO_LARGE,
    )


# --- Writing -----------------------------------------------------------------------
# The id stands early, so that a receiver that must drop the rest can still find it.
# Encoded parts are checked for newlines, because a raw value may have brought one.


def request_frame(identity: int | str, method: str, params: bytes | None = None) -> bytes:
    """A request line with its LF. `params` is encoded JSON; None leaves the member out.

    Raises `NotEncodable`, as all writers here do, for a part that would split the frame.
    """
    written = b"%d" % identity if type(identity) is int else encode_id(identity)
    if params is None:
        return b'{"jsonrpc":"2.0","id":%b,"method":%b}\n' % (written, _name(method))
    if _LF in params:
        refuse_newline(params)
    parts = (written, _name(method), params)
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}\n' % parts


def notification_frame(method: str, params: bytes | None = None) -> bytes:
    """A notification line with its LF."""
    if params is None:
        return b'{"jsonrpc":"2.0","method":%b}\n' % _name(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}\n' % (_name(method), refuse_newline(params))


def result_frame(identity: Id, result: bytes) -> bytes:
    """A response line with its LF. `result` is encoded JSON."""
    if _LF in result:
        refuse_newline(result)
    if type(identity) is int:
        return b'{"jsonrpc":"2.0","id":%d,"result":%b}\n' % (identity, result)
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (encode_id(identity), result)


def error_frame(identity: Id, error: bytes) -> bytes:
    """An error line with its LF. `error` is an encoded error object."""
    parts = (encode_id(identity), refuse_newline(error))
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % parts


def pointer_frame(identity: Id, path: str) -> bytes:
    """A response line that says which file holds the response (R-12)."""
    parts = (encode_id(identity), codec.encode(path))
    return b'{"jsonrpc":"2.0","id":%b,"__file_transport":%b}\n' % parts


def encode_id(identity: Id) -> bytes:
    """An id as it stands on the wire."""
    return b"%d" % identity if type(identity) is int else msgspec.json.encode(identity)


@lru_cache(maxsize=256)  # there are some thirty methods, and they are written all the time
def _name(method: str) -> bytes:
    return codec.encode(method)


def refuse_newline(encoded: bytes) -> bytes:
    """Return `encoded`, or raise `NotEncodable` if it would split its frame in two."""
    if _LF in encoded:
        msg = "a raw value holds a newline, which would split the frame"
        raise NotEncodable(msg)
    return encoded
