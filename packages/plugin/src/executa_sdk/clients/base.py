"""What all reverse clients share: how a call is made, refused and turned into an exception.

A client reaches the host in one of three ways. Inside a call of a running `Plugin` it
goes through the plugin's connection. Elsewhere it writes frames through the writer that
it was given, or to standard output, and has its answers dispatched to it.
"""

from collections.abc import Awaitable, Coroutine
from typing import Any, ClassVar, Protocol, cast

from msgspec import Raw

from executa_protocol.codec import decode_any
from executa_protocol.codes import INTERNAL_ERROR, METHOD_NOT_FOUND
from executa_protocol.errors import CallTimeout, RpcError
from executa_sdk.binding import CURRENT
from executa_sdk.clients.frames import FrameCaller, WriteFrame

Object = dict[str, Any]


class Caller(Protocol):
    """A way to reach the host."""

    def call(self, method: str, params: Object, timeout: float) -> Awaitable[Any]:
        """The result, raw or decoded. Raises `RpcError`, `CallTimeout` after `timeout` s, ...

        What makes the call may fail at once. `params` are given away: they may be changed.
        """
        ...


class Client:
    """Base of the clients. Every failure that the host answers is raised as `error`."""

    error: ClassVar[type[RpcError]] = RpcError
    disabled_code: ClassVar[int] = METHOD_NOT_FOUND
    timeout_code: ClassVar[int] = INTERNAL_ERROR

    def __init__(
        self, *, write_frame: WriteFrame | None = None, caller: Caller | None = None
    ) -> None:
        self._frames = FrameCaller(write_frame) if caller is None else None
        self._caller = caller
        self._disabled: str | None = None

    # --- Wiring, for plugins with a loop of their own -------------------------------

    def attach_writer(self, write_frame: WriteFrame) -> None:
        """Send requests through `write_frame`, which gets each as one dict."""
        if self._frames is None:
            self._frames, self._caller = FrameCaller(write_frame), None
        else:
            self._frames.write_frame = write_frame

    def disable(self, reason: str) -> None:
        """Refuse further calls at once, because the host does not offer this."""
        self._disabled = reason

    def is_response_envelope(self, msg: object) -> bool:
        """Whether `msg` answers a call of this client that still waits."""
        return self._frames is not None and self._frames.owns(msg)

    def dispatch_response(self, msg: object) -> bool:
        """Hand over an answer, from any thread. False if it is none to this client's calls."""
        return self._frames is not None and self._frames.dispatch(msg)

    # --- Calls -------------------------------------------------------------------------

    def _call(
        self, method: str, params: Object, timeout: float, **exact: Any
    ) -> Coroutine[Any, Any, Any]:
        """Make a call; members of `params` that are None are left out, those of `exact` stay."""
        return self._made(method, _given(params, exact), timeout)

    def _call_object(
        self, method: str, params: Object, timeout: float, **exact: Any
    ) -> Coroutine[Any, Any, Object]:
        """Make a call whose result is an object. Anything else is the host's error."""
        return self._made(method, _given(params, exact), timeout, an_object=True)

    async def _made(
        self, method: str, params: Object, timeout: float, *, an_object: bool = False
    ) -> Any:
        """Make a call with `params` as they are. They are this call's own, to be changed."""
        if self._disabled is not None:
            raise self.error(self.disabled_code, self._disabled)
        try:
            result = await (self._caller or self._way()).call(method, params, timeout)
            if type(result) is Raw:
                result = decode_any(result)
        except RpcError as fault:
            if isinstance(fault, self.error):
                raise
            raise self.error(fault.code, fault.message, fault.data) from None
        except CallTimeout:
            text = f"{method}: no answer within {timeout:g} s"
            raise self.error(self.timeout_code, text, {"errorCode": "TIMEOUT"}) from None
        return self._object_of(result, method) if an_object else result

    def _object_of(self, result: object, method: str) -> Object:
        if result is None:
            return {}
        if not isinstance(result, dict):
            text = f"{method}: the host answered with {type(result).__name__}, not an object"
            raise self.error(INTERNAL_ERROR, text)
        return cast("Object", result)

    def _way(self) -> Caller:
        frames = self._frames
        if frames is None or frames.write_frame is None:
            running: Caller | None = getattr(CURRENT.get(), "caller", None)
            if running is not None:
                return running
        return frames or FrameCaller(None)


def _given(params: Object, exact: Object) -> Object:
    """The members that are to be sent."""
    given = {name: value for name, value in params.items() if value is not None}
    return given | exact if exact else given
