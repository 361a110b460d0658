"""What every store must do about sessions, tokens, listings, transactions and retention."""

import asyncio
from typing import Any

import pytest
from msgspec import UNSET

from executa_host.actions.faults import ActionsError, Code
from executa_host.actions.operations import (
    Attach,
    CallbackTried,
    CloseSession,
    Move,
    Prune,
    Rotate,
    Rotated,
    Settle,
    Stored,
)
from executa_host.actions.records import (
    ActionState,
    Approval,
    ApprovalStatus,
    SessionState,
    Transaction,
)
from executa_host.actions.requests import ActionQuery, SessionQuery
from executa_host.actions.store import Marker, Store, Viewer
from tests.actions.samples import (
    AT,
    IDS,
    accept,
    accepted,
    go,
    open_session,
    step,
    stored,
    to,
    token,
)

S = ActionState
WINDOW = 60_000
EVERYBODY = Viewer()


def rotate(name: str, attempt: str = "one", at_ms: int = AT, **members: Any) -> Rotate:
    """A resume with the token whose hash is `name`; the next one's is ``name+``."""
    known: dict[str, Any] = {
        "at_ms": at_ms,
        "token_hash": name,
        "tenant": "default",
        "principal": "ana",
        "attempt_hash": attempt,
        "nonce": f"nonce of {name} for {attempt}",
        "new_hash": f"{name}+",
        "window_ms": WINDOW,
        "new_expires_at_ms": at_ms + 10**9,
    }
    return Rotate(**(known | members))


async def refused(store: Store, operation: Any) -> Code:
    """The code that an operation is refused with."""
    with pytest.raises(ActionsError) as refusal:
        await store.apply(operation)
    return refusal.value.code


class SessionsContract:
    """Sessions and what they show (R-49)."""

    async def states(self, store: Store, session_id: str) -> list[str]:
        page = await store.events(session_id, "", 1000)
        return [event.state for event in page.events if event.type == "session"]

    async def test_a_session_shows_its_most_advanced_action(self, store: Store) -> None:
        session_id = (await open_session(store)).session_id
        one = (await accepted(store, session_id=session_id)).record.action_id
        two = (await accepted(store, session_id=session_id)).record.action_id
        await go(store, one, S.QUEUED, S.RUNNING, S.PENDING_APPROVAL)
        await go(store, two, S.QUEUED, S.RUNNING, S.STREAMING, S.COMPLETED)
        await go(store, one, S.RUNNING, S.COMPLETED)

        shown = await self.states(store, session_id)
        assert shown == [
            "new",
            "active",
            "queued",
            "processing",
            "waiting_for_human",
            "processing",
            "active",
        ]

    async def test_moves_that_share_a_commit_still_show_legal_states(self, store: Store) -> None:
        session_id = (await open_session(store)).session_id
        ids = [(await accepted(store, session_id=session_id)).record.action_id for _ in range(20)]
        for state in (S.QUEUED, S.RUNNING, S.STREAMING, S.COMPLETED):
            found = [await stored(store, each) for each in ids]
            await asyncio.gather(*(step(store, each, state) for each in found))
        record = await store.session(session_id)
        assert not isinstance(record, Marker)
        assert record is not None
        assert (record.state, record.open_actions) == (SessionState.ACTIVE, 0)

    async def test_a_log_over_all_actions_has_no_gap(self, store: Store) -> None:
        session_id = (await open_session(store)).session_id
        ids = [(await accepted(store, session_id=session_id)).record.action_id for _ in range(5)]
        await asyncio.gather(*(go(store, each, S.QUEUED, S.RUNNING, S.COMPLETED) for each in ids))
        page = await store.events(session_id, "", 1000)
        assert [event.cursor for event in page.events] == [
            f"s{number}" for number in range(1, len(page.events) + 1)
        ]
        assert not page.ended

    @pytest.mark.parametrize("outcome", ["completed", "cancelled", "failed"])
    async def test_a_session_ends_by_an_explicit_close(self, store: Store, outcome: str) -> None:
        session_id = (await open_session(store)).session_id
        close = CloseSession(at_ms=AT, session_id=session_id, outcome=SessionState(outcome))
        closed = await store.apply(close)
        again = await store.apply(close)

        assert (closed.state, closed.outcome, closed.ended_at_ms) == (outcome, outcome, AT)
        assert again == closed
        other = SessionState.FAILED if outcome != "failed" else SessionState.CANCELLED
        closing = CloseSession(at_ms=AT, session_id=session_id, outcome=other)
        assert await refused(store, closing) is Code.SESSION_ENDED
        assert await refused(store, accept(session_id=session_id)) is Code.SESSION_ENDED

    async def test_a_session_that_waits_cannot_be_completed(self, store: Store) -> None:
        session_id = (await open_session(store)).session_id
        await accepted(store, session_id=session_id)
        closing = CloseSession(at_ms=AT, session_id=session_id, outcome=SessionState.COMPLETED)
        assert await refused(store, closing) is Code.ILLEGAL_MOVE
        record = await store.session(session_id)
        assert record is not None
        assert not isinstance(record, Marker)
        assert record.state is SessionState.QUEUED

    async def test_actions_of_a_closed_session_go_on_and_do_not_open_it(self, store: Store) -> None:
        session_id = (await open_session(store)).session_id
        action_id = (await accepted(store, session_id=session_id)).record.action_id
        await go(store, action_id, S.QUEUED, S.RUNNING)
        close = CloseSession(at_ms=AT, session_id=session_id, outcome=SessionState.COMPLETED)
        await store.apply(close)
        assert await store.apply(Settle(at_ms=AT + 9, closed_before_ms=AT + 9)) == ()
        await go(store, action_id, S.COMPLETED)

        assert (await self.states(store, session_id))[-1] == "completed"
        assert await store.apply(Settle(at_ms=AT + 9, closed_before_ms=AT + 9)) == (session_id,)
        page = await store.events(session_id, "", 1000)
        assert page.ended
        assert page.events[-1].state == "settled"


