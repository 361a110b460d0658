"""Requests of the other side that are open, and their answers: one each, always (R-04).

Knows ids and frames; what to answer is the handler's business.
"""

from collections.abc import Callable
from typing import Final

from executa_protocol import envelope
from executa_protocol.codec import encode
from executa_protocol.codes import PARSE_ERROR, ErrorObject, wire_error
from executa_protocol.envelope import Id, Malformed
from executa_protocol.errors import (
    ConnectionLost,
    FrameTooLarge,
    NotEncodable,
    WriteQueueFull,
)

_PLAIN: Final = (int, str)
_TOO_LARGE: Final = encode(wire_error("INTERNAL_ERROR", "the error does not fit into a line"))


class Answers:
    """The open requests of one connection.

    `send` queues a frame; `give_up` is called when an answer cannot be sent because
    the other side does not read, which leaves nothing but to end the connection.
    """

    __slots__ = ("_give_up", "_open", "_send")

    def __init__(self, send: Callable[[bytes], None], give_up: Callable[[Exception], None]) -> None:
        self._send = send
        self._give_up = give_up
        self._open: set[object] = set()

    def __len__(self) -> int:
        return len(self._open)

    def open(self, identity: Id) -> bool:
        """Note a request; False if one with the same id is open already."""
        key = identity if type(identity) in _PLAIN else _key(identity)
        if key in self._open:
            return False
        self._open.add(key)
        return True

    def clear(self) -> None:
        """The connection has ended: nobody waits any more."""
        self._open.clear()

    def reply(self, identity: Id, result: bytes) -> None:
        """Answer with an encoded result. One that cannot be sent becomes an error."""
        if self._close(identity):
            try:
                self._push(envelope.result_frame(identity, result))
            except FrameTooLarge as fault:
                sizes = {"result_size_bytes": len(result), "max_payload_bytes": fault.limit}
                self.refuse(identity, wire_error("RESULT_TOO_LARGE", str(fault), **sizes))
            except NotEncodable as fault:
                self.refuse(identity, wire_error("INTERNAL_ERROR", str(fault)))

    def reply_frame(self, identity: int | str, frame: bytes) -> None:
        """Answer with a whole response line, which is right and fits."""
        # As `_close` and `_push` do, which would cost as much again.
        try:
            self._open.remove(identity)
        except KeyError:
            return
        try:
            self._send(frame)
        except WriteQueueFull as fault:
            self._give_up(fault)
        except ConnectionLost:
            return

    def pointer(self, identity: Id, path: str) -> None:
        """Answer with the file at `path` (R-12)."""
        if self._close(identity):
            try:
                self._push(envelope.pointer_frame(identity, path))
            except (FrameTooLarge, NotEncodable) as fault:
                self.refuse(identity, wire_error("FILE_TRANSPORT_FAILED", str(fault)))

    def fail(self, identity: Id, error: ErrorObject) -> None:
        """Answer with an error."""
        if self._close(identity):
            self.refuse(identity, error)

    def refuse(self, identity: Id, error: ErrorObject) -> None:
        """Answer a line that never became an open request."""
        content = _encoded(error)
        # An id that fills a line leaves no room for an answer: then null must do.
        for text in (content, _TOO_LARGE):
            try:
                self._push(envelope.error_frame(identity, text))
            except FrameTooLarge:
                continue
            return
        self._push(envelope.error_frame(None, _TOO_LARGE))

    def _close(self, identity: Id) -> bool:
        """Whether the request still waits; if so, it does no longer."""
        try:
            self._open.remove(identity if type(identity) in _PLAIN else _key(identity))
        except KeyError:
            return False  # it has been answered, or its connection has ended
        return True

    def _push(self, frame: bytes) -> None:
        try:
            self._send(frame)
        except WriteQueueFull as fault:
            self._give_up(fault)
        except ConnectionLost:
            pass  # nobody is left to answer


def error_of(line: Malformed, max_line: int) -> ErrorObject:
    """What a line that is no message is answered with."""
    if line.symbol:
        sizes = {"frame_bytes": line.size, "max_frame_bytes": max_line}
        return wire_error(line.symbol, line.reason, **sizes)
    symbol = "PARSE_ERROR" if line.code == PARSE_ERROR else "INVALID_REQUEST"
    return wire_error(symbol, line.reason)


def _encoded(error: ErrorObject) -> bytes:
    """The error as JSON. What its data or message holds must not leave a request unanswered."""
    try:
        return encode(error)
    except NotEncodable as fault:
        return encode(ErrorObject(error.code, f"the error cannot be sent whole: {fault}"))


def _key(identity: Id) -> object:
    """Tells 1, 1.0 and true apart, which a set alone does not; `_PLAIN` ids are keys themselves."""
    return (repr(identity),)
