"""A call's way to the host: reverse calls carry its invoke's id and never outlive it (R-23)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from executa_protocol.codec import decode_any, encode
from executa_protocol.errors import ConnectionLost
from executa_sdk.bridge import Bridge
from executa_sdk.invocation import Invocation

if TYPE_CHECKING:
    import asyncio

    from executa_sdk.connection import Connection

T = TypeVar("T")


class Reverse:
    """How one call reaches the host, waiting in the way of `bridge`. A `clients.base.Caller`."""

    __slots__ = ("_bridge", "invocation")

    def __init__(self, invocation: Invocation, bridge: Bridge) -> None:
        self.invocation = invocation
        self._bridge = bridge

    async def call(self, method: str, params: dict[str, Any], timeout: float) -> Any:
        """Make a reverse call and give its decoded result.

        Raises `RpcError`, `CallTimeout` after `timeout` seconds, `CallCancelled`,
        `ConnectionLost`, `NotEncodable`, and `UsageError` once the call has ended.
        """
        invocation = self.invocation
        invocation.check()
        if invocation.invoke_id is not None:
            params = {"context": {"invoke_id": invocation.invoke_id}, **params}
        data = encode(params)
        connection = invocation.connection
        raw = await self._bridge.wait(lambda: _request(connection, method, data, timeout))
        return decode_any(raw)

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


def _request(
    connection: "Connection", method: str, data: bytes, timeout: float
) -> "asyncio.Future[Any]":
    if connection.ended:
        msg = "the host has closed our input and answers no more"
        raise ConnectionLost(msg, written=False)
    peer = connection.peer
    call = peer.call(method, data, timeout)
    future = call.future

    def forget(_: object) -> None:
        if future.cancelled():
            peer.forget(call)

    future.add_done_callback(forget)
    return future
