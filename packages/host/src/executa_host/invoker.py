"""One invoke from its opening at nexus to its outcome.

Owns the order of its steps, what ends it, and what is cleaned up after it. Which plugin
answers, and how it is kept running, is decided above.
"""

import asyncio
from functools import partial

from msgspec import UNSET, Raw

from executa_host.accounts import tell_end, tell_start, tell_verdict
from executa_host.cancelling import Canceller, error_of, too_late, verdict_of
from executa_host.connection import Connection
from executa_host.invocation import (
    ActiveInvoke,
    CancelOutcome,
    InvokeOutcome,
    InvokeRefused,
    InvokeTimeout,
)
from executa_host.request import call_plainly, invoke_params, opening_of
from executa_host.reverse.budget import Budget
from executa_host.reverse.tokens import Tokens
from executa_host.reverse.upstream import upstream_error
from executa_host.routing import ToolRoute
from executa_host.runtime import Runtime, ms_between
from executa_protocol.aio.calls import Call
from executa_protocol.codes import rpc_error, wire_error
from executa_protocol.errors import CallTimeout, RpcError
from executa_protocol.limits import MAX_INLINE_RESULT
from executa_protocol.methods.invoke import InvokeResult, read_invoke_result
from executa_protocol.methods.plain_answer import PlainAnswer
from executa_protocol.nexus import Nexus, NexusError


