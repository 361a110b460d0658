"""New actions: their keys, their rows, the first lines of their logs (R-43)."""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from executa_host.actions.crashpoints import point
from executa_host.actions.faults import ActionsError, Code, Conflict, Gone, NotFound
from executa_host.actions.operations import Accept, Accepted, Decided, Step
from executa_host.actions.records import ApprovalStatus, DeadLetter
from executa_host.actions.sqlite import values
from executa_host.actions.sqlite.rows import find_action, json_text
from executa_host.actions.sqlite.work import Logged, Work
from executa_protocol.actions import ActionState

_KEYS: Final = (
    "insert into idempotency_keys"
    " (tenant, principal, capability, key, op, action_id, digest) values"
)
_KEYS_AFTER: Final = "on conflict do nothing returning op"
_TAKEN: Final = "with m (op, tenant, principal, capability, key) as (values"
_TAKEN_AFTER: Final = """) select m.op, k.action_id, k.digest, a.n is not null
    from m join idempotency_keys k on k.tenant = m.tenant and k.principal = m.principal
        and k.capability = m.capability and k.key = m.key
    left join actions a on a.action_id = k.action_id"""
_ACTION: Final = (
    "n, action_id, tenant, principal, subject, capability, state, events, accepted_ms, updated_ms,"
    " expires_ms, op"
)
_ACCEPTED: Final = str(ActionState.ACCEPTED)
_REQUESTS: Final = "insert into requests (action, terms, input) values"


def accept(work: Work, accepts: Sequence[tuple[int, Accept]]) -> None:
    """Take in what is not refused."""
    work.load_sessions(each.session_id for _, each in accepts)
    admitted: list[tuple[int, Accept]] = []
    for op, each in accepts:
        refusal = _session_refusal(work, each)
        if refusal is None:
            admitted.append((op, each))
        else:
            work.answers[op] = refusal
    late = _take_keys(work, admitted)
    fresh = [(op, each) for op, each in admitted if op not in late]
    if fresh:
        _insert(work, fresh)
    if late:  # after the others: the first with a key may be among them
        _answer_late(work, late)
    point("batch.accepted")


def redrive(work: Work, op: int, accepted: Accept) -> None:
    """Take in an action that is made of a dead letter, once for each dead letter."""
    old = find_action(work.db, accepted.terms.redrive_of)
    letter = UNSET if old is None else old.record.dead_letter
    if not isinstance(letter, DeadLetter):
        raise Conflict(Code.NOT_DEAD_LETTERED, f"{accepted.terms.redrive_of} is no dead letter")
    if letter.redriven_as:
        work.answers[op] = Accepted(letter.redriven_as, replayed=True)
        return
    accept(work, [(op, accepted)])
    if isinstance(work.answers[op], Accepted):
        work.db.execute(
            "update actions set dead_letter = json_set(dead_letter, '$.redriven_as', ?)"
            " where action_id = ?",
            (work.answers[op].action_id, accepted.terms.redrive_of),
        )
        work.touched.add(accepted.terms.redrive_of)


def _session_refusal(work: Work, accepted: Accept) -> ActionsError | None:
    if not accepted.session_id:
        return None
    session = work.session(accepted.session_id)
    if session is None:
        return NotFound(Code.UNKNOWN_SESSION, f"there is no session {accepted.session_id}")
    if session.ended:
        text_ = f"session {accepted.session_id} has ended: it is {session.state}"
        return Conflict(Code.SESSION_ENDED, text_)
    return None


def _take_keys(work: Work, accepts: Sequence[tuple[int, Accept]]) -> dict[int, Accept]:
    """Take the keys. Those that were not the first with theirs are returned."""
    keyed = {op: each for op, each in accepts if each.terms.idempotency_key}
    if not keyed:
        return {}
    rows = [
        (*_key(each), op, each.action_id, each.terms.input_digest) for op, each in keyed.items()
    ]
    won = {row[0] for row in values.run(work.db, _KEYS, _KEYS_AFTER, rows)}
    return {op: each for op, each in keyed.items() if op not in won}


def _answer_late(work: Work, late: dict[int, Accept]) -> None:
    rows = [(op, *_key(each)) for op, each in late.items()]
    for op, action_id, digest, there in values.run(work.db, _TAKEN, _TAKEN_AFTER, rows):
        work.answers[op] = _replay(late[op], action_id, digest, there=bool(there))


def _key(accepted: Accept) -> tuple[str, str, str, str]:
    key = accepted.terms.idempotency_key
    return accepted.tenant, accepted.principal, accepted.capability, key


def _replay(
    accepted: Accept, action_id: str, digest: str, *, there: bool
) -> Accepted | ActionsError:
    if digest != accepted.terms.input_digest:
        msg = f"this idempotency key belongs to {action_id}, which has another input"
        return Conflict(Code.IDEMPOTENCY_CONFLICT, msg, data={"action_id": action_id})
    if not there:
        msg = f"this idempotency key belongs to {action_id}, which retention has removed"
        return Gone(Code.REMOVED, msg, data={"action_id": action_id})
    return Accepted(action_id, replayed=True)


def _insert(work: Work, accepts: Sequence[tuple[int, Accept]]) -> None:
    actions = values.Rows("actions")
    requests: list[values.Row] = []
    logs: list[tuple[Accept, Logged, tuple[Step, ...]]] = []
    for op, each in accepts:
        n = work.take_number("action")
        session = work.session(each.session_id)
        terms = each.terms
        transaction = terms.transaction
        approval = each.approval
        steps: tuple[Step, ...] = (ActionState.ACCEPTED,)
        if approval is not UNSET and approval.status is ApprovalStatus.APPROVED:
            steps = (ActionState.ACCEPTED, Decided(approval.status))
        columns = _ACTION
        row: values.Row = (
            n,
            each.action_id,
            each.tenant,
            each.principal,
            each.subject,
            each.capability,
            _ACCEPTED,
            len(steps),
            each.at_ms,
            each.at_ms,
            each.expires_at_ms,
            op,
        )
        if session is not None:
            columns, row = f"{columns}, session", (*row, session.n)
        if transaction is not UNSET:
            columns, row = f"{columns}, transaction_id", (*row, transaction.transaction_id)
        if approval is not UNSET:
            columns = f"{columns}, approval_status, approval"
            row = (*row, str(approval.status), json_text(approval))
        actions.add(columns, row)
        requests.append((n, json_text(terms), bytes(each.input).decode()))
        logged = Logged(n, each.action_id, ActionState.ACCEPTED, 1, session=session)
        logs.append((each, logged, steps))
        work.answers[op] = Accepted(each.action_id)
    actions.write(work.db)
    values.run(work.db, _REQUESTS, "", requests)
    for each, logged, steps in logs:
        work.log(logged, steps, each.at_ms)
        work.attest(logged, each.at_ms, each.receipts, first=True)
