"""What every store must do, as tests that any backend can run.

A backend's test module inherits from the classes here and gives a fixture `store`. Nothing
here knows how records are kept.
"""

import asyncio
import itertools
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from executa_host.actions.endings import move
from executa_host.actions.faults import ActionsError, Code
from executa_host.actions.operations import Accepted, Piece, Stored
from executa_host.actions.records import (
    ActionState,
    Approval,
    ApprovalStatus,
    Callback,
    Context,
    EventRecord,
    Transaction,
)
from executa_host.actions.store import Store, end_of
from executa_protocol.chunks import ChunkKind
from executa_protocol.errors import UsageError
from executa_protocol.moves import IllegalMove
from executa_protocol.receipts import Receipt, check_chain
from tests.actions.samples import AT, IDS, accept, accepted, go, open_session, step, stored, to

S = ActionState

AWKWARD = [
    Raw(b'{"text":"caf\xc3\xa9 \xe2\x80\xa8 \xf0\x9f\x8d\xb5"}'),
    Raw(b'{"text":"a\\u0000b\\ud83c\\udf75"}'),
    Raw(b'{"text":"t","n":123456789012345678901234567890}'),
    Raw(
        b'{"text":"t","x":1.50,"y":1e400000000000000000000000,"z":-0}'.replace(
            b"1e400000000000000000000000", b"15e-1"
        )
    ),
    Raw(b'{ "text" :\t"spaces stay" }'),
    Raw(b'{"text":"\'; drop table actions; --"}'),
    Raw(b'{"text":"' + b"x" * 300_000 + b'"}'),
]


