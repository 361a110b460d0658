"""Operations as tests of a store need them: whole, with defaults that fit."""

import itertools
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from executa_host.actions import receipting
from executa_host.actions.endings import end, move, withdrawn
from executa_host.actions.operations import (
    Accept,
    Move,
    Moved,
    OpenSession,
    Step,
    Stored,
    Terms,
    TokenRecord,
)
from executa_host.actions.outcomes import Verdict
from executa_host.actions.records import (
    ActionState,
    Approval,
    ApprovalStatus,
    Cancellation,
    DeadLetter,
    Effect,
    Mode,
    SessionRecord,
)
from executa_host.actions.store import Store
from executa_protocol import canonical
from executa_protocol.ids import IdSource

S = ActionState
AT = 1_700_000_000_000
IDS = IdSource(lambda: AT / 1000)
INPUT = Raw(b'{"text":"t"}')
_numbers = itertools.count(1)


def terms(given: Raw = INPUT, **members: Any) -> Terms:
    """Terms of a capability that reads."""
    known: dict[str, Any] = {
        "mode": Mode.ASYNC,
        "effect": Effect.READ,
        "user_id": "local",
        "timeout_ms": 60_000,
        "max_attempts": 3,
        "input_digest": canonical.digest(given),
    }
    return Terms(**(known | members))


def accept(
    given: Raw = INPUT,
    *,
    tenant: str = "default",
    principal: str = "ana",
    capability: str = "p.read",
    session_id: str = "",
    approval: Approval | UnsetType = UNSET,
    action_id: str = "",
    at_ms: int = AT,
    expires_at_ms: int = 0,
    **members: Any,
) -> Accept:
    """An acceptance; `members` are those of its terms."""
    of = terms(given, **members)
    return Accept(
        at_ms=at_ms,
        action_id=action_id or IDS.action_id(),
        tenant=tenant,
        principal=principal,
        subject=principal,
        capability=capability,
        terms=of,
        input=given,
        session_id=session_id,
        approval=approval,
        expires_at_ms=expires_at_ms,
        receipts=(receipting.acceptance(tenant, principal, capability, of),),
    )


def token(name: str, principal: str = "ana") -> TokenRecord:
    """A resume token whose hash is `name`."""
    return TokenRecord(
        token_hash=name, chain=f"chain of {name}", principal=principal, expires_at_ms=AT + 10**9
    )


async def open_session(
    store: Store, *, initiator: str = "ana", responder: str = "ben", **members: Any
) -> SessionRecord:
    """A new session."""
    known: dict[str, Any] = {
        "at_ms": AT,
        "session_id": IDS.session_id(),
        "tenant": "default",
        "initiator": initiator,
        "responder": responder,
        "token": token(f"token {next(_numbers)}", initiator),
    }
    return await store.apply(OpenSession(**(known | members)))


async def stored(store: Store, action_id: str) -> Stored:
    """An action, which must be there."""
    found = await store.action(action_id)
    assert isinstance(found, Stored)
    return found


async def accepted(store: Store, **members: Any) -> Stored:
    """A new action."""
    answer = await store.apply(accept(**members))
    return await stored(store, answer.action_id)


async def go(store: Store, action_id: str, *states: ActionState, at_ms: int = AT) -> Stored:
    """Walk an action through states, one move each, as an engine would."""
    for state in states:
        answer = await step(store, await stored(store, action_id), state, at_ms=at_ms)
        assert answer.won
    return await stored(store, action_id)


async def step(store: Store, of: Stored, state: ActionState, *, at_ms: int = AT) -> Moved:
    """One move."""
    return await store.apply(to(of, state, at_ms=at_ms))


def to(of: Stored, state: ActionState, *, at_ms: int = AT) -> Move:
    """The move to a state, with whatever must go with it."""
    record = of.record
    waits = record.state is S.PENDING_APPROVAL
    if state in (S.COMPLETED, S.FAILED, S.CANCELLED, S.EXPIRED, S.DEAD_LETTERED):
        letter: Any = UNSET
        outcome: Any = UNSET
        if record.cancellation is not UNSET:
            outcome = "confirmed"
        if state is S.DEAD_LETTERED:
            letter = DeadLetter(reason="host_crashed", outcome_unknown=True, attempts=1)
        before, approval = withdrawn(of)
        made = end(
            of,
            Verdict(state=state, dead_letter=letter, cancelled=outcome),
            at_ms,
            output=Raw(b"1"),
            before=before,
            approval=approval,
        )
        made.reason = "denied" if waits and state is S.FAILED else None
        return made
    steps: list[Step] = []
    more: dict[str, Any] = {}
    if state is S.CANCELLING:
        more["cancellation"] = Cancellation(requested_by="ana", requested_at_ms=at_ms)
        steps, more["approval"] = list(withdrawn(of)[0]), withdrawn(of)[1]
    if state is S.PENDING_APPROVAL:
        more["approval"] = Approval(status=ApprovalStatus.REQUESTED, content="c")
    if waits and state is S.RUNNING:
        more["approval"] = Approval(status=ApprovalStatus.APPROVED, content="c")
    if state is S.QUEUED and record.state is not S.ACCEPTED:
        more["reason"] = "retry"
    return move(of, "queue", at_ms, *steps, state, claim=state is S.RUNNING, **more)
