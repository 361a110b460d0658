"""Runs attempts on a `Host`, and makes chunks of what its plugins show meanwhile.

Owns the translation both ways: an attempt becomes an invoke, its end an `Ended`; the frames
of the agent runs that it makes become ``tool``, ``preview`` and ``data`` chunks, and
`executa/progress` becomes ``progress`` (R-44).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Generator
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from executa_host.actions.records import ActionError, Observability
from executa_host.actions.runner import Attempt, Emit, Ended
from executa_host.handle import InvokeHandle
from executa_host.host import Host
from executa_host.invocation import CancelOutcome, InvokeOutcome, InvokeRefused, InvokeTimeout
from executa_protocol import codec
from executa_protocol.chunks import ChunkKind
from executa_protocol.codes import find
from executa_protocol.errors import (
    CallCancelled,
    CallFailed,
    ExecutaError,
    LocalError,
    PeerViolation,
    RpcError,
    WriteQueueFull,
)
from executa_protocol.transcript import AnyEvent, RunFrame

_log = logging.getLogger(__name__)

KIND_OF: Final = {
    "delta": ChunkKind.PREVIEW,
    "tool_call": ChunkKind.TOOL,
    "tool_result": ChunkKind.TOOL,
    "final": ChunkKind.DATA,
}
"""What a frame of an agent run is to those who follow the action; others are previews."""

_MEMBERS: Final = msgspec.json.Decoder(dict[str, Raw])
_NULL: Final = Raw(b"null")


class _FrameEvent(msgspec.Struct, gc=False):
    event: str = ""


_EVENT: Final = msgspec.json.Decoder(_FrameEvent)


class HostRunner:
    """A `Runner` on `host`. Close it before the host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._emits: dict[str, Emit] = {}
        self._unfollow: Callable[[], None] = host.follow(self._heard)

    def close(self) -> None:
        """Follow the host no longer."""
        self._unfollow()

    @property
    def pending_count(self) -> int:
        """Attempts under way; for the leak check."""
        return len(self._emits)

    def begin(self, attempt: Attempt, emit: Emit) -> "HostRun":
        """See `Runner.begin`."""
        try:
            with _tracing(attempt.observability):
                handle = self._host.begin(
                    attempt.plugin,
                    attempt.tool,
                    _MEMBERS.decode(attempt.input),  # each member as it was written
                    timeout=attempt.timeout_ms / 1000,
                    user_id=attempt.user_id,
                    app=None if isinstance(attempt.app, UnsetType) else attempt.app,
                    on_progress=lambda params: emit(ChunkKind.PROGRESS, params),
                )
        except ExecutaError as fault:
            return HostRun(None, ended_of(fault))
        self._emits[handle.invoke_id] = emit
        self._host.note_attempt(attempt.action_id, attempt.attempt, handle)
        return HostRun(handle, None, lambda: self._emits.pop(handle.invoke_id, None))

    def _heard(self, event: AnyEvent) -> None:
        if isinstance(event, RunFrame):
            emit = self._emits.get(event.invoke_id)
            if emit is not None:
                kind = KIND_OF.get(_EVENT.decode(event.frame).event, ChunkKind.PREVIEW)
                emit(kind, event.frame)


class HostRun:
    """See `Run`."""

    def __init__(
        self,
        handle: InvokeHandle | None,
        ended: Ended | None,
        done: Callable[[], object] = bool,
    ) -> None:
        self._handle = handle
        self._ended = ended
        self._done = done
        self._cancelling: asyncio.Task[Any] | None = None

    async def ended(self) -> Ended:
        """See `Run.ended`."""
        handle = self._handle
        if self._ended is not None or handle is None:
            return self._ended or Ended(kind="lost", written=False)
        try:
            outcome = await handle.result()
        except ExecutaError as fault:
            if self._cancelling is not None:
                await asyncio.wait((self._cancelling,))
            return ended_of(fault, handle.cancel_outcome)
        except Exception as fault:  # noqa: BLE001 - a bug may not leave an action running
            _log.exception("%r failed inside the host", handle)
            error = ActionError("INTERNAL_ERROR", f"the host failed: {type(fault).__name__}")
            return Ended(kind="lost", error=error, written=handle.written)
        finally:
            self._done()
        return _answered(outcome)

    def cancel(self, reason: str) -> None:
        """See `Run.cancel`."""
        if self._handle is not None and self._cancelling is None:
            cancelling = self._handle.cancel(reason or "cancelled")
            self._cancelling = asyncio.get_running_loop().create_task(cancelling)

    def abandon(self) -> None:
        """See `Run.abandon`: the host ends it when it closes, and recovery decides."""
        self._done()


