"""Races: whoever comes second gets what the first one made, and nothing is written over (R-42).

Each race is run many times with its racers started in both orders. What may come of it is
said; that one of them wins, and that the record says which, always holds.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from executa_host.actions.faults import ActionsError, Code
from executa_host.actions.interface import EventPage, Opened, Submitted
from executa_host.actions.operations import Operation
from executa_host.actions.records import ActionRecord, ActionState, Approval, Mode
from executa_host.actions.requests import Submission
from executa_host.actions.sqlite import SqliteStore
from executa_host.actions.store import StoreLocked
from executa_protocol.actions import CancelOutcome
from executa_protocol.chunks import ChunkFollower, ChunkKind
from tests.actions.rig import ANA, BOSS, Rig
from tests.actions.scripted import PATIENCE, ScriptedRun, raw

S = ActionState
T = TypeVar("T")
ROUNDS = 12

in_both_orders = pytest.mark.parametrize("turned", [False, True])


async def race(turned: bool, *racers: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Start all racers at once; their answers or refusals in the order they were given."""
    order = racers[::-1] if turned else racers
    tasks = {racer: asyncio.ensure_future(_run(racer)) for racer in order}
    await asyncio.wait(tasks.values())
    answers = [tasks[racer] for racer in racers]
    return [task.exception() or task.result() for task in answers]


async def _run(racer: Callable[[], Awaitable[Any]]) -> Any:
    return await racer()


def yields(count: int, act: Callable[[], Any]) -> Callable[[], Awaitable[None]]:
    """A racer that lets others go ahead `count` times."""

    async def racer() -> None:
        for _ in range(count):
            await asyncio.sleep(0)
        act()

    return racer


@in_both_orders
async def test_cancel_against_complete(rig: Rig, *, turned: bool) -> None:
    seen: set[ActionState] = set()
    for number in range(ROUNDS):
        action_id, run = await rig.running("p.send")

        async def answer(run: ScriptedRun = run, number: int = number) -> None:
            if number % 3 == 2:
                await run.cancelled.wait()  # the plugin hears of it, and answers all the same
            run.answer("sent")

        (record, _) = await race(
            turned,
            lambda action_id=action_id: rig.engine.cancel(ANA, action_id),
            answer,
        )
        outcome = await rig.outcome(action_id)

        assert isinstance(record, ActionRecord)
        assert outcome.action.state is S.COMPLETED
        if outcome.action.cancellation:
            assert outcome.action.cancellation.outcome is CancelOutcome.COMPLETED_FIRST
            seen.add(S.CANCELLING)
        states = await rig.states(action_id)
        assert states.count("completed") == 1
        assert states[-1] == "completed"
    assert seen


@in_both_orders
async def test_cancel_against_claim(rig: Rig, *, turned: bool) -> None:
    for number in range(ROUNDS):
        record = await rig.submit("p.send")
        await race(
            turned,
            lambda action_id=record.action_id: rig.engine.cancel(ANA, action_id),
            yields(number % 5, lambda: None),
        )
        for run in rig.runner.of(record.action_id):
            run.acknowledge()
        outcome = await rig.outcome(record.action_id)
        assert outcome.action.state is S.CANCELLED
        begun = len(rig.runner.of(record.action_id))
        assert begun == (await rig.states(record.action_id)).count("running") or begun == 0


@in_both_orders
async def test_approve_against_deny(rig: Rig, *, turned: bool) -> None:
    rig.runner.auto["wire"] = lambda run: run.answer()
    for _ in range(ROUNDS):
        record = await rig.submit("p.wire")
        action_id = record.action_id
        await rig.until(action_id, S.PENDING_APPROVAL)
        approved, denied = await race(
            turned,
            lambda action_id=action_id: rig.engine.approve(BOSS, action_id),
            lambda action_id=action_id: rig.engine.deny(BOSS, action_id),
        )
        outcome = await rig.outcome(action_id)

        winners = [answer for answer in (approved, denied) if isinstance(answer, ActionRecord)]
        (loser,) = [answer for answer in (approved, denied) if isinstance(answer, ActionsError)]
        assert len(winners) == 1
        assert loser.code is Code.ALREADY_DECIDED
        won = isinstance(approved, ActionRecord)
        assert outcome.action.state is (S.COMPLETED if won else S.FAILED)
        assert len(rig.runner.of(action_id)) == won


