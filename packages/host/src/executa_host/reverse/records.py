"""What followers and ledgers get to know of each reverse call."""

import time
from collections.abc import Callable
from typing import cast

from msgspec import UNSET

from executa_host.connection import Connection
from executa_host.invocation import ActiveInvoke
from executa_host.reverse.call import Refused, ReverseCall
from executa_host.runtime import ms_between
from executa_protocol import transcript
from executa_protocol.codes import ErrorObject, find
from executa_protocol.gate import Refusal


def began(call: ReverseCall) -> None:
    """It is being served. Emitted in the task that serves it."""
    if call.connection.followers.callbacks:
        call.connection.emit(
            transcript.ReverseStarted(
                at=time.time(),
                method=call.name,
                call=call.number,
                invoke_id=call.invoke.invoke_id,
            )
        )


def ended(
    call: ReverseCall,
    error: ErrorObject | None,
    refusal: Refusal | None,
    size: int,
    monotonic: Callable[[], float],
) -> None:
    """It is about to be answered, by `size` bytes if it was served."""
    invoke = call.invoke
    asked = 0 if call.raw is UNSET else len(memoryview(call.raw))
    invoke.transferred(size, asked)
    if refusal is not None:
        _denied(invoke)
    if call.connection.followers.callbacks:
        event = _ended_event(call.name, invoke, error, refusal)
        event.call = call.number
        event.ms = ms_between(call.started, monotonic())
        event.tokens = call.tokens
        call.connection.emit(event)


def turned_down(
    connection: Connection,
    name: str,
    invoke: ActiveInvoke | None,
    error: ErrorObject,
    why: Exception,
) -> None:
    """It was refused before anything was done for it."""
    refusal = why.refusal if isinstance(why, Refused) else None
    if refusal is not None and invoke is not None:
        _denied(invoke)
    if connection.followers.callbacks:
        connection.emit(_ended_event(name, invoke, error, refusal))


def _denied(invoke: ActiveInvoke) -> None:
    for ledger in invoke.ledgers():
        ledger.denied += 1


def _ended_event(
    name: str, invoke: ActiveInvoke | None, error: ErrorObject | None, refusal: Refusal | None
) -> transcript.ReverseEnded:
    row = None if error is None else find(error.code, _symbol_of(error))
    return transcript.ReverseEnded(
        at=time.time(),
        method=name,
        call=0,
        verdict="served" if error is None else "refused" if refusal else "failed",
        ms=0.0,
        invoke_id="" if invoke is None else invoke.invoke_id,
        step="" if refusal is None else refusal.step,
        code=0 if error is None else error.code,
        symbol="" if row is None else row.symbol,
        message="" if error is None else error.message,
    )


def _symbol_of(error: ErrorObject) -> str:
    data: object = error.data
    symbol = cast("dict[str, object]", data).get("errorCode") if isinstance(data, dict) else None
    return symbol if isinstance(symbol, str) else ""
