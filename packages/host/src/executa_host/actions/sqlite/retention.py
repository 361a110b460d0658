"""What is removed in the end, and what stays of it: markers and, for a while, keys.

Actions without a session go one by one, but not before their callbacks are delivered or given
up. Those of a session that is settled go with it. Those of a session that is not go one by one
too, and raise the session's floor: what lies before it can no longer be read, so that nobody
reads over a hole (R-51).
"""

# ruff: noqa: S608 - what is put together here are constants; values are bound

import sqlite3
from typing import Final

from executa_host.actions.operations import Prune, Pruned
from executa_host.actions.sqlite.rows import json_text
from executa_host.actions.sqlite.work import Work

_OLDEST: Final = (
    "select n, ended_ms from actions where ended_ms is not null"
    " and not exists (select 1 from callbacks c where c.action = actions.n"
    " and c.next_ms is not null) order by ended_ms, n limit ?"
)
_SESSIONS: Final = (
    "select s.n from sessions s where s.state = 'settled' and s.ended_ms < ?"
    " and not exists (select 1 from actions a where a.session = s.n) order by s.ended_ms limit ?"
)
_THESE: Final = "(select value from json_each(?))"


def prune(work: Work, op: Prune) -> Pruned:
    """Remove what is due."""
    db = work.db
    surplus = work.number("ended") - op.keep
    actions = [
        n
        for place, (n, ended_ms) in enumerate(db.execute(_OLDEST, (op.limit,)))
        if ended_ms < op.ended_before_ms or place < surplus
    ]
    if actions:
        _remove_actions(work, op, actions)
    sessions = [row[0] for row in db.execute(_SESSIONS, (op.ended_before_ms, op.limit))]
    if sessions:
        _remove_sessions(db, op, sessions)
    keys = db.execute("delete from idempotency_keys where forget_ms <= ?", (op.at_ms,)).rowcount
    db.execute("delete from removed where removed_ms < ?", (op.at_ms - op.marker_age_ms,))
    more = len(actions) >= op.limit or len(sessions) >= op.limit
    return Pruned(len(actions), len(sessions), keys, more)


def _remove_actions(work: Work, op: Prune, actions: list[int]) -> None:
    db, these = work.db, json_text(actions)
    db.execute(
        "insert or replace into removed select a.action_id, a.tenant,"
        " case when s.n is null then json_array(a.principal, a.subject)"
        " else json_array(a.principal, a.subject, s.initiator, s.responder) end, ?"
        f" from actions a left join sessions s on s.n = a.session where a.n in {_THESE}",
        (op.at_ms, these),
    )
    db.execute(
        "update sessions set floor = max(sessions.floor, f.top) from ("
        " select session, max(session_number) as top from events"
        f" where action in {_THESE} and session is not null group by session) as f"
        " where sessions.n = f.session",
        (these,),
    )
    db.execute(
        "update idempotency_keys set forget_ms = ? from ("
        " select a.tenant, a.principal, a.capability, a.action_id,"
        " json_extract(r.terms, '$.idempotency_key') as key"
        f" from actions a join requests r on r.action = a.n where a.n in {_THESE}) as gone"
        " where gone.key is not null and idempotency_keys.tenant = gone.tenant"
        " and idempotency_keys.principal = gone.principal"
        " and idempotency_keys.capability = gone.capability"
        " and idempotency_keys.key = gone.key",
        (op.at_ms + op.key_outlives_ms, these),
    )
    ids = db.execute(f"select action_id from actions where n in {_THESE}", (these,)).fetchall()
    work.touched.update(row[0] for row in ids)
    work.add("ended", -len(actions))
    db.execute(f"delete from events where action in {_THESE}", (these,))
    db.execute(f"delete from actions where n in {_THESE}", (these,))


def _remove_sessions(db: sqlite3.Connection, op: Prune, sessions: list[int]) -> None:
    these = json_text(sessions)
    db.execute(
        "insert or replace into removed select session_id, tenant,"
        f" json_array(initiator, responder), ? from sessions where n in {_THESE}",
        (op.at_ms, these),
    )
    db.execute(f"delete from events where session in {_THESE}", (these,))
    db.execute(f"delete from sessions where n in {_THESE}", (these,))
