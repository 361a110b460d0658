"""`check` finds what is wrong with a file: each invariant is broken by hand and must be seen."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from executa_host.actions.endings import move
from executa_host.actions.operations import CloseSession, Piece
from executa_host.actions.records import SessionState
from executa_host.actions.sqlite import SqliteStore
from executa_protocol.actions import ActionState as S
from executa_protocol.chunks import ChunkKind
from tests.actions.samples import AT, accepted, go, open_session, token
from tests.actions.store_contract_sessions import rotate

DAMAGE = {
    "an event is gone": ("delete from events where action = 1 and number = 2", "gaps"),
    "an event counter is wrong": ("update actions set events = 9 where n = 1", "counts 9 events"),
    "a state was written over": (
        "update actions set state = 'running', ended_ms = null where n = 1",
        "its log says",
    ),
    "a log makes an illegal move": (
        "update events set state = 'streaming' where action = 1 and state = 'queued'",
        "goes from accepted to streaming",
    ),
    "a chunk is gone": (
        "delete from events where action = 1 and sequence = 1",
        "where 1 is due",
    ),
    "a chunk is there twice": (
        "update events set sequence = 1 where action = 1 and sequence = 2",
        "where 2 is due",
    ),
    "the end chunk is another": (
        "update events set kind = 'data' where action = 1 and kind = 'end'",
        "no end",
    ),
    "an attempt was changed": (
        "update actions set attempt = 4 where n = 1",
        "its log says",
    ),
    "a receipt was changed": (
        "update receipts set at_ms = 5 where action = 1 and number = 1",
        "does not continue its chain",
    ),
    "a receipt is gone": (
        "delete from receipts where action = 1 and number = 2",
        "0 receipts of an outcome",
    ),
    "a result is gone": ("update actions set result = null where n = 1", "result is missing"),
    "a session event is gone": (
        "delete from events where session = 1 and session_number = 1",
        "its events have gaps",
    ),
    "a tally is wrong": ("update sessions set tally = '{\"queued\":1}'", "counts {'queued': 1}"),
    "a session shows something else": (
        "update sessions set state = 'streaming' where n = 1",
        "its log says",
    ),
    "a key is gone": ("delete from idempotency_keys", "its key is not kept"),
    "a key's action is gone": (
        "update idempotency_keys set action_id = 'act_x'",
        "its action is gone",
    ),
    "a token came to life again": (
        "update resume_tokens set state = 'live'",
        "has 2 live ones",
    ),
    "a chain is revoked in part": (
        "update resume_tokens set state = 'revoked' where state = 'used'",
        "revoked in part",
    ),
    "a counter went back": ("update counters set value = 1 where name = 'event'", "is taken"),
    "the ended are counted wrong": (
        "update counters set value = 7 where name = 'ended'",
        "counter ended is at 7",
    ),
    "a request is gone": ("delete from requests where action = 1", "without its request"),
    "an event belongs to nothing": (
        "insert into events (n, at_ms, type) values (0, 1, 'state')",
        "an event of nothing",
    ),
}


async def _make(path: Path) -> None:
    """A file with one of everything."""
    async with await SqliteStore.open(path, synchronous="NORMAL") as store:
        session = await open_session(store, token=token("t"))
        await store.apply(rotate("t"))
        action = await accepted(store, session_id=session.session_id, idempotency_key="k")
        action = await go(store, action.record.action_id, S.QUEUED, S.RUNNING)
        await store.apply(move(action, "chunk", AT, Piece(ChunkKind.DATA), Piece(ChunkKind.DATA)))
        await go(store, action.record.action_id, S.COMPLETED)
        assert await store.check() == []


@pytest.mark.parametrize("what", DAMAGE)
async def test_damage_is_found(tmp_path: Path, what: str) -> None:
    sql, finding = DAMAGE[what]
    path = tmp_path / "a.db"
    await _make(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("pragma foreign_keys = off")
        assert db.execute(sql).rowcount >= 1
        db.commit()

    async with await SqliteStore.open(path) as store:
        findings = await store.check()
    assert any(finding in each for each in findings), findings


async def test_nothing_is_found_where_nothing_is_wrong(store: SqliteStore) -> None:
    session = await open_session(store)
    close = CloseSession(at_ms=AT, session_id=session.session_id, outcome=SessionState.COMPLETED)
    await store.apply(close)
    assert await store.check() == []