@in_both_orders
async def test_approve_against_expire(rig: Rig, *, turned: bool) -> None:
    rig.runner.auto["wire"] = lambda run: run.answer()
    for number in range(ROUNDS):
        record = await rig.submit("p.wire", expires_in_ms=5000)
        action_id = record.action_id
        await rig.until(action_id, S.PENDING_APPROVAL)
        approved, _ = await race(
            turned,
            lambda action_id=action_id: rig.engine.approve(BOSS, action_id),
            yields(number % 4, lambda: rig.clock.advance(5)),
        )
        outcome = await rig.outcome(action_id)

        ran = len(rig.runner.of(action_id))
        assert outcome.action.state in (S.COMPLETED, S.EXPIRED)
        assert ran == (outcome.action.state is S.COMPLETED)
        if isinstance(approved, ActionsError):
            assert outcome.action.state is S.EXPIRED
        else:
            assert isinstance(outcome.action.approval, Approval)
            assert outcome.action.approval.decided_by == "boss"


@in_both_orders
async def test_two_racers_with_one_idempotency_key(rig: Rig, *, turned: bool) -> None:
    rig.runner.auto["send"] = lambda run: run.answer()
    for number in range(ROUNDS):
        request = Submission(
            capability="p.send", input=raw({"text": "t"}), idempotency_key=str(number)
        )
        answers = await race(
            turned,
            lambda request=request: rig.engine.submit(ANA, request),
            lambda request=request: rig.engine.submit(ANA, request),
        )
        assert all(isinstance(answer, Submitted) for answer in answers)
        assert [answer.replayed for answer in answers].count(True) == 1
        (action_id,) = {answer.action.action_id for answer in answers}
        await rig.outcome(action_id)
        assert len(rig.runner.of(action_id)) == 1


@in_both_orders
async def test_two_racers_with_one_resume_token(rig: Rig, *, turned: bool) -> None:
    opened = await rig.engine.sessions.open(ANA, responder="ben")
    for number in range(ROUNDS):
        token = opened.resume_token
        answers = await race(
            turned,
            lambda token=token, number=number: rig.engine.sessions.resume(
                ANA, token, attempt_id=f"{number}a"
            ),
            lambda token=token, number=number: rig.engine.sessions.resume(
                ANA, token, attempt_id=f"{number}b"
            ),
        )
        (opened,) = [answer for answer in answers if isinstance(answer, Opened)]
        (loser,) = [answer for answer in answers if isinstance(answer, ActionsError)]
        assert loser.code is Code.RESUME_CONFLICT


@in_both_orders
async def test_the_same_resume_twice_at_once_is_one_resume(rig: Rig, *, turned: bool) -> None:
    opened = await rig.engine.sessions.open(ANA, responder="ben")
    for number in range(ROUNDS):
        resume = lambda token=opened.resume_token, number=number: rig.engine.sessions.resume(  # noqa: E731
            ANA, token, attempt_id=str(number)
        )
        one, two = await race(turned, resume, lambda resume=resume: resume())
        assert one.resume_token == two.resume_token
        opened = one


async def test_follow_against_append(rig: Rig) -> None:
    for _ in range(ROUNDS):
        action_id, run = await rig.running(mode=Mode.STREAMING)
        follower = ChunkFollower()

        async def follow(follower: ChunkFollower = follower, action_id: str = action_id) -> int:
            taken = 0
            async for page in rig.engine.follow(ANA, action_id):
                for event in page.events:
                    if event.chunk:
                        assert follower.take(event.chunk)
                        taken += 1
            return taken

        following = asyncio.ensure_future(follow())
        for number in range(100):
            run.show(ChunkKind.DATA, number)
            if number % 3 == 0:
                await asyncio.sleep(0)
        run.answer()
        async with asyncio.timeout(20):
            assert await following == 101


async def test_redrive_against_redrive(rig: Rig) -> None:
    for _ in range(ROUNDS):
        action_id, run = await rig.running("p.send")
        run.lose()
        await rig.outcome(action_id)
        answers = await asyncio.gather(*(rig.engine.redrive(BOSS, action_id) for _ in range(3)))
        (again,) = {answer.action.action_id for answer in answers}
        (await rig.runner.begun(again)).answer()
        await rig.outcome(again)