class Invoker:
    """Runs invokes on connections that are ready."""

    def __init__(self, nexus: Nexus, runtime: Runtime, tokens: Tokens) -> None:
        self._nexus = nexus
        self._runtime = runtime
        self._tokens = tokens
        self._monotonic = runtime.clock.monotonic
        self.canceller = Canceller(runtime)

    async def run(
        self,
        connection: Connection,
        route: ToolRoute,
        arguments: bytes,
        active: ActiveInvoke,
        started: float,
    ) -> InvokeOutcome:
        """Run one tool; `arguments` are encoded, and it is `started` now.

        Raises `InvokeTimeout`, `CallCancelled`, `ConnectionLost` and other `CallFailed`,
        `RpcError` for what the plugin answers with an error, `InvokeRefused` for what the
        host refuses, `PeerViolation` for an answer that cannot be read.
        """
        active.connection = connection
        connection.occupancy.accepted += 1
        if connection.followers.callbacks:
            tell_start(connection, active)
        try:
            if connection.needs_nexus:
                await self._open(connection, active)
                started_call = self._monotonic()
            else:
                started_call = started
            call = self._call(connection, route, arguments, active, started_call)
            answer = await call.future
            text = None
            if type(answer) is PlainAnswer:  # of a root, whose ledger is all there is
                result = answer
                active.ledger.bytes_in += answer.size
                if type(answer.value) is str:
                    text = answer.value
            else:
                result = _read(connection, call, active, answer)
        except BaseException as fault:
            told = self._ended_by(connection, active, fault)
            self._end(connection, active, _name_of(told), started)
            if told is fault:
                raise
            raise told from fault
        if active.cancelling is not None:
            active.verdict = CancelOutcome.COMPLETED_FIRST
        now = self._end(connection, active, "ok" if result.success else "tool_failed", started)
        return InvokeOutcome(
            active.invoke_id,
            active.plugin,
            active.tool,
            result.success,
            result.data,
            "" if result.error is UNSET else result.error,
            ms_between(started, now),
            active.ledger,
            text,
        )

    # --- Before ----------------------------------------------------------------------------

    async def _open(self, connection: Connection, active: ActiveInvoke) -> None:
        """Ask nexus for tokens and grants (R-39)."""
        opening = opening_of(connection, active.tool, active.invoke_id, active.app)
        active.opened = True  # also if it is not known whether it was
        try:
            within = max(0.0, active.deadline - self._monotonic())
            opened = self._nexus.open_invoke(opening)
            active.grant = await self._runtime.bounds.run(opened, within)
        except NexusError as fault:
            active.opened = False
            error = upstream_error("", fault)
            text = f"nexus did not open the invoke: {fault}"
            raise InvokeRefused(error.code, text, error.data) from fault
        except TimeoutError:
            raise InvokeTimeout("nexus did not open the invoke in time", written=False) from None
        connection.grants = active.grant.grants
        if self._runtime.recorder is not None:
            self._runtime.recorder.know_grant(active.grant)
        if active.parent is None:
            active.own_budget = Budget(active.grant.caps)
        self._tokens.watch(active)

    def _call(
        self,
        connection: Connection,
        route: ToolRoute,
        arguments: bytes,
        active: ActiveInvoke,
        now: float,
    ) -> Call:
        remaining = active.deadline - now
        if remaining <= 0:
            text = f"{active.plugin}.{active.tool} had no time left when it could be called"
            raise InvokeTimeout(text, written=False)
        if active.parent is None and not connection.needs_nexus:
            call = call_plainly(connection, route, arguments, active, remaining)
        else:
            params = invoke_params(connection, route, arguments, active, remaining)
            call = connection.peer.call("invoke", params, remaining)
            active.transferred(len(params), 0)
        active.call = call
        connection.invokes[active.invoke_id] = active
        return call

    # --- After ---------------------------------------------------------------------------

    def _ended_by(
        self, connection: Connection, active: ActiveInvoke, fault: BaseException
    ) -> BaseException:
        """What `fault` means to whoever waits; usually itself."""
        if isinstance(fault, asyncio.CancelledError):
            self.canceller.abandon(connection, active)
        elif active.cancelling is not None:
            active.verdict = verdict_of(fault)
            return error_of(fault, active)
        elif isinstance(fault, CallTimeout):
            return too_late(connection, active)
        return fault

    def _end(
        self, connection: Connection, active: ActiveInvoke, outcome: str, started: float
    ) -> float:
        """Nothing of the invoke stays behind: its reverse calls end with it. Gives the time."""
        active.ended = True
        connection.occupancy.accepted -= 1
        invoke_id = active.invoke_id
        connection.invokes.pop(invoke_id, None)
        if active.tasks:
            active.end_tasks()
        if active.opened:
            self._tokens.forget(active)
            closing = partial(self._nexus.close_invoke, invoke_id)
            within = self._runtime.patience.cleanup
            self._runtime.background.begin(closing, f"closing invoke {invoke_id} at nexus", within)
        now = self._monotonic()
        connection.occupancy.one_less(now)
        if connection.followers.callbacks:
            tell_end(connection, active, outcome, ms_between(started, now))
        if active.cancelling is not None:
            self.canceller.waiting.pop(invoke_id, None)
            tell_verdict(connection, active)
        if active.finished is not None and not active.finished.done():
            active.finished.set_result(None)
        return now


def _name_of(fault: BaseException) -> str:
    """How the record of an invoke names what ended it."""
    if isinstance(fault, RpcError):
        return fault.symbol or str(fault.code)
    return type(fault).__name__


def _read(connection: Connection, call: Call, active: ActiveInvoke, raw: Raw) -> InvokeResult:
    """The result of an invoke that is not a `PlainAnswer`."""
    size = len(memoryview(raw))
    active.transferred(0, size)
    _check_size(call, size)
    return read_invoke_result(raw, connection.reader)


def _check_size(call: Call, size: int) -> None:
    if size > MAX_INLINE_RESULT and not call.by_file:
        text = f"the result has {size:,} bytes and at most {MAX_INLINE_RESULT:,} go inline"
        error = wire_error(
            "RESULT_TOO_LARGE", text, result_size_bytes=size, max_payload_bytes=MAX_INLINE_RESULT
        )
        # No `InvokeRefused`: the plugin has done what was asked.
        raise rpc_error(error.code, text, error.data)