class ActionsContract:
    """Acceptance, moves, races of moves."""

    async def test_what_was_accepted_can_be_read_whole(self, store: Store) -> None:
        session = await open_session(store)
        made = accept(
            session_id=session.session_id,
            approval=Approval(status=ApprovalStatus.REQUIRED, content="c"),
            expires_at_ms=AT + 5,
            idempotency_key="k",
            context=Context(memory=Raw(b'{"a":1}')),
            callback=Callback("https://hook.test/x"),
            delegation=("boss", "ana"),
            transaction=Transaction("tx", "1", Raw(b"{}")),
        )
        await store.apply(made)
        found = await store.action(made.action_id, input=True)

        assert isinstance(found, Stored)
        assert found.terms == made.terms
        record = found.record
        assert (record.state, record.cursor, found.fence, record.attempt) == (
            S.ACCEPTED,
            "a1",
            0,
            1,
        )
        assert record.session_id == session.session_id
        assert found.parties == ("ana", "ben")
        assert record.approval == made.approval
        assert record.expires_at_ms == AT + 5
        assert record.transaction == made.terms.transaction
        assert record.input == made.input

    @pytest.mark.parametrize("given", AWKWARD, ids=range(len(AWKWARD)))
    async def test_an_input_stays_exactly_as_it_was_written(self, store: Store, given: Raw) -> None:
        made = accept(given)
        await store.apply(made)
        found = await store.action(made.action_id, input=True)

        assert isinstance(found, Stored)
        assert isinstance(found.record.input, Raw)
        assert bytes(found.record.input) == bytes(given)

    async def test_what_is_not_there_is_not_found(self, store: Store) -> None:
        assert await store.action(IDS.action_id()) is None
        assert await store.session(IDS.session_id()) is None

    @pytest.mark.parametrize(
        "members",
        [
            {"tenant": "a\x00b"},
            {"principal": "a\nb"},
            {"capability": "p.\x1b"},
            {"idempotency_key": "k\x7f"},
            {"idempotency_key": "k" * 257},
            {"principal": "\ud800"},
            {"principal": ""},
            {"action_id": "act_1"},
            {"input": Raw(b'{"text":}')},
            {"input": Raw(b'{"text":"\xff"}')},
            {"transaction": Transaction("t\x00")},
        ],
        ids=map(str, itertools.count()),
    )
    async def test_what_no_store_may_hold_is_refused_before_it_joins_others(
        self, store: Store, members: dict[str, Any]
    ) -> None:
        made = accept()
        for name, value in members.items():
            if name in ("idempotency_key", "transaction"):
                made.terms = msgspec.structs.replace(made.terms, **{name: value})
            else:
                setattr(made, name, value)
        answers = await asyncio.gather(
            store.apply(made), store.apply(accept()), return_exceptions=True
        )

        assert isinstance(answers[0], UsageError)
        assert isinstance(answers[1], Accepted)

    async def test_an_action_walks_to_its_end_and_counts_what_it_did(self, store: Store) -> None:
        action = await accepted(store)
        done = await go(store, action.record.action_id, S.QUEUED, S.RUNNING, S.COMPLETED)

        assert done.record.state is S.COMPLETED
        assert (done.fence, done.record.attempt, done.record.chunks) == (1, 1, 1)
        assert done.record.cursor == "a5"  # four states and the end chunk
        assert done.record.ended_at_ms == AT
        assert done.record.started_at_ms == AT
        assert done.record.result is not UNSET

    async def test_the_fence_rises_with_each_claim_and_the_attempt_with_each_requeue(
        self, store: Store
    ) -> None:
        action = await accepted(store)
        action_id = action.record.action_id
        again = await go(store, action_id, S.QUEUED, S.RUNNING, S.QUEUED, S.RUNNING)
        assert (again.fence, again.record.attempt) == (2, 2)

    async def test_a_move_from_another_state_or_fence_loses_and_learns_what_is(
        self, store: Store
    ) -> None:
        old = await accepted(store)
        await go(store, old.record.action_id, S.QUEUED)

        lost = await step(store, old, S.QUEUED)

        assert not lost.won
        assert lost.current is not None
        assert lost.current.record.state is S.QUEUED
        assert (await stored(store, old.record.action_id)).record.cursor == "a2"

    async def test_an_attempt_that_was_overtaken_cannot_write_into_the_next(
        self, store: Store
    ) -> None:
        action_id = (await accepted(store)).record.action_id
        first = await go(store, action_id, S.QUEUED, S.RUNNING)
        second = await go(store, action_id, S.QUEUED, S.RUNNING)
        assert second.record.state is first.record.state

        late = await store.apply(move(first, "chunk", AT, Piece(ChunkKind.DATA)))
        assert not late.won
        assert not (await step(store, first, S.COMPLETED)).won
        assert (await step(store, second, S.COMPLETED)).won

    async def test_of_many_moves_of_one_action_at_once_one_wins(self, store: Store) -> None:
        action = await go(store, (await accepted(store)).record.action_id, S.QUEUED)
        answers = await asyncio.gather(
            *(step(store, action, state) for state in (S.RUNNING, S.CANCELLING, S.EXPIRED) * 5)
        )

        assert [answer.won for answer in answers].count(True) == 1
        assert all(answer.current is not None for answer in answers if not answer.won)

    async def test_a_move_that_no_table_allows_is_refused(self, store: Store) -> None:
        action = await accepted(store)
        with pytest.raises(IllegalMove):
            await step(store, action, S.RUNNING)
        assert (await stored(store, action.record.action_id)).record.state is S.ACCEPTED

    async def test_a_move_of_nothing_says_so(self, store: Store) -> None:
        action = await accepted(store)
        action.record = (await accepted(store)).record
        made = to(action, S.QUEUED)
        made.action_id = IDS.action_id()
        answer = await store.apply(made)
        assert answer.missing
        assert not answer.won

    async def test_a_guard_on_the_approval_decides_too(self, store: Store) -> None:
        action = await accepted(
            store, approval=Approval(status=ApprovalStatus.REQUIRED, content="c")
        )
        action = await go(store, action.record.action_id, S.QUEUED, S.RUNNING, S.PENDING_APPROVAL)
        made = to(action, S.RUNNING)
        made.approval_is = ApprovalStatus.APPROVED
        assert not (await store.apply(made)).won
        made.approval_is = ApprovalStatus.REQUESTED
        assert (await store.apply(made)).won

    async def test_many_callers_at_once_each_get_their_own_answer(self, store: Store) -> None:
        made = [accept(principal=f"p{number}") for number in range(300)]
        answers = await asyncio.gather(*map(store.apply, made))
        assert [answer.action_id for answer in answers] == [each.action_id for each in made]
        for each in (made[0], made[150], made[299]):
            assert (await stored(store, each.action_id)).record.principal == each.principal

    async def test_an_operation_that_fails_fails_alone(self, store: Store) -> None:
        known = accept()
        await store.apply(known)
        twin = accept(action_id=known.action_id, principal="twin")
        others = [accept() for _ in range(20)]
        answers = await asyncio.gather(
            *map(store.apply, [*others[:10], twin, *others[10:]]), return_exceptions=True
        )

        assert isinstance(answers.pop(10), UsageError)
        assert answers == [Accepted(each.action_id) for each in others]
        assert (await stored(store, known.action_id)).record.principal == "ana"