class ResumeContract:
    """Resume tokens (R-50)."""

    async def test_a_token_is_used_once_and_gives_the_next(self, store: Store) -> None:
        session = await open_session(store, token=token("t"))
        first = await store.apply(rotate("t"))
        second = await store.apply(rotate("t+", "two"))

        assert first.session.session_id == session.session_id
        assert first.session.state is SessionState.ACTIVE
        assert first.nonce == "nonce of t for one"
        assert second.nonce == "nonce of t+ for two"

    async def test_the_same_attempt_gets_the_same_answer_within_the_window(
        self, store: Store
    ) -> None:
        await open_session(store, token=token("t"))
        first = await store.apply(rotate("t"))
        again = await store.apply(rotate("t", at_ms=AT + WINDOW, nonce="fresh"))
        assert again.nonce == first.nonce
        late = rotate("t", at_ms=AT + WINDOW + 1)
        assert await refused(store, late) is Code.RESUME_SPENT
        assert isinstance(await store.apply(rotate("t+")), Rotated)  # nothing was revoked

    async def test_a_repeat_fails_once_the_new_token_was_used(self, store: Store) -> None:
        await open_session(store, token=token("t"))
        await store.apply(rotate("t"))
        await store.apply(rotate("t+", "two"))
        assert await refused(store, rotate("t", at_ms=AT + 1)) is Code.RESUME_SPENT
        assert isinstance(await store.apply(rotate("t++")), Rotated)

    async def test_another_attempt_within_the_window_conflicts_and_revokes_nothing(
        self, store: Store
    ) -> None:
        await open_session(store, token=token("t"))
        await store.apply(rotate("t"))
        assert await refused(store, rotate("t", "two", AT + WINDOW)) is Code.RESUME_CONFLICT
        assert isinstance(await store.apply(rotate("t+")), Rotated)

    async def test_another_attempt_after_the_window_revokes_the_chain(self, store: Store) -> None:
        await open_session(store, token=token("t"))
        await store.apply(rotate("t"))
        reused = rotate("t", "two", AT + WINDOW + 1)
        assert await refused(store, reused) is Code.RESUME_REVOKED
        assert await refused(store, rotate("t+")) is Code.RESUME_REVOKED
        assert await refused(store, rotate("t")) is Code.RESUME_REVOKED

    async def test_another_principals_attempt_changes_nothing(self, store: Store) -> None:
        await open_session(store, token=token("t"))
        others: list[dict[str, Any]] = [{"principal": "ben"}, {"tenant": "other"}]
        for members in others:
            assert await refused(store, rotate("t", **members)) is Code.RESUME_UNKNOWN
        await store.apply(rotate("t"))
        late = rotate("t", "two", AT + WINDOW + 1, principal="ben")
        assert await refused(store, late) is Code.RESUME_UNKNOWN
        assert isinstance(await store.apply(rotate("t+")), Rotated)

    async def test_of_racers_with_one_token_one_wins(self, store: Store) -> None:
        await open_session(store, token=token("t"))
        answers = await asyncio.gather(
            *(store.apply(rotate("t", f"{number}")) for number in range(20)),
            return_exceptions=True,
        )
        won = [answer for answer in answers if isinstance(answer, Rotated)]
        codes = [answer.code for answer in answers if isinstance(answer, ActionsError)]
        assert len(won) == 1
        assert codes == [Code.RESUME_CONFLICT] * 19

    async def test_an_expired_or_unknown_token_gives_nothing(self, store: Store) -> None:
        await open_session(store, token=token("t"))
        assert await refused(store, rotate("u")) is Code.RESUME_UNKNOWN
        assert await refused(store, rotate("t", at_ms=AT + 10**9)) is Code.RESUME_SPENT

    async def test_a_settled_session_gives_no_token(self, store: Store) -> None:
        session_id = (await open_session(store, token=token("t"))).session_id
        close = CloseSession(at_ms=AT, session_id=session_id, outcome=SessionState.FAILED)
        await store.apply(close)
        await store.apply(Settle(at_ms=AT + 1, closed_before_ms=AT + 1))
        assert await refused(store, rotate("t")) is Code.SESSION_ENDED
        attach = Attach(at_ms=AT, session_id=session_id, token=token("u", "ben"))
        assert await refused(store, attach) is Code.SESSION_ENDED

    async def test_each_party_has_chains_of_its_own(self, store: Store) -> None:
        session_id = (await open_session(store, token=token("t"))).session_id
        await store.apply(Attach(at_ms=AT, session_id=session_id, token=token("u", "ben")))
        await store.apply(rotate("u", principal="ben"))
        reused = rotate("u", "two", AT + WINDOW + 1, principal="ben")
        assert await refused(store, reused) is Code.RESUME_REVOKED
        assert isinstance(await store.apply(rotate("t")), Rotated)


