"""Reading and following: cursors, waits, wake-ups, visibility (R-48, R-51)."""

import asyncio
from typing import Any

import pytest

from executa_host.actions.faults import ActionsError, Code
from executa_host.actions.interface import EventPage
from executa_host.actions.records import ActionState, Mode
from executa_host.actions.requests import ActionQuery, Caller, Include, Scope
from executa_protocol.chunks import ChunkFollower, ChunkKind
from executa_protocol.ids import IdSource
from tests.actions.rig import ANA, BEN, BOSS, ROOT, STRANGER, Rig
from tests.actions.scripted import PATIENCE

S = ActionState


async def follow(rig: Rig, subject: str, after: str = "", caller: Caller = ANA) -> list[EventPage]:
    """Every page until the log ends."""
    async with asyncio.timeout(20):
        return [page async for page in rig.engine.follow(caller, subject, after)]


async def test_backlog_and_live_tail_join_without_loss_or_repeat(rig: Rig) -> None:
    action_id, run = await rig.running(mode=Mode.STREAMING)
    for number in range(50):
        run.show(ChunkKind.DATA, number)
    await rig.until(action_id, S.STREAMING)
    following = [asyncio.ensure_future(follow(rig, action_id)) for _ in range(5)]
    for number in range(50, 300):
        run.show(ChunkKind.DATA, number)
        if number % 7 == 0:
            await asyncio.sleep(0)
    run.answer()

    for pages in await asyncio.gather(*following):
        events = [event for page in pages for event in page.events]
        assert [event.cursor for event in events] == [f"a{n}" for n in range(1, len(events) + 1)]
        follower = ChunkFollower()
        chunks = [event.chunk for event in events if event.chunk]
        assert all(follower.take(chunk) for chunk in chunks)
        assert follower.ended
        assert [bytes(chunk.data) for chunk in chunks[:-1]] == [b"%d" % n for n in range(300)]


async def test_a_follower_goes_on_where_it_was(rig: Rig) -> None:
    action_id, run = await rig.running()
    first = await rig.engine.events(ANA, action_id)
    run.answer()
    rest = [event for page in await follow(rig, action_id, first.cursor) for event in page.events]
    whole = [event for page in await follow(rig, action_id) for event in page.events]
    assert [*first.events, *rest] == whole


async def test_a_session_is_followed_over_all_its_actions(rig: Rig) -> None:
    opened = await rig.engine.sessions.open(ANA, responder="ben")
    session_id = opened.session.session_id
    following = asyncio.ensure_future(follow(rig, session_id, caller=BEN))
    for _ in range(3):
        action_id, run = await rig.running(session_id=session_id)
        run.answer()
        await rig.outcome(action_id)
    await rig.engine.sessions.close(ANA, session_id)
    rig.clock.advance(61)
    await rig.engine.tidy()
    events = [event for page in await following for event in page.events]

    assert [event.cursor for event in events] == [f"s{n}" for n in range(1, len(events) + 1)]
    assert len({event.action_id for event in events if event.action_id}) == 3
    assert events[-1].state == "settled"


async def test_a_wait_ends_with_the_first_event_or_with_its_time(rig: Rig) -> None:
    action_id, run = await rig.running()
    before = rig.clock.pending
    head = (await rig.events(action_id))[-1].cursor
    waiting = asyncio.ensure_future(rig.engine.events(ANA, action_id, head, wait=30))
    run.show(ChunkKind.PROGRESS, 1)
    async with asyncio.timeout(PATIENCE):
        page = await waiting
    assert [event.type for event in page.events] == ["chunk"]

    waiting = asyncio.ensure_future(rig.engine.events(ANA, action_id, page.cursor, wait=30))
    await rig.clock.more_than(before)
    rig.clock.advance(29.9)
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    rig.clock.advance(0.1)
    empty = await waiting
    assert (empty.events, empty.cursor, empty.ended) == ((), page.cursor, False)
    run.answer()


async def test_a_result_that_does_not_come_in_time_is_the_record(rig: Rig) -> None:
    action_id, run = await rig.running()
    before = rig.clock.pending
    waiting = asyncio.ensure_future(rig.engine.result(ANA, action_id, wait=30))
    await rig.clock.more_than(before)
    rig.clock.advance(30)
    outcome = await waiting
    assert outcome.result is None
    assert outcome.action.state is S.RUNNING
    run.answer()


async def test_who_stops_waiting_cancels_nothing(rig: Rig) -> None:
    action_id, run = await rig.running()
    waiting = asyncio.ensure_future(rig.engine.result(ANA, action_id, wait=30))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    run.answer("still here")
    assert (await rig.outcome(action_id)).action.state is S.COMPLETED


