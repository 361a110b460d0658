"""Requests of the other side that are open, and their answers: one each, always (R-04).

Knows ids and frames; what to answer is the handler's business.
"""

from collections.abc import Callable
from typing import Any

from executa_protocol import envelope
from executa_protocol.codec import encode
from executa_protocol.codes import INTERNAL_ERROR, ErrorObject
from executa_protocol.envelope import Id
from executa_protocol.errors import ConnectionLost, FrameTooLarge, WriteQueueFull


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
        key = _key(identity)
        if key in self._open:
            return False
        self._open.add(key)
        return True

    def clear(self) -> None:
        """The connection has ended: nobody waits any more."""
        self._open.clear()

    def reply(self, identity: Id, result: bytes) -> None:
        """Answer with an encoded result. One over the line cap becomes an error."""
        self._answer(identity, envelope.result_frame(identity, result))

    def pointer(self, identity: Id, path: str) -> None:
        """Answer with the file at `path` (R-12)."""
        self._answer(identity, envelope.pointer_frame(identity, path))

    def fail(self, identity: Id, error: ErrorObject) -> None:
        """Answer with an error."""
        self._answer(identity, envelope.error_frame(identity, encode(error)))

    def refuse(self, identity: Id, error: ErrorObject) -> None:
        """Answer a line that never became an open request."""
        self._push(envelope.error_frame(identity, encode(error)))

    def _answer(self, identity: Id, frame: bytes) -> None:
        key = _key(identity)
        if key not in self._open:
            return  # it has been answered, or its connection has ended
        self._open.discard(key)
        try:
            self._push(frame)
        except FrameTooLarge as fault:
            data: dict[str, Any] = {
                "errorCode": envelope.FRAME_TOO_LARGE,
                "frame_bytes": fault.size,
                "max_frame_bytes": fault.limit,
            }
            self.refuse(identity, ErrorObject(INTERNAL_ERROR, str(fault), data))

    def _push(self, frame: bytes) -> None:
        try:
            self._send(frame)
        except WriteQueueFull as fault:
            self._give_up(fault)
        except ConnectionLost:
            pass  # nobody is left to answer


def _key(identity: Id) -> object:
    """Tells 1, 1.0, true and "1" apart, which a set alone does not."""
    return identity if type(identity) is int or type(identity) is str else repr(identity)