class ListingsContract:
    """Filters, pages, viewers (R-48)."""

    async def ids(self, store: Store, viewer: Viewer = EVERYBODY, **filters: Any) -> list[str]:
        page = await store.actions(ActionQuery(**filters), viewer)
        return [record.action_id for record in page.records]

    async def test_every_filter_finds_what_it_says(self, store: Store) -> None:
        session = await open_session(store)
        plain = (await accepted(store)).record.action_id
        cases: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
            "capability": ({"capability": "q.read"}, {"capability": "q.read"}),
            "principal": ({"principal": "ben"}, {"principal": "ben"}),
            "tenant": ({"tenant": "other"}, {"tenant": "other"}),
            "session": (
                {"session_id": session.session_id},
                {"session_id": session.session_id},
            ),
            "transaction": ({"transaction": Transaction("tx")}, {"transaction_id": "tx"}),
            "approval": (
                {"approval": Approval(status=ApprovalStatus.REQUIRED, content="c")},
                {"approval": ApprovalStatus.REQUIRED},
            ),
        }
        for made, filters in cases.values():
            action_id = (await accepted(store, **made)).record.action_id
            assert await self.ids(store, **filters) == [action_id]
        await go(store, plain, S.QUEUED)
        assert await self.ids(store, states=(S.QUEUED,)) == [plain]
        assert len(await self.ids(store, states=(S.QUEUED, S.ACCEPTED))) == 7
        assert await self.ids(store, states=(S.QUEUED,), capability="q.read") == []

    @pytest.mark.parametrize("oldest_first", [False, True])
    async def test_pages_join_in_a_stable_order_while_actions_come(
        self, store: Store, *, oldest_first: bool
    ) -> None:
        ids = [(await accepted(store)).record.action_id for _ in range(7)]
        found: list[str] = []
        cursor = ""
        while True:
            query = ActionQuery(limit=3, cursor=cursor, oldest_first=oldest_first)
            page = await store.actions(query, EVERYBODY)
            found += [record.action_id for record in page.records]
            cursor = page.next_cursor
            if not cursor:
                break
            if not oldest_first:
                await accepted(store)
        assert found == (ids if oldest_first else ids[::-1])

    @pytest.mark.parametrize("cursor", ["x", "p", "p-1", "pzz", "p1\n", "P1"])
    async def test_what_is_no_cursor_is_refused(self, store: Store, cursor: str) -> None:
        with pytest.raises(ActionsError) as refusal:
            await store.actions(ActionQuery(cursor=cursor), EVERYBODY)
        assert refusal.value.code is Code.CURSOR_INVALID

    async def test_a_viewer_sees_what_is_its_own(self, store: Store) -> None:
        session = await open_session(store, initiator="cleo", responder="ben")
        own = (await accepted(store, principal="ben")).record.action_id
        shared = (
            await accepted(store, principal="cleo", session_id=session.session_id)
        ).record.action_id
        asked = (
            await accepted(store, approval=Approval(status=ApprovalStatus.REQUIRED, content="c"))
        ).record.action_id
        await accepted(store, tenant="other", principal="ben")

        ben = Viewer(tenant="default", principal="ben")
        approver = Viewer(tenant="default", principal="ben", approvals=True)
        assert await self.ids(store, ben) == [shared, own]
        assert await self.ids(store, approver) == [asked, shared, own]
        assert len(await self.ids(store, Viewer(tenant="default"))) == 3
        assert len(await self.ids(store)) == 4

    async def test_sessions_are_listed_by_party_and_state(self, store: Store) -> None:
        one = await open_session(store)
        two = await open_session(store, initiator="cleo", responder="dora")
        page = await store.sessions(SessionQuery(principal="ben"), EVERYBODY)
        assert page.records == (one,)
        page = await store.sessions(SessionQuery(states=("new",), limit=1), EVERYBODY)
        assert page.records == (two,)
        assert page.next_cursor
        page = await store.sessions(SessionQuery(cursor=page.next_cursor), EVERYBODY)
        assert page.records == (one,)
        viewer = Viewer(tenant="default", principal="dora")
        assert (await store.sessions(SessionQuery(), viewer)).records == (two,)

    async def test_open_actions_are_given_in_the_order_they_came(self, store: Store) -> None:
        ids = [(await accepted(store)).record.action_id for _ in range(5)]
        await go(store, ids[1], S.EXPIRED)
        first = await store.open_actions("", 2)
        rest = await store.open_actions(first[-1].record.action_id, 10)
        assert [each.record.action_id for each in (*first, *rest)] == [
            ids[0], ids[2], ids[3], ids[4],
        ]  # fmt: skip


