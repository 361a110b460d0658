"""What followers are told of an invoke: that it began, how it ended, what it used."""

import time

from executa_host.connection import Connection
from executa_host.invocation import ActiveInvoke
from executa_protocol import transcript


def tell_start(connection: Connection, active: ActiveInvoke) -> None:
    """It has begun. Emitted in the task that runs it."""
    parent = "" if active.parent is None else active.parent.invoke_id
    connection.emit(
        transcript.InvokeStarted(
            at=time.time(), invoke_id=active.invoke_id, tool=active.tool, parent=parent
        )
    )


def tell_end(connection: Connection, active: ActiveInvoke, outcome: str, ms: float) -> None:
    """It has ended: its ledger, and what its root has used of the budget by now."""
    ledger, budget = active.ledger, active.budget
    connection.emit(
        transcript.InvokeEnded(
            at=time.time(),
            invoke_id=active.invoke_id,
            tool=active.tool,
            outcome=outcome,
            ms=ms,
            sampling_calls=ledger.sampling_calls,
            tokens=ledger.tokens,
            storage_calls=ledger.storage_calls,
            agent_runs=ledger.agent_runs,
            nested_calls=ledger.nested_calls,
            frames=ledger.frames,
            frame_bytes=ledger.frame_bytes,
            progress=ledger.progress,
            progress_dropped=ledger.progress_dropped,
            denied=ledger.denied,
            bytes_in=ledger.bytes_in,
            bytes_out=ledger.bytes_out,
            calls=budget.calls,
            calls_cap=budget.caps.sampling_calls,
            tokens_used=budget.tokens,
            tokens_cap=budget.caps.tokens,
        )
    )


def tell_verdict(connection: Connection, active: ActiveInvoke) -> None:
    """What became of a cancelled invoke, once that is known."""
    if active.verdict is not None:
        connection.emit(
            transcript.CancelEnded(
                at=time.time(),
                invoke_id=active.invoke_id,
                outcome=active.verdict.value,
                reason=active.cancelling or "",
            )
        )
