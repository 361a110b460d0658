"""A call's way to the host: reverse calls carry its invoke's id and never outlive it (R-23)."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Raw

from executa_protocol.codec import encode
from executa_protocol.errors import ConnectionLost, RpcError
from executa_sdk.bridge import Bridge
from executa_sdk.invocation import Invocation

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_CLEANING: Final = frozenset({"agent/session.cancel", "agent/session.delete"})
"""Calls that a tool makes on its way out, also when it was cancelled."""


class Reverse:
    """How one call reaches the host, waiting in the way of `bridge`. A `clients.base.Caller`."""

    __slots__ = ("_bridge", "invocation")

    def __init__(self, invocation: Invocation, bridge: Bridge) -> None:
        self.invocation = invocation
        self._bridge = bridge

    def call(self, method: str, params: dict[str, Any], timeout: float) -> Awaitable[Raw]:
        """Make a reverse call, whose raw result is to be awaited.

        Raises `RpcError`, `CallTimeout` after `timeout` seconds, `CallCancelled`,
        `ConnectionLost`, `NotEncodable`, and `UsageError` once the call has ended. Without a
        v2 handshake nothing is sent, and the error is the one that a host would answer with.
        """
        invocation = self.invocation
        if (invocation.cancelled or invocation.ended) and not (
            invocation.cancelled and method in _CLEANING
        ):
            invocation.check()
        if invocation.invoke_id is not None and "context" not in params:
            params["context"] = {"invoke_id": invocation.invoke_id}
        data = encode(params)
        connection = invocation.connection
        if connection.ended:
            msg = "the host has closed our input and answers no more"
            raise ConnectionLost(msg, written=False)
        if not connection.is_v2:
            raise _not_negotiated(method)
        return self._bridge.request(connection.peer, method, data, timeout)

    async def wait(self, start: "Callable[[], asyncio.Future[T]]") -> T:
        """Call `start` on the loop and wait for the future that it gives."""
        return await self._bridge.wait(start)

    async def blocking(self, fn: Callable[[], T]) -> T:
        """Wait for something that blocks, without blocking the loop."""
        connection = self.invocation.connection
        return await self._bridge.wait(lambda: connection.blocking(fn))

    def post(self, fn: Callable[[], None]) -> None:
        """Have `fn` called on the loop, at once if we are there."""
        connection = self.invocation.connection
        if connection.on_loop():
            fn()
        else:
            connection.mailbox.post(fn)


def _not_negotiated(method: str) -> RpcError:
    """The gate's own refusal (R-22), which a host of protocol 1.1 would not send."""
    from executa_protocol import gate  # noqa: PLC0415 - a host without v2 is rare
    from executa_protocol.codes import rpc_error, wire_error  # noqa: PLC0415 - as above
    from executa_protocol.handshake import FALLBACK  # noqa: PLC0415 - as above
    from executa_protocol.methods import METHODS  # noqa: PLC0415 - as above

    known = METHODS.get(method)
    refused = None if known is None else gate.check_negotiated(known, FALLBACK)
    text = f"{method} needs protocol 2.0"
    error = wire_error("METHOD_NOT_FOUND", text) if refused is None else refused.error
    return rpc_error(error.code, error.message, error.data)