def _answered(outcome: InvokeOutcome) -> Ended:
    output = _NULL if isinstance(outcome.raw, UnsetType) else outcome.raw
    if outcome.success:
        return Ended(kind="answered", output=output)
    data: dict[str, Any] | UnsetType = UNSET
    if output is not _NULL:
        data = {"output": codec.decode_any(output)}
    words = outcome.error or "the tool failed without a word"
    return Ended(kind="answered", error=ActionError("TOOL_FAILED", words, data=data))


def ended_of(fault: ExecutaError, cancelled: CancelOutcome | None = None) -> Ended:
    """How an attempt ended whose invoke raised `fault`."""
    if isinstance(fault, CallCancelled):
        acknowledged = cancelled is CancelOutcome.CONFIRMED
        error = ActionError("CANCELLED", str(fault))
        written = fault.written is not False
        return Ended(kind="cancelled", error=error, written=written, acknowledged=acknowledged)
    if isinstance(fault, InvokeRefused):
        return Ended(kind="refused", error=_rpc_error(fault), written=False)
    if isinstance(fault, RpcError):
        acknowledged = fault.symbol == "INVOKE_CANCELLED"
        kind = "cancelled" if acknowledged else "answered"
        return Ended(kind=kind, error=_rpc_error(fault), acknowledged=acknowledged)
    if isinstance(fault, InvokeTimeout):
        error = ActionError("TIMED_OUT", str(fault), retryable=True)
        return Ended(kind="timed_out", error=error, written=fault.written is not False)
    if isinstance(fault, CallFailed):
        error = ActionError("CONNECTION_LOST", str(fault), retryable=True)
        return Ended(kind="lost", error=error, written=fault.written is not False)
    if isinstance(fault, LocalError):
        busy = isinstance(fault, WriteQueueFull)
        code = "PLUGIN_BUSY" if busy else "NOT_SENDABLE"
        error = ActionError(code, str(fault), retryable=busy)
        return Ended(kind="refused", error=error, written=False)
    code = "UNREADABLE_ANSWER" if isinstance(fault, PeerViolation) else "INTERNAL_ERROR"
    return Ended(kind="answered", error=ActionError(code, str(fault)))


def _rpc_error(fault: RpcError) -> ActionError:
    row = find(fault.code, fault.symbol)
    code = fault.symbol or (f"RPC_{abs(fault.code)}" if row is None else row.symbol)
    retryable = row is not None and row.disposition == "retry"
    path = fault.data.get("path")
    data = {name: value for name, value in fault.data.items() if name not in ("errorCode", "path")}
    return ActionError(
        code, fault.message, retryable, path if isinstance(path, str) else "", data or UNSET
    )


@contextlib.contextmanager
def _tracing(observability: Observability | UnsetType) -> Generator[None]:
    """Make the caller's trace context the parent of what begins here, where spans are made."""
    if isinstance(observability, UnsetType):
        yield
        return
    try:
        from opentelemetry import context, propagate  # noqa: PLC0415 - an extra
    except ImportError:
        yield
        return
    names = ("traceparent", "tracestate", "baggage")
    carrier = {name: value for name in names if (value := getattr(observability, name))}
    token: Any = context.attach(propagate.extract(carrier))
    try:
        yield
    finally:
        context.detach(token)