class KeysContract:
    """Idempotency keys (R-43)."""

    async def test_a_key_gives_the_first_action_again(self, store: Store) -> None:
        first = await store.apply(accept(idempotency_key="k"))
        again = await store.apply(accept(idempotency_key="k"))
        assert again == Accepted(first.action_id, replayed=True)

    async def test_a_key_with_another_input_conflicts(self, store: Store) -> None:
        await store.apply(accept(idempotency_key="k"))
        with pytest.raises(ActionsError) as refusal:
            await store.apply(accept(Raw(b'{"text":"u"}'), idempotency_key="k"))
        assert refusal.value.code is Code.IDEMPOTENCY_CONFLICT

    @pytest.mark.parametrize("other", ["tenant", "principal", "capability"])
    async def test_keys_of_others_are_other_keys(self, store: Store, other: str) -> None:
        members: Any = {other: "other"}
        first = await store.apply(accept(idempotency_key="k"))
        second = await store.apply(accept(idempotency_key="k", **members))
        assert not second.replayed
        assert second.action_id != first.action_id

    async def test_of_many_racers_with_one_key_one_is_accepted(self, store: Store) -> None:
        answers = await asyncio.gather(
            *(store.apply(accept(idempotency_key="k")) for _ in range(50))
        )
        assert [answer.replayed for answer in answers].count(False) == 1
        assert len({answer.action_id for answer in answers}) == 1

    async def test_racers_with_one_key_and_two_inputs_get_an_action_or_a_conflict(
        self, store: Store
    ) -> None:
        inputs = [Raw(b'{"text":"a"}'), Raw(b'{"text":"b"}')] * 10
        answers = await asyncio.gather(
            *(store.apply(accept(given, idempotency_key="k")) for given in inputs),
            return_exceptions=True,
        )
        taken = {answer.action_id for answer in answers if isinstance(answer, Accepted)}
        conflicts = [answer for answer in answers if isinstance(answer, ActionsError)]
        assert len(taken) == 1
        assert len(conflicts) == 10

    async def test_a_key_is_not_taken_by_an_action_that_was_refused(self, store: Store) -> None:
        with pytest.raises(ActionsError) as refusal:
            await store.apply(accept(idempotency_key="k", session_id=IDS.session_id()))
        assert refusal.value.code is Code.UNKNOWN_SESSION
        assert not (await store.apply(accept(idempotency_key="k"))).replayed