async def test_close_against_submit(rig: Rig) -> None:
    for _ in range(ROUNDS):
        opened = await rig.engine.sessions.open(ANA, responder="ben")
        session_id = opened.session.session_id
        submitted, closed = await race(
            False,
            lambda session_id=session_id: rig.submit(session_id=session_id),
            lambda session_id=session_id: rig.engine.sessions.close(ANA, session_id, "cancelled"),
        )
        assert not isinstance(closed, ActionsError)
        if isinstance(submitted, ActionRecord):
            for run in rig.runner.of(submitted.action_id):
                run.acknowledge()
            await rig.until(submitted.action_id, S.CANCELLED, S.RUNNING)
        else:
            assert submitted.code is Code.SESSION_ENDED
    for run in rig.runner.runs:
        run.answer()


class HoldingStore(SqliteStore):
    """A store whose answers to some steps are on their way for as long as a test likes."""

    held = ""
    reads = 0

    async def apply(self, operation: Operation[T]) -> T:
        answer = await super().apply(operation)
        if operation.step == self.held:
            self.waits.set()
            await self.go_on.wait()
        return answer

    async def events(self, subject: str, after: str, limit: int) -> EventPage:
        self.reads += 1
        return await super().events(subject, after, limit)

    def hold(self, step: str) -> None:
        """Hold answers to `step` until `go_on` is set."""
        self.held = step
        self.waits, self.go_on = asyncio.Event(), asyncio.Event()


@pytest.fixture
async def holding(tmp_path: Path) -> AsyncIterator[tuple[Rig, HoldingStore]]:
    """An engine that can be made to hear late of what it did."""
    async with Rig(tmp_path / "holding.db", store_class=HoldingStore) as rig:
        store = rig.store
        assert isinstance(store, HoldingStore)
        yield rig, store
        await rig.check()


async def test_a_decision_is_about_what_is_on_disk_not_about_what_was_heard_of(
    holding: tuple[Rig, HoldingStore],
) -> None:
    rig, store = holding
    store.hold("request_approval")
    record = await rig.submit("p.wire")
    async with asyncio.timeout(PATIENCE):
        await store.waits.wait()
        await rig.engine.approve(BOSS, record.action_id)
    store.go_on.set()
    (await rig.runner.begun(record.action_id)).answer()
    assert (await rig.outcome(record.action_id)).action.state is S.COMPLETED


async def test_a_cancellation_reaches_an_attempt_whose_claim_was_not_heard_of_yet(
    holding: tuple[Rig, HoldingStore],
) -> None:
    rig, store = holding
    store.hold("claim")
    record = await rig.submit("p.send")
    async with asyncio.timeout(PATIENCE):
        await store.waits.wait()
        asked = await rig.engine.cancel(ANA, record.action_id)
    store.go_on.set()
    outcome = await rig.outcome(record.action_id)

    assert asked.state is S.CANCELLING
    assert outcome.action.state is S.CANCELLED
    assert not rig.runner.runs  # it was never begun, so there is nothing to be unsure of


async def test_a_completion_that_was_not_heard_of_yet_is_not_cancelled(
    holding: tuple[Rig, HoldingStore],
) -> None:
    rig, store = holding
    action_id, run = await rig.running("p.send")
    store.hold("complete")
    run.answer()
    async with asyncio.timeout(PATIENCE):
        await store.waits.wait()
        record = await rig.engine.cancel(ANA, action_id)
    store.go_on.set()
    assert record.state is S.COMPLETED


async def test_a_follower_reads_when_there_is_something_to_read_and_not_all_the_time(
    holding: tuple[Rig, HoldingStore],
) -> None:
    rig, store = holding
    action_id, run = await rig.running(mode=Mode.STREAMING)
    head = (await rig.events(action_id))[-1].cursor
    before = store.reads
    waiting = asyncio.ensure_future(rig.engine.events(ANA, action_id, head, wait=30))
    for _ in range(50):
        await rig.store.counts()
    assert store.reads <= before + 1
    run.answer()
    assert (await waiting).events


async def test_two_engines_on_one_file(tmp_path: Path) -> None:
    answers = await asyncio.gather(
        *(SqliteStore.open(tmp_path / "a.db") for _ in range(4)), return_exceptions=True
    )
    (winner,) = [answer for answer in answers if isinstance(answer, SqliteStore)]
    assert sum(isinstance(answer, StoreLocked) for answer in answers) == 3
    await winner.close()
