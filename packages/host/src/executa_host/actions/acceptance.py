"""From a submission to an operation: everything that is refused is refused here, before disk.

Owns the rules of what may be submitted (seed actions-and-sessions, Action Identity; R-43,
R-46, R-52). Pure but for the ids and the time that it is given.
"""

import msgspec
from msgspec import UNSET, Struct, UnsetType

from executa_host.actions import receipting
from executa_host.actions.access import delegated, require, require_approver
from executa_host.actions.contracts import Capability, content_of
from executa_host.actions.faults import ActionsError, Code, Forbidden, Invalid
from executa_host.actions.limits import EXPIRY_MAX
from executa_host.actions.operations import Accept, Attested, Stored, Terms
from executa_host.actions.records import (
    ActionRecord,
    ActionState,
    AppContext,
    Approval,
    ApprovalStatus,
    Contract,
)
from executa_host.actions.requests import Caller, Scope, Submission
from executa_host.actions.settings import EngineSettings
from executa_host.actions.submission_checks import (
    TIMEOUT_MAX,
    check_callback,
    check_context,
    check_input,
    check_names,
    milliseconds,
)


class _Party(Struct, frozen=True):
    """For whom an action is, and whose plugins run for it."""

    tenant: str
    subject: str
    user_id: str
    delegation: tuple[str, ...]
    app: AppContext | UnsetType
    redrive_of: str = ""


class Prepared(Struct):
    """An action that may be accepted: the operation, and the record that it will make."""

    accept: Accept
    stored: Stored


def prepare(
    caller: Caller,
    submission: Submission,
    capability: Capability,
    settings: EngineSettings,
    *,
    action_id: str,
    at_ms: int,
    origin: Stored | None = None,
) -> Prepared:
    """Hold a submission against its contract. Raises `Invalid` and `Forbidden`.

    `origin` is the dead letter that it is made of: the action is for whom that one was.
    """
    contract = capability.contract
    if submission.mode not in contract.modes:
        offered = ", ".join(contract.modes)
        msg = f"{contract.capability} does not offer the mode {submission.mode}; it has {offered}"
        raise Invalid(Code.MODE_NOT_OFFERED, msg, path="$.mode")
    check_names(submission)
    party = _own(caller, submission, settings) if origin is None else _inherited(caller, origin)
    check_callback(party.tenant, submission.callback, settings.callbacks)
    check_context(submission.context)
    input_digest = check_input(submission.input, capability, strict=settings.strict)
    terms = Terms(
        mode=submission.mode,
        effect=contract.effect,
        user_id=party.user_id,
        timeout_ms=milliseconds(
            "$.timeout_ms", submission.timeout_ms, contract.timeout_ms, TIMEOUT_MAX
        ),
        max_attempts=contract.retry.attempts if contract.effect.repeatable else 1,
        retry=contract.retry,
        idempotency_key=submission.idempotency_key,
        input_digest=input_digest,
        entry=contract.entry,
        context=submission.context,
        callback=submission.callback,
        delegation=party.delegation,
        app=party.app,
        transaction=submission.transaction,
        approval_ttl_ms=contract.approval_ttl_ms,
        redrive_of=party.redrive_of,
    )
    approval = _approval(submission, contract, input_digest)
    if approval is not UNSET and approval.status is ApprovalStatus.APPROVED:
        _require_own_decision(caller, contract, settings)
        approval = msgspec.structs.replace(
            approval, decided_by=caller.principal, decided_at_ms=at_ms
        )
    expires_in = milliseconds(
        "$.expires_in_ms", submission.expires_in_ms, settings.expires_after_ms, EXPIRY_MAX
    )
    receipts: tuple[Attested, ...] = (
        receipting.acceptance(party.tenant, caller.principal, contract.capability, terms),
    )
    if approval is not UNSET and approval.status is ApprovalStatus.APPROVED:
        receipts = (*receipts, receipting.decision(approval))
    accept = Accept(
        at_ms=at_ms,
        action_id=action_id,
        tenant=party.tenant,
        principal=caller.principal,
        subject=party.subject,
        capability=contract.capability,
        terms=terms,
        input=submission.input,
        session_id=submission.session_id,
        expires_at_ms=at_ms + expires_in if expires_in else 0,
        approval=approval,
        receipts=receipts,
    )
    return Prepared(accept, _stored(accept))


def _own(caller: Caller, submission: Submission, settings: EngineSettings) -> _Party:
    """The caller's own, or of those that it may act for."""
    if submission.app is not UNSET:
        require(caller, Scope.ATTEST)
    chain = submission.delegation
    subject, user_id = delegated(caller, chain, submission.capability, settings.delegations)
    return _Party(caller.tenant, subject, user_id, chain, submission.app)


def _inherited(caller: Caller, origin: Stored) -> _Party:
    """The same as a dead letter's: whoever drives it again does so for those whose it was."""
    record, terms = origin.record, origin.terms
    chain = terms.delegation or (record.principal,)
    if chain[-1] != caller.principal:
        chain = (*chain, caller.principal)
    return _Party(
        record.tenant,
        record.subject,
        terms.user_id,
        chain if len(chain) > 1 else (),
        terms.app,
        record.action_id,
    )


def _stored(accept: Accept) -> Stored:
    terms = accept.terms
    given = accept.approval is not UNSET and accept.approval.status is ApprovalStatus.APPROVED
    record = ActionRecord(
        action_id=accept.action_id,
        capability=accept.capability,
        state=ActionState.ACCEPTED,
        mode=terms.mode,
        tenant=accept.tenant,
        principal=accept.principal,
        subject=accept.subject,
        effect=terms.effect,
        accepted_at_ms=accept.at_ms,
        updated_at_ms=accept.at_ms,
        cursor="a2" if given else "a1",
        session_id=accept.session_id,
        max_attempts=terms.max_attempts,
        timeout_ms=terms.timeout_ms,
        expires_at_ms=accept.expires_at_ms,
        idempotency_key=terms.idempotency_key,
        input_digest=terms.input_digest,
        context=terms.context,
        callback=terms.callback,
        delegation=terms.delegation,
        app=terms.app,
        transaction=terms.transaction,
        approval=accept.approval,
        redrive_of=terms.redrive_of,
    )
    return Stored(record=record, fence=0, terms=terms)


def _approval(
    submission: Submission, contract: Contract, input_digest: str
) -> Approval | UnsetType:
    if submission.approval not in ("", "ask", "given"):
        msg = "$.approval: expected 'ask' or 'given'"
        raise Invalid(Code.INVALID_REQUEST, msg, path="$.approval")
    if not contract.approval and not submission.approval:
        return UNSET
    given = submission.approval == "given"
    return Approval(
        status=ApprovalStatus.APPROVED if given else ApprovalStatus.REQUIRED,
        content=content_of(contract, input_digest),
        approvers=contract.approvers,
    )


def _require_own_decision(caller: Caller, contract: Contract, settings: EngineSettings) -> None:
    """Who submits may decide at once, if it may decide."""
    try:
        require_approver(
            caller, contract.approvers, caller.principal, own_approvals=settings.own_approvals
        )
    except ActionsError as fault:
        raise Forbidden(fault.code, fault.message, path="$.approval", data=fault.data) from fault