class LogsContract:
    """Events, chunks, receipts, cursors (R-44, R-51, R-53)."""

    async def test_chunks_are_numbered_from_one_without_gaps(self, store: Store) -> None:
        action = await go(store, (await accepted(store)).record.action_id, S.QUEUED, S.RUNNING)
        for count in (1, 3):
            pieces = [Piece(ChunkKind.DATA, Raw(b"%d" % number)) for number in range(count)]
            answer = await store.apply(move(action, "chunk", AT, *pieces))
            assert answer.won
        action = await stored(store, action.record.action_id)
        await step(store, action, S.COMPLETED)

        chunks = await store.chunks(action.record.action_id, 0, 100)
        assert [chunk.sequence for chunk in chunks] == [1, 2, 3, 4, 5]
        assert [bytes(chunk.data) for chunk in chunks][:4] == [b"0", b"0", b"1", b"2"]
        assert chunks[-1].kind is ChunkKind.END
        assert [chunk.sequence for chunk in await store.chunks(action.record.action_id, 3, 1)] == [
            4
        ]

    async def test_a_sequence_goes_on_in_the_next_attempt(self, store: Store) -> None:
        action_id = (await accepted(store)).record.action_id
        for _ in range(2):
            action = await go(store, action_id, S.QUEUED, S.RUNNING)
            await store.apply(move(action, "chunk", AT, Piece(ChunkKind.DATA)))
        chunks = await store.chunks(action_id, 0, 100)
        assert [(chunk.sequence, chunk.attempt) for chunk in chunks] == [(1, 1), (2, 2)]

    async def test_a_log_is_read_in_pages_that_join(self, store: Store) -> None:
        action_id = (await accepted(store)).record.action_id
        await go(store, action_id, S.QUEUED, S.RUNNING, S.COMPLETED)
        whole = await store.events(action_id, "", 100)
        assert whole.ended
        assert [event.cursor for event in whole.events] == ["a1", "a2", "a3", "a4", "a5"]

        pages: list[EventRecord] = []
        cursor = ""
        while True:
            page = await store.events(action_id, cursor, 2)
            pages += page.events
            cursor = page.cursor
            if page.ended:
                break
        assert tuple(pages) == whole.events

    @pytest.mark.parametrize(
        ("cursor", "code"),
        [
            ("a3", Code.CURSOR_AHEAD),
            ("s1", Code.CURSOR_INVALID),
            ("1", Code.CURSOR_INVALID),
            ("a01", Code.CURSOR_INVALID),
            ("a-1", Code.CURSOR_INVALID),
            ("a" + "9" * 40, Code.CURSOR_INVALID),
            ("a1\n", Code.CURSOR_INVALID),
        ],
    )
    async def test_a_cursor_of_the_future_or_of_no_log_is_refused(
        self, store: Store, cursor: str, code: Code
    ) -> None:
        action = await accepted(store)
        with pytest.raises(ActionsError) as refusal:
            await store.events(action.record.action_id, cursor, 10)
        assert refusal.value.code is code

    async def test_receipts_are_chained_from_acceptance_to_outcome(self, store: Store) -> None:
        action_id = (await accepted(store)).record.action_id
        await go(store, action_id, S.QUEUED, S.RUNNING, S.COMPLETED)
        receipts = await store.receipts(action_id)

        assert [receipt.kind for receipt in receipts] == ["acceptance", "outcome"]
        check_chain(
            Receipt(r.action_id, r.number, r.kind, r.at_ms, r.content, r.previous, r.digest)
            for r in receipts
        )

    async def test_a_bell_rings_for_the_log_that_grew_and_for_its_session(
        self, store: Store
    ) -> None:
        session = await open_session(store)
        action = await accepted(store, session_id=session.session_id)
        other = await accepted(store)
        with (
            store.watch(action.record.action_id) as mine,
            store.watch(session.session_id) as sessions,
            store.watch(other.record.action_id) as others,
            store.watch(end_of(action.record.action_id)) as end,
        ):
            await step(store, action, S.QUEUED)
            assert not end.is_set()
            assert mine.is_set()
            assert sessions.is_set()
            assert not others.is_set()
            await go(store, action.record.action_id, S.EXPIRED)
            assert end.is_set()
