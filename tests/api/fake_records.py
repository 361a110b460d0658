"""What the engine in memory can run, and the records it makes."""

from msgspec import UNSET

from executa_host.actions.records import (
    ActionRecord,
    ActionState,
    Approval,
    ApprovalStatus,
    Contract,
    Effect,
    Mode,
)
from executa_host.actions.requests import Caller, Submission

CONTRACTS = {
    "notebook.recall": Contract(
        capability="notebook.recall",
        effect=Effect.READ,
        modes=(Mode.SYNC, Mode.ASYNC, Mode.STREAMING),
    ),
    "bank.pay": Contract(capability="bank.pay", approval=True),
}


def record_of(
    action_id: str, caller: Caller, submission: Submission, contract: Contract, content: str
) -> ActionRecord:
    """The record of an action that was just accepted. `content` is its input's digest."""
    approval = Approval(status=ApprovalStatus.REQUESTED, content=content)
    return ActionRecord(
        action_id=action_id,
        capability=submission.capability,
        state=ActionState.ACCEPTED,
        mode=submission.mode,
        tenant=caller.tenant,
        principal=caller.principal,
        subject=caller.principal,
        effect=contract.effect,
        accepted_at_ms=1,
        updated_at_ms=1,
        cursor="",
        session_id=submission.session_id,
        input=submission.input,
        idempotency_key=submission.idempotency_key,
        approval=approval if contract.approval else UNSET,
    )