class TransactionsContract:
    """Several operations as one."""

    async def test_all_of_it_or_nothing(self, store: Store) -> None:
        one, two = accept(), accept()

        async def fail_in_the_middle() -> None:
            async with store.transaction() as transaction:
                await transaction.apply(one)
                await transaction.apply(two)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail_in_the_middle()
        assert await store.action(one.action_id) is None
        async with store.transaction() as transaction:
            await transaction.apply(one)
            await transaction.apply(two)
        assert isinstance(await store.action(two.action_id), Stored)

    async def test_it_sees_its_own_writes_and_others_do_not(self, store: Store) -> None:
        made = accept()
        async with store.transaction() as transaction:
            await transaction.apply(made)
            assert isinstance(await transaction.action(made.action_id), Stored)
            assert await store.action(made.action_id) is None

    async def test_other_writers_wait_for_it(self, store: Store) -> None:
        action = await accepted(store)
        async with store.transaction() as transaction:
            other = asyncio.ensure_future(step(store, action, S.CANCELLING))
            assert (await transaction.apply(to(action, S.QUEUED))).won
            assert not other.done()
        assert not (await other).won

    async def test_a_refusal_inside_leaves_the_rest(self, store: Store) -> None:
        made = accept(idempotency_key="k")
        async with store.transaction() as transaction:
            await transaction.apply(made)
            with pytest.raises(ActionsError):
                await transaction.apply(accept(session_id=IDS.session_id()))
        assert isinstance(await store.action(made.action_id), Stored)

    async def test_whoever_is_cancelled_inside_leaves_nothing_and_lets_others_go_on(
        self, store: Store
    ) -> None:
        made = accept()
        inside = asyncio.Event()

        async def hang() -> None:
            async with store.transaction() as transaction:
                await transaction.apply(made)
                inside.set()
                await asyncio.Event().wait()

        task = asyncio.ensure_future(hang())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await accepted(store)
        assert await store.action(made.action_id) is None


