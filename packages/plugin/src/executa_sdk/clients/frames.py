"""Reverse calls as frames: a dict out through a writer, and its answer dispatched back.

For plugins that read stdin themselves, on whatever thread. Each call waits on the loop
that made it, so one client may serve several loops; an answer may be dispatched from any
thread. Ids are strings, so that they cannot be taken for the host's (R-13).
"""

import itertools
import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from executa_protocol.codec import encode
from executa_protocol.codes import INTERNAL_ERROR, rpc_error
from executa_protocol.errors import CallTimeout, RpcError
from executa_protocol.limits import SPILL_THRESHOLD
from executa_sdk.binding import attach_invoke_context

if TYPE_CHECKING:
    import asyncio

Object = dict[str, Any]
WriteFrame = Callable[[Object], object]
"""Sends one frame, given as a dict. What it returns does not matter."""

_IDS: Final = itertools.count(1)
_STDOUT: Final = threading.Lock()


class _Waiting:
    __slots__ = ("future", "loop")

    def __init__(self, loop: "asyncio.AbstractEventLoop") -> None:
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()

    def settle(self, msg: Object) -> None:
        """Runs on the loop that waits."""
        if self.future.done():
            return
        error = msg.get("error")
        if error:
            self.future.set_exception(_exception(error))
        else:
            self.future.set_result(msg.get("result"))


class FrameCaller:
    """Calls of one client. Without a writer, frames go to standard output."""

    __slots__ = ("_waiting", "write_frame")

    def __init__(self, write_frame: WriteFrame | None) -> None:
        self.write_frame = write_frame
        self._waiting: dict[str, _Waiting] = {}

    async def call(self, method: str, params: Object, timeout: float) -> Any:
        """Send a request and wait for its answer. Raises `RpcError` and `CallTimeout`."""
        import asyncio  # noqa: PLC0415 - calls of a running `Plugin` do not come through here

        identity = f"p{next(_IDS)}"
        waiting = _Waiting(asyncio.get_running_loop())
        self._waiting[identity] = waiting
        frame = {
            "jsonrpc": "2.0",
            "id": identity,
            "method": method,
            "params": attach_invoke_context(params),
        }
        try:
            (self.write_frame or write_to_stdout)(frame)
            async with asyncio.timeout(timeout):
                return await waiting.future
        except TimeoutError:
            msg = f"no answer within {timeout:g} s"
            raise CallTimeout(msg, written=True) from None
        finally:
            self._waiting.pop(identity, None)

    def owns(self, msg: object) -> bool:
        """Whether `msg` answers a call that still waits."""
        return _answer_id(msg) in self._waiting

    def dispatch(self, msg: object) -> bool:
        """Settle the call that `msg` answers; False if there is none."""
        identity = _answer_id(msg)
        waiting = self._waiting.pop(identity, None) if identity is not None else None
        if waiting is None:
            return False
        try:
            waiting.loop.call_soon_threadsafe(waiting.settle, cast("Object", msg))
        except RuntimeError:
            return True  # its loop has closed, and so nobody waits
        return True


def _answer_id(msg: object) -> str | None:
    if not isinstance(msg, dict) or "method" in msg:
        return None
    identity = cast("Object", msg).get("id")
    return identity if isinstance(identity, str) else None


def _exception(error: Any) -> RpcError:
    members = cast("Object", error) if isinstance(error, dict) else {"message": str(error)}
    code = members.get("code")
    number = code if isinstance(code, int) else INTERNAL_ERROR
    return rpc_error(number, str(members.get("message", "no message")), members.get("data"))


def write_to_stdout(msg: Object, *, stdout: TextIO | None = None) -> None:
    """Write one frame to standard output, whole and flushed, from any thread.

    A response over 512 KiB goes into a file and its pointer is written instead (R-12);
    requests never do, because no host looks for them there.
    """
    line = encode(msg)
    if len(line) > SPILL_THRESHOLD and "method" not in msg:
        line = encode({"jsonrpc": "2.0", "id": msg.get("id"), "__file_transport": _spill(line)})
    stream = sys.stdout if stdout is None else stdout
    with _STDOUT:
        raw = getattr(stream, "buffer", None)
        if raw is None:
            stream.write(line.decode() + "\n")
        else:
            stream.flush()
            raw.write(line + b"\n")  # bytes, because a frame is UTF-8 whatever the locale
        stream.flush()


def _spill(line: bytes) -> str:
    import tempfile  # noqa: PLC0415 - large answers are rare

    fd, path = tempfile.mkstemp(prefix="executa-resp-", suffix=".json")
    with os.fdopen(fd, "wb") as file:
        file.write(line)
    return path
