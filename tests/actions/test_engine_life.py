"""Opening, draining, closing; housekeeping; what happens when the disk fails."""

import asyncio
import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from executa_host.actions.faults import ActionsError, Code
from executa_host.actions.records import ActionState, Mode
from executa_host.actions.requests import Include
from executa_host.actions.settings import EngineSettings, Retention
from executa_host.actions.sqlite import values
from executa_host.actions.store import StoreBroken
from executa_protocol import canonical
from executa_protocol.receipts import Receipt, check_chain
from tests.actions.rig import ANA, Rig
from tests.actions.scripted import PATIENCE

S = ActionState


async def test_a_drain_refuses_new_work_and_lets_what_runs_end(rig: Rig) -> None:
    action_id, run = await rig.running()
    draining = asyncio.ensure_future(rig.engine.drain(30))
    await asyncio.sleep(0)
    with pytest.raises(ActionsError) as refused:
        await rig.submit()
    status = await rig.engine.status()
    assert not draining.done()
    run.answer()
    await draining

    assert (refused.value.code, refused.value.retryable) == (Code.DRAINING, True)
    assert (status.ready, status.draining, status.running) == (False, True, 1)
    assert (await rig.engine.result(ANA, action_id)).action.state is S.COMPLETED


async def test_what_does_not_end_in_time_is_left_for_recovery(rig: Rig) -> None:
    reading, run = await rig.running("p.read")
    before = rig.clock.pending
    draining = asyncio.ensure_future(rig.engine.drain(5))
    await rig.clock.more_than(before)
    rig.clock.advance(5)
    await draining
    await rig.reopen()

    assert run.abandoned
    (await rig.runner.begun(reading)).answer()
    assert (await rig.outcome(reading)).action.state is S.COMPLETED


async def test_what_waits_stays_where_it_is_during_a_drain(rig: Rig) -> None:
    runs = [await rig.running() for _ in range(16)]
    waiting = await rig.submit()
    draining = asyncio.ensure_future(rig.engine.drain(30))
    await asyncio.sleep(0)
    for _, run in runs:
        run.answer()
    await draining
    assert not rig.runner.of(waiting.action_id)
    await rig.reopen()
    (await rig.runner.begun(waiting.action_id)).answer()


async def test_followers_are_told_when_the_engine_stops(rig: Rig) -> None:
    action_id, _ = await rig.running(mode=Mode.STREAMING)

    async def follow() -> None:
        async for _ in rig.engine.follow(ANA, action_id):
            pass

    following = asyncio.ensure_future(follow())
    waiting = asyncio.ensure_future(rig.engine.result(ANA, action_id, wait=30))
    before = rig.clock.pending
    await rig.clock.more_than(before)
    await rig.engine.drain(0)
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(ActionsError) as told:
            await following
        outcome = await waiting
    assert told.value.code is Code.DRAINING
    assert outcome.result is None


async def test_closing_is_idempotent_and_reads_go_on_until_the_store_is_closed(rig: Rig) -> None:
    record = await rig.submit()
    await rig.engine.close()
    await rig.engine.close()
    assert await rig.engine.get(ANA, record.action_id) is not None


async def test_a_disk_that_fails_ends_all_work_and_loses_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    action_id, run = await rig.running("p.read")

    def fail(*_: Any) -> Any:
        fault = sqlite3.OperationalError("disk I/O error")
        fault.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(values, "run", fail)
        with pytest.raises(StoreBroken):
            await rig.submit()
    run.answer()
    with pytest.raises((StoreBroken, ActionsError)):
        await rig.submit()
    await rig.reopen()
    (await rig.runner.begun(action_id)).answer()
    assert (await rig.outcome(action_id)).action.state is S.COMPLETED


# --- Housekeeping. --------------------------------------------------------------------------------


async def test_old_actions_go_by_themselves_and_can_still_be_told_from_unknown_ones(
    tmp_path: Path,
) -> None:
    settings = EngineSettings(retention=Retention(age_ms=1000))
    async with Rig(tmp_path / "a.db", settings) as rig:
        record = await rig.submit(idempotency_key="k")
        (await rig.runner.begun(record.action_id)).answer()
        await rig.outcome(record.action_id)
        with rig.store.watch(record.action_id) as bell:
            rig.clock.advance(61)
            async with asyncio.timeout(PATIENCE):
                await bell.wait()

        with pytest.raises(ActionsError) as gone:
            await rig.engine.get(ANA, record.action_id)
        assert gone.value.code is Code.REMOVED
        with pytest.raises(ActionsError) as spent:
            await rig.submit(idempotency_key="k")
        assert spent.value.code is Code.REMOVED
        await rig.check()


async def test_retention_by_count_keeps_the_latest(tmp_path: Path) -> None:
    settings = EngineSettings(retention=Retention(count=3))
    async with Rig(tmp_path / "a.db", settings) as rig:
        rig.runner.auto["read"] = lambda run: run.answer()
        ids: list[str] = []
        for _ in range(10):
            ids.append((await rig.submit()).action_id)
            await rig.outcome(ids[-1])
            rig.clock.advance(0.001)
        removed = await rig.engine.tidy()
        page = await rig.engine.list(ANA)
        assert removed.actions == 7
        assert [each.action_id for each in page.records] == ids[:-4:-1]
        await rig.check()


# --- Receipts. ------------------------------------------------------------------------------------


async def test_receipts_let_a_client_check_what_it_was_told(rig: Rig) -> None:
    action_id, run = await rig.running("p.send", {"text": "t", "n": 1})
    await rig.engine.cancel(ANA, action_id, "why not")
    run.answer({"ok": True})
    await rig.outcome(action_id)
    view = await rig.engine.get(ANA, action_id, frozenset(Include))
    assert view is not None
    assert view.receipts

    chain = [
        Receipt(
            each.action_id,
            each.number,
            each.kind,
            each.at_ms,
            canonical.digest(each.attested),
            each.previous,
            each.digest,
        )
        for each in view.receipts
    ]
    check_chain(chain)
    assert [each.kind for each in chain] == ["acceptance", "cancellation", "outcome"]
    assert canonical.digest(b'{"n":1,"text":"t"}') in bytes(view.receipts[0].attested).decode()
    assert b"why not" in bytes(view.receipts[1].attested)
    assert b"completed_first" in bytes(view.receipts[2].attested)
