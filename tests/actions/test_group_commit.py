"""Many callers, one transaction: who shares a commit, and what happens when it fails."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from executa_host.actions.operations import Accepted, CallbackTried, Stored
from executa_host.actions.sqlite import SqliteStore, batch, values
from executa_host.actions.store import StoreBroken
from executa_protocol.actions import ActionState as S
from executa_protocol.errors import UsageError
from tests.actions.samples import AT, accept, accepted, go, step, to


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The ids of the actions of each batch that was committed, in order."""
    seen: list[list[str]] = []
    commit = batch.commit

    def note(db: sqlite3.Connection, operations: Any) -> Any:
        seen.append([getattr(operation, "action_id", "") for _, operation in operations])
        return commit(db, operations)

    monkeypatch.setattr(batch, "commit", note)
    return seen


async def test_callers_that_come_together_share_a_commit(
    store: SqliteStore, batches: list[list[str]]
) -> None:
    await asyncio.gather(*(store.apply(accept()) for _ in range(100)))
    assert len(batches) <= 2
    assert sum(map(len, batches)) == 100


async def test_a_batch_has_at_most_one_move_of_an_action_and_keeps_their_order(
    store: SqliteStore, batches: list[list[str]]
) -> None:
    action = await accepted(store)
    queued = to(action, S.QUEUED)
    after = Stored(action.record, action.fence, action.terms)
    cancelled = to(after, S.EXPIRED)
    answers = await asyncio.gather(store.apply(queued), store.apply(cancelled))

    assert [answer.won for answer in answers] == [True, False]
    assert all(len(set(ids)) == len(ids) for ids in batches)


async def test_a_failing_batch_is_rolled_back_and_run_singly(
    store: SqliteStore, batches: list[list[str]]
) -> None:
    known = accept()
    await store.apply(known)
    batches.clear()
    made = [accept(action_id=known.action_id), accept(), accept()]
    answers = await asyncio.gather(*map(store.apply, made), return_exceptions=True)

    assert isinstance(answers[0], UsageError)
    assert answers[1:] == [Accepted(each.action_id) for each in made[1:]]
    assert batches == [
        [each.action_id for each in made],
        *([each.action_id] for each in made),
    ]


async def test_a_caller_that_goes_away_takes_nothing_from_the_others(store: SqliteStore) -> None:
    gone = asyncio.ensure_future(store.apply(accept()))
    others = [asyncio.ensure_future(store.apply(accept())) for _ in range(5)]
    await asyncio.sleep(0)
    gone.cancel()
    assert len(await asyncio.gather(*others)) == 5
    with pytest.raises(asyncio.CancelledError):
        await gone


async def test_closing_finishes_what_was_asked_for(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "a.db")
    made = [accept() for _ in range(50)]
    waiting = [asyncio.ensure_future(store.apply(each)) for each in made]
    await asyncio.sleep(0)
    await store.close()
    assert len(await asyncio.gather(*waiting)) == 50
    await store.close()
    with pytest.raises(StoreBroken):
        await store.apply(accept())
    async with await SqliteStore.open(tmp_path / "a.db") as again:
        assert isinstance(await again.action(made[-1].action_id), Stored)


async def test_a_disk_that_fails_breaks_the_store_for_everybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        fault = sqlite3.OperationalError("disk I/O error")
        fault.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise fault

    async with await SqliteStore.open(tmp_path / "a.db") as store:
        action = await accepted(store)
        with monkeypatch.context() as patch:
            patch.setattr(values, "run", fail)
            answers = await asyncio.gather(
                store.apply(accept()), store.apply(accept()), return_exceptions=True
            )
        assert [type(answer) for answer in answers] == [StoreBroken] * 2
        with pytest.raises(StoreBroken):  # also once the disk says that it is well again
            await step(store, action, S.QUEUED)
    async with await SqliteStore.open(tmp_path / "a.db") as store:
        assert await store.check() == []
        await go(store, action.record.action_id, S.QUEUED)


async def test_a_delivery_that_nobody_knows_changes_nothing(store: SqliteStore) -> None:
    assert await store.apply(CallbackTried(at_ms=AT, delivery=99)) is None


@pytest.mark.parametrize("count", [1, 2, 3, 63, 64, 65, 129, 200])
def test_rows_of_any_number_are_written_once_each(count: int) -> None:
    db = sqlite3.connect(":memory:")
    db.execute("create table t (a, b)")
    rows = [(number, str(number)) for number in range(count)]
    given = values.run(db, "insert into t values", "returning a", rows)
    assert given == [(number,) for number in range(count)]
    assert db.execute("select * from t order by a").fetchall() == rows
    db.close()


async def test_what_a_lifecycle_binds_is_of_the_types_that_need_no_adapter(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound: set[type[object]] = set()
    run = values.run

    def note(
        db: sqlite3.Connection, before: str, after: str, rows: list[tuple[object, ...]]
    ) -> Any:
        bound.update(type(value) for row in rows for value in row)
        return run(db, before, after, rows)

    monkeypatch.setattr(values, "run", note)
    action = await accepted(store, idempotency_key="k")
    await go(store, action.record.action_id, S.QUEUED, S.RUNNING, S.COMPLETED)
    assert bound == {int, str}