def prune(at_ms: int, before: int, keep: int = 10**6, limit: int = 100) -> Prune:
    """Retention as a test needs it."""
    return Prune(
        at_ms=at_ms,
        ended_before_ms=before,
        keep=keep,
        limit=limit,
        key_outlives_ms=1000,
        marker_age_ms=5000,
    )


class RetentionContract:
    """What is removed in the end, and what stays of it (R-43, R-51)."""

    async def ended(self, store: Store, at_ms: int, **members: Any) -> str:
        action_id = (await accepted(store, **members)).record.action_id
        await go(store, action_id, S.EXPIRED, at_ms=at_ms)
        return action_id

    async def test_what_is_too_old_goes_and_leaves_a_marker(self, store: Store) -> None:
        old = await self.ended(store, AT)
        young = await self.ended(store, AT + 10)
        still_open = (await accepted(store)).record.action_id
        removed = await store.apply(prune(AT + 20, AT + 5))

        assert (removed.actions, removed.more) == (1, False)
        marker = await store.action(old)
        assert isinstance(marker, Marker)
        assert (marker.tenant, "ana" in marker.principals) == ("default", True)
        assert isinstance(await store.action(young), Stored)
        assert isinstance(await store.action(still_open), Stored)
        assert await store.receipts(old) == []
        await store.apply(prune(AT + 20 + 5001, 0))
        assert await store.action(old) is None

    async def test_what_is_too_much_goes_the_oldest_first(self, store: Store) -> None:
        ids = [await self.ended(store, AT + number) for number in range(6)]
        first = await store.apply(prune(AT + 20, 0, keep=2, limit=3))
        second = await store.apply(prune(AT + 20, 0, keep=2, limit=3))

        assert (first.actions, first.more, second.actions, second.more) == (3, True, 1, False)
        assert [isinstance(await store.action(each), Stored) for each in ids] == [
            False, False, False, False, True, True,
        ]  # fmt: skip

    async def test_a_key_outlives_its_action_and_then_is_free(self, store: Store) -> None:
        await self.ended(store, AT, idempotency_key="k")
        await store.apply(prune(AT + 20, AT + 5))
        assert await refused(store, accept(idempotency_key="k")) is Code.REMOVED
        removed = await store.apply(prune(AT + 1020, 0))
        assert removed.keys == 1
        assert not (await store.apply(accept(idempotency_key="k"))).replayed

    async def test_a_session_that_goes_on_has_a_floor_and_no_hole(self, store: Store) -> None:
        session_id = (await open_session(store)).session_id
        await self.ended(store, AT, session_id=session_id)
        kept = await self.ended(store, AT + 10, session_id=session_id)
        await store.apply(prune(AT + 20, AT + 5))

        with pytest.raises(ActionsError) as refusal:
            await store.events(session_id, "", 10)
        assert refusal.value.code is Code.CURSOR_GONE
        page = await store.events(session_id, refusal.value.data["floor"], 100)
        numbers = [int(event.cursor[1:]) for event in page.events]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert kept in {event.action_id for event in page.events}

    async def test_a_settled_session_goes_with_its_actions(self, store: Store) -> None:
        session_id = (await open_session(store)).session_id
        await self.ended(store, AT, session_id=session_id)
        close = CloseSession(at_ms=AT, session_id=session_id, outcome=SessionState.CANCELLED)
        await store.apply(close)
        await store.apply(Settle(at_ms=AT + 1, closed_before_ms=AT + 1))
        removed = await store.apply(prune(AT + 20, AT + 5))

        assert (removed.actions, removed.sessions) == (1, 1)
        assert isinstance(await store.session(session_id), Marker)


