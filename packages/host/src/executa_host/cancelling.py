"""The end of an invoke before its time: asked for, given up, or too late (R-24, R-45).

A cancellation is a request. What became of it is one of three verdicts, and the answer
that still comes within the grace counts.
"""

import asyncio
import contextlib
from typing import Final

from executa_host.accounts import tell_verdict
from executa_host.connection import Connection
from executa_host.invocation import ActiveInvoke, CancelOutcome, InvokeTimeout
from executa_host.runtime import Runtime
from executa_protocol import codec
from executa_protocol.aio.calls import Call
from executa_protocol.errors import (
    CallCancelled,
    CallTimeout,
    ConnectionLost,
    ExecutaError,
    LocalError,
    RpcError,
)
from executa_protocol.methods.core import CancelParams

GONE: Final = "whoever asked for it has gone"
"""The reason when the task that awaited an invoke was cancelled."""


class Canceller:
    """Ends invokes. `waiting` are those whose end somebody has asked for and waits for."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.waiting: dict[str, ActiveInvoke] = {}

    def cancel(self, active: ActiveInvoke, reason: str) -> None:
        """Ask for its end: it ends with what came of it, at the latest after the grace.

        An invoke whose request has not been made yet is for the caller to stop.
        """
        if active.cancelling is not None or active.ended:
            return
        active.cancelling = reason
        connection, call = active.connection, active.call
        if connection is None or call is None:
            return
        self.waiting[active.invoke_id] = active
        connection.invokes.pop(active.invoke_id, None)
        active.end_tasks()
        if call.future.done():
            return  # its answer is here
        if connection.peer.withdraw(call):
            call.fail(CallCancelled(f"cancelled before it was written: {reason}", written=False))
            connection.peer.forget(call)
        else:
            tell_plugin(connection, active.invoke_id, reason)
            connection.peer.wait_at_most(call, self._runtime.patience.cancel)

    def abandon(self, connection: Connection, active: ActiveInvoke) -> None:
        """Nobody waits for it any more; what comes of it is told to followers only."""
        call = active.call
        if active.cancelling is None:
            active.cancelling = GONE
        if call is None:
            active.verdict = CancelOutcome.CONFIRMED
        elif call.future.done() and not call.future.cancelled():  # in the same turn
            active.verdict = verdict_of(call.future.exception())
        elif call.late is not None:  # its answer came while its waiter was being cancelled
            late = call.late
            active.verdict = verdict_of(late if isinstance(late, Exception) else None)
        elif connection.peer.withdraw(call):
            connection.peer.forget(call)
            active.verdict = CancelOutcome.CONFIRMED
        else:
            tell_plugin(connection, active.invoke_id, active.cancelling)
            call.future = asyncio.get_running_loop().create_future()
            connection.peer.wait_at_most(call, self._runtime.patience.cancel)
            lingering = self._linger(connection, active, call)
            task = asyncio.get_running_loop().create_task(lingering)
            self._runtime.background.keep(task)

    async def _linger(self, connection: Connection, active: ActiveInvoke, call: Call) -> None:
        fault: ExecutaError | None = None
        try:
            await call.future
        except ExecutaError as other:
            fault = other
        active.verdict = verdict_of(fault)
        tell_verdict(connection, active)
        connection.occupancy.one_less(self._runtime.clock.monotonic())


def verdict_of(fault: BaseException | None) -> CancelOutcome:
    """What became of a cancelled invoke that ended with `fault`, or with a result if None."""
    if isinstance(fault, CallCancelled | ConnectionLost | CallTimeout):
        unseen = fault.written is False
        return CancelOutcome.CONFIRMED if unseen else CancelOutcome.UNANSWERED
    if isinstance(fault, RpcError) and fault.symbol == "INVOKE_CANCELLED":
        return CancelOutcome.CONFIRMED
    return CancelOutcome.COMPLETED_FIRST


def error_of(fault: BaseException, active: ActiveInvoke) -> BaseException:
    """What is raised for a cancelled invoke that ended with `fault`."""
    name = f"{active.plugin}.{active.tool}"
    if isinstance(fault, CallTimeout):
        text = f"{name} was cancelled and nobody knows whether it was done: {active.cancelling}"
        return CallCancelled(text, written=True)
    if isinstance(fault, RpcError) and verdict_of(fault) is CancelOutcome.CONFIRMED:
        return CallCancelled(f"{name} was cancelled: {active.cancelling}", written=True)
    return fault


def too_late(connection: Connection, active: ActiveInvoke) -> InvokeTimeout:
    """It took too long: the call fails, the process goes on, for now (R-24)."""
    call = active.call
    written = call is None or not connection.peer.withdraw(call)
    if written:
        tell_plugin(connection, active.invoke_id, "timeout")
    connection.owner.on_late(connection)
    text = f"{active.plugin}.{active.tool} took longer than its limit"
    return InvokeTimeout(text, written=written)


def tell_plugin(connection: Connection, invoke_id: str, reason: str) -> None:
    """`executa/cancel`, to a plugin that took the capability."""
    if "cancellation" in connection.negotiated.keys:
        params = CancelParams(invoke_id=invoke_id, reason=reason)
        # One that does not read, or has gone, need not be told.
        with contextlib.suppress(LocalError, ConnectionLost):
            connection.peer.notify("executa/cancel", codec.encode(params))
