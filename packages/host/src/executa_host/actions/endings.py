"""The move that ends an action, and the others that more than one part of the engine makes.

Owns what goes into one transaction: state, result, last chunks, receipts, callback. Who
decides on it is elsewhere.
"""

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from executa_host.actions import receipting
from executa_host.actions.operations import Attested, Decided, Move, Piece, Step, Stored
from executa_host.actions.outcomes import Verdict
from executa_host.actions.records import (
    ActionResult,
    ActionState,
    Approval,
    ApprovalStatus,
    Cancellation,
    CancelOutcome,
)
from executa_protocol.actions import TERMINAL, ResultStatus, result_status
from executa_protocol.chunks import ChunkKind
from executa_protocol.moves import IllegalMove

_ENCODER = msgspec.json.Encoder()
_RESULT = msgspec.json.Decoder(ActionResult)

_STEP_OF: Final = {
    ActionState.COMPLETED: "complete",
    ActionState.FAILED: "fail",
    ActionState.CANCELLED: "cancel_outcome",
    ActionState.EXPIRED: "expire",
    ActionState.DEAD_LETTERED: "dead_letter",
}

_END: Final = {
    state: Piece(ChunkKind.END, Raw(_ENCODER.encode({"state": state}))) for state in TERMINAL
}


def end(
    stored: Stored,
    verdict: Verdict,
    at_ms: int,
    *,
    output: Raw | UnsetType = UNSET,
    before: tuple[Step, ...] = (),
    step: str = "",
    why: str = "",
    cancellation: Cancellation | UnsetType = UNSET,
    approval: Approval | UnsetType = UNSET,
    receipts: tuple[Attested, ...] = (),
) -> Move:
    """The move to a terminal state. `before` are steps that come first."""
    record, state = stored.record, verdict.state
    asked = record.cancellation if isinstance(cancellation, UnsetType) else cancellation
    if not isinstance(asked, UnsetType) and not isinstance(verdict.cancelled, UnsetType):
        asked = cancellation = msgspec.structs.replace(asked, outcome=verdict.cancelled)
    result = _result(stored, verdict, output)
    steps = list(before)
    if not isinstance(verdict.error, UnsetType):
        steps.append(Piece(ChunkKind.ERROR, Raw(_ENCODER.encode(verdict.error))))
    steps += [state, _END[state]]
    return Move(
        step=step or _STEP_OF[state],
        at_ms=at_ms,
        action_id=record.action_id,
        session_id=record.session_id,
        state=record.state,
        fence=stored.fence,
        attempt=record.attempt,
        steps=tuple(steps),
        why=why,
        approval_is=guard(stored),
        cancellation=cancellation,
        approval=approval,
        dead_letter=verdict.dead_letter,
        last_error=verdict.error,
        result=result,
        receipts=(*receipts, receipting.outcome(state, record.attempt, result, asked)),
        callback_url=callback_url(stored),
    )


def _result(stored: Stored, verdict: Verdict, output: Raw | UnsetType) -> Raw:
    letter = verdict.dead_letter
    unknown = not isinstance(letter, UnsetType) and letter.outcome_unknown
    status = result_status(verdict.state, outcome_unknown=unknown)
    if status is None:
        raise IllegalMove("result", stored.record.state, verdict.state, "it is not terminal")
    result = ActionResult(
        action_id=stored.record.action_id,
        status=status,
        output=output if verdict.state is ActionState.COMPLETED else UNSET,
        error=verdict.error,
        cancellation=verdict.cancelled,
    )
    return Raw(_ENCODER.encode(result))


def move(
    stored: Stored, step: str, at_ms: int, *steps: Step, claim: bool = False, **more: Any
) -> Move:
    """A move that does not end the action."""
    record = stored.record
    return Move(
        step=step,
        at_ms=at_ms,
        action_id=record.action_id,
        session_id=record.session_id,
        state=record.state,
        fence=stored.fence,
        attempt=record.attempt,
        steps=steps,
        claim=claim,
        approval_is=guard(stored),
        **more,
    )


def guard(stored: Stored) -> ApprovalStatus | UnsetType:
    """While a decision is waited for, a move also holds on to what was decided so far: a
    decision changes neither state nor fence."""
    record = stored.record
    waits = record.state is ActionState.PENDING_APPROVAL
    return record.approval.status if waits and isinstance(record.approval, Approval) else UNSET


def cancel_unstarted(stored: Stored, asked: Cancellation, at_ms: int) -> Move:
    """Cancel what no plugin has heard of: requested and confirmed at once (R-45)."""
    verdict = Verdict(state=ActionState.CANCELLED, cancelled=CancelOutcome.CONFIRMED)
    before, approval = withdrawn(stored)
    return end(
        stored,
        verdict,
        at_ms,
        before=(*before, ActionState.CANCELLING),
        step="cancel",
        why="asked",
        cancellation=asked,
        approval=approval,
        receipts=(receipting.cancellation(asked),),
    )


def withdrawn(
    stored: Stored, status: ApprovalStatus = ApprovalStatus.WITHDRAWN
) -> tuple[tuple[Step, ...], Approval | UnsetType]:
    """What becomes of an approval that nobody will decide any more."""
    approval = stored.record.approval
    open_ones = (ApprovalStatus.REQUIRED, ApprovalStatus.REQUESTED)
    if isinstance(approval, UnsetType) or approval.status not in open_ones:
        return (), UNSET
    return (Decided(status),), msgspec.structs.replace(approval, status=status)


def callback_url(stored: Stored) -> str:
    """Where the action's outcome is posted; empty for nowhere."""
    callback = stored.terms.callback
    return "" if isinstance(callback, UnsetType) else callback.url


def after(stored: Stored, made: Move, fence: int, events: int, chunks: int) -> Stored:
    """The action as a move that won has left it."""
    record, target = stored.record, made.target
    again = target is ActionState.QUEUED and made.reason is not None
    changed: dict[str, Any] = {
        name: value
        for name in ("approval", "cancellation", "dead_letter", "last_error")
        if (value := getattr(made, name)) is not UNSET
    }
    if target in TERMINAL and not isinstance(made.result, UnsetType):
        changed["ended_at_ms"] = made.at_ms
        changed["result"] = _RESULT.decode(made.result)
    if made.claim and not record.started_at_ms:
        changed["started_at_ms"] = made.at_ms
    record = msgspec.structs.replace(
        record,
        state=target,
        attempt=made.attempt + again,
        updated_at_ms=made.at_ms,
        not_before_ms=made.not_before_ms,
        cursor=f"a{events}",
        chunks=chunks,
        **changed,
    )
    return Stored(record=record, fence=fence, terms=stored.terms, parties=stored.parties)


def result_of(stored: Stored) -> ActionResult | None:
    """The result that can be given now; also `pending_approval` is one (R-54)."""
    record = stored.record
    if record.state is ActionState.PENDING_APPROVAL:
        return ActionResult(record.action_id, ResultStatus.PENDING_APPROVAL)
    return None if isinstance(record.result, UnsetType) else record.result