class CallbacksContract:
    """Callbacks are there from the transaction that ends their action."""

    async def test_a_callback_is_due_from_the_end_of_its_action(self, store: Store) -> None:
        action = await accepted(store)
        made: Move = to(action, S.EXPIRED)
        made.callback_url = "https://hook.test/x"
        with store.watch("callbacks") as bell:
            await store.apply(made)
            assert bell.is_set()
        (due,) = await store.deliveries(AT, 10)
        assert (due.action_id, due.kind, due.attempts) == (action.record.action_id, "ended", 0)
        assert await store.next_delivery_ms() == AT
        assert (await store.counts()).callbacks == 1
        assert UNSET is not due.url

    async def test_retention_waits_for_what_is_still_to_be_delivered(self, store: Store) -> None:
        action = await accepted(store)
        made: Move = to(action, S.EXPIRED)
        made.callback_url = "https://hook.test/x"
        await store.apply(made)
        kept = await store.apply(prune(AT + 20, AT + 5, keep=0))
        (due,) = await store.deliveries(AT, 10)
        await store.apply(CallbackTried(at_ms=AT, delivery=due.delivery, next_at_ms=0, error=""))
        removed = await store.apply(prune(AT + 20, AT + 5, keep=0))

        assert (kept.actions, removed.actions) == (0, 1)


class SharedCommitContract:
    """Operations that share a commit see each other."""

    async def test_a_session_is_settled_once_however_often_it_is_asked_for(
        self, store: Store
    ) -> None:
        session_id = (await open_session(store)).session_id
        close = CloseSession(at_ms=AT, session_id=session_id, outcome=SessionState.FAILED)
        await store.apply(close)
        settle = [Settle(at_ms=AT + 9, closed_before_ms=AT + 9) for _ in range(5)]
        answers = await asyncio.gather(*map(store.apply, settle))
        assert sorted(answers, key=len) == [(), (), (), (), (session_id,)]

    async def test_what_ends_and_is_removed_in_one_commit_leaves_nothing(
        self, store: Store
    ) -> None:
        found = [await accepted(store) for _ in range(5)]
        ending = asyncio.gather(*(step(store, each, S.EXPIRED) for each in found))
        removed = await store.apply(prune(AT + 9, AT + 9))
        await ending
        assert removed.actions in (0, 5)

    async def test_a_dead_letter_is_driven_again_once_however_often_it_is_asked_for(
        self, store: Store
    ) -> None:
        action_id = (await accepted(store)).record.action_id
        await go(store, action_id, S.QUEUED, S.RUNNING, S.DEAD_LETTERED)
        again = [accept(redrive_of=action_id) for _ in range(5)]
        answers = await asyncio.gather(*map(store.apply, again))
        assert len({answer.action_id for answer in answers}) == 1
        assert [answer.replayed for answer in answers].count(False) == 1

    async def test_opening_and_closing_and_accepting_together_is_one_order_or_another(
        self, store: Store
    ) -> None:
        session_id = (await open_session(store)).session_id
        close = CloseSession(at_ms=AT, session_id=session_id, outcome=SessionState.CANCELLED)
        answers = await asyncio.gather(
            store.apply(accept(session_id=session_id)),
            store.apply(close),
            store.apply(accept(session_id=session_id)),
            return_exceptions=True,
        )
        assert not isinstance(answers[1], BaseException)