async def test_who_goes_away_while_it_asks_gets_what_it_asked_for_done(rig: Rig) -> None:
    rig.runner.auto["send"] = lambda run: run.answer()
    for turns in range(8):
        asking = asyncio.ensure_future(rig.submit("p.send", {"text": str(turns)}))
        for _ in range(turns):
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    await rig.outcome((await rig.submit("p.send")).action_id)  # whatever came before is on disk
    page = await rig.engine.list(ANA)
    for record in page.records:
        await rig.outcome(record.action_id)

    # Whatever reached the disk ran, without anybody asking again.
    assert len(rig.runner.runs) == len(page.records)


async def test_the_end_of_a_log_is_said_and_nothing_follows(rig: Rig) -> None:
    action_id, run = await rig.running()
    run.answer()
    await rig.outcome(action_id)
    page = await rig.engine.events(ANA, action_id)
    assert page.ended
    again = await rig.engine.events(ANA, action_id, page.cursor, wait=30)
    assert (again.events, again.ended) == ((), True)


# --- Bounds. --------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, -1, 1001])
async def test_a_limit_outside_its_bounds_is_refused_not_clamped(rig: Rig, limit: int) -> None:
    record = await rig.submit()
    for work in (
        rig.engine.list(ANA, ActionQuery(limit=limit)),
        rig.engine.events(ANA, record.action_id, limit=limit),
    ):
        with pytest.raises(ActionsError) as refused:
            await work
        assert refused.value.code is Code.OUT_OF_RANGE


@pytest.mark.parametrize("wait", [-0.1, 30.1, float("nan"), float("inf")])
async def test_a_wait_outside_its_bounds_is_refused_not_clamped(rig: Rig, wait: float) -> None:
    record = await rig.submit()
    for work in (
        rig.engine.result(ANA, record.action_id, wait),
        rig.engine.events(ANA, record.action_id, wait=wait),
    ):
        with pytest.raises(ActionsError) as refused:
            await work
        assert refused.value.code is Code.OUT_OF_RANGE


@pytest.mark.parametrize("limit", [1, 1000])
async def test_bounds_themselves_are_fine(rig: Rig, limit: int) -> None:
    await rig.engine.list(ANA, ActionQuery(limit=limit))


# --- Who sees what. -------------------------------------------------------------------------------


async def test_what_a_caller_may_not_see_is_as_if_it_were_not_there(rig: Rig) -> None:
    action_id, run = await rig.running()
    for caller in (BEN, STRANGER):
        assert await rig.engine.get(caller, action_id) is None
        assert (await rig.engine.list(caller)).records == ()
        works: list[Any] = [
            rig.engine.result(caller, action_id),
            rig.engine.events(caller, action_id),
            rig.engine.cancel(caller, action_id),
        ]
        for work in works:
            with pytest.raises(ActionsError) as refused:
                await work
            assert refused.value.code is Code.UNKNOWN_ACTION
    for caller in (ANA, BOSS, ROOT):
        assert await rig.engine.get(caller, action_id) is not None
        assert len((await rig.engine.list(caller)).records) == 1
    run.answer()


async def test_an_unknown_id_and_a_hidden_one_are_refused_in_the_same_words(rig: Rig) -> None:
    hidden = (await rig.submit()).action_id
    unknown = IdSource().action_id()
    words: set[str] = set()
    for action_id in (hidden, unknown):
        with pytest.raises(ActionsError) as refused:
            await rig.engine.result(BEN, action_id)
        words.add(refused.value.message.replace(action_id, "ID"))
    assert len(words) == 1
    assert await rig.engine.get(ANA, "no id") is None


async def test_reading_needs_the_scope(rig: Rig) -> None:
    record = await rig.submit()
    caller = Caller(principal="ana", scopes=frozenset({Scope.SUBMIT}))
    works: list[Any] = [
        rig.engine.get(caller, record.action_id),
        rig.engine.list(caller),
        rig.engine.result(caller, record.action_id),
        rig.engine.events(caller, record.action_id),
        rig.engine.capabilities(caller),
        rig.engine.capability(caller, "p.read"),
        rig.engine.cancel(caller, record.action_id),
    ]
    for work in works:
        with pytest.raises(ActionsError) as refused:
            await work
        assert refused.value.code is Code.FORBIDDEN


async def test_what_is_asked_for_is_included_and_nothing_else(rig: Rig) -> None:
    action_id, run = await rig.running()
    run.answer(1)
    await rig.outcome(action_id)
    plain = await rig.engine.get(ANA, action_id)
    whole = await rig.engine.get(ANA, action_id, frozenset(Include))

    assert plain is not None
    assert not plain.action.result
    assert not plain.action.input
    assert not plain.chunks
    assert whole is not None
    assert whole.action.result
    assert whole.chunks
    assert whole.receipts
    assert len(whole.receipts) == 2
    (listed,) = (await rig.engine.list(ANA)).records
    assert listed == plain.action
