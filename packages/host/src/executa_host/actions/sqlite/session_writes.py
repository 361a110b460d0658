"""Sessions and resume tokens: opened, attached to, resumed, closed, settled (R-49, R-50).

Each function applies one operation and returns its answer. Refusals are raised before
anything is written, or returned if what was written must stay (a revoked chain).
"""

import sqlite3
from itertools import pairwise
from typing import Final, Literal

from msgspec import Struct

from executa_host.actions.faults import ActionsError, Code, Conflict, Gone, NotFound
from executa_host.actions.operations import (
    Attach,
    CloseSession,
    OpenSession,
    Rotate,
    Rotated,
    Settle,
    TokenRecord,
)
from executa_host.actions.records import SessionRecord
from executa_host.actions.sqlite.rows import find_session
from executa_host.actions.sqlite.values import one
from executa_host.actions.sqlite.work import SessionLog, Work
from executa_protocol.moves import IllegalMove
from executa_protocol.sessions import SessionState, check_move

_INSERT: Final = (
    "insert into sessions (n, session_id, tenant, initiator, responder, label, state, events,"
    " created_ms, updated_ms) values (?, ?, ?, ?, ?, ?, ?, 0, ?, ?)"
)
_ADD: Final = (
    "insert into resume_tokens (token_hash, session, chain, principal, state, predecessor,"
    " created_ms, expires_ms) values (?, ?, ?, ?, 'live', ?, ?, ?)"
)
_FIND: Final = (
    "select t.session, s.session_id, s.state, s.tenant, t.principal, t.chain, t.state,"
    " t.expires_ms, t.used_ms, t.attempt_hash, t.nonce, t.predecessor"
    " from resume_tokens t join sessions s on s.n = t.session where t.token_hash = ?"
)


class _Token(Struct):
    session: int
    session_id: str
    session_state: str
    tenant: str
    principal: str
    chain: str
    state: Literal["live", "used", "revoked"]
    expires_ms: int
    used_ms: int | None
    attempt_hash: str | None
    nonce: str | None
    predecessor: str | None


def open_session(work: Work, op: OpenSession) -> SessionRecord:
    """A new session; its log begins with `new`."""
    n = work.take_number("session")
    parties = (op.tenant, op.initiator, op.responder)
    row = (n, op.session_id, *parties, op.label, SessionState.NEW, op.at_ms, op.at_ms)
    work.db.execute(_INSERT, row)
    _add_token(work.db, n, op.token, op.at_ms)
    log = _log(work, op.session_id)
    work.session_moved(log, SessionState.NEW, op.at_ms)
    return _shown(work, log)


def attach(work: Work, op: Attach) -> SessionRecord:
    """A new chain for a party."""
    log = _log(work, op.session_id)
    _refuse_settled(log)
    _add_token(work.db, log.n, op.token, op.at_ms)
    return _shown(work, log)


def close(work: Work, op: CloseSession) -> SessionRecord:
    """End a session."""
    log = _log(work, op.session_id)
    ended = work.db.execute("select outcome from sessions where n = ?", (log.n,)).fetchone()[0]
    if ended == op.outcome:
        return _shown(work, log)
    if ended is not None:
        raise Conflict(Code.SESSION_ENDED, f"session {op.session_id} has ended: it is {ended}")
    path = [op.outcome]
    if log.state is SessionState.NEW and op.outcome is SessionState.COMPLETED:
        path = [SessionState.ACTIVE, op.outcome]  # nothing was asked of it, and that is fine
    try:
        for old, new in pairwise([log.state, *path]):
            check_move(old, new)
    except IllegalMove as fault:
        msg = f"session {op.session_id} is {log.state} and cannot become {op.outcome}"
        raise Conflict(Code.ILLEGAL_MOVE, msg) from fault
    for state in path:
        log.state = state
        work.session_moved(log, state, op.at_ms)
    work.db.execute(
        "update sessions set outcome = ?, ended_ms = ? where n = ?", (op.outcome, op.at_ms, log.n)
    )
    return _shown(work, log)


def settle(work: Work, op: Settle) -> tuple[str, ...]:
    """Settle closed sessions whose actions have all ended."""
    rows = work.db.execute(
        "select session_id from sessions where ended_ms < ? and state <> 'settled'"
        " and tally = '{}' limit ?",
        (op.closed_before_ms, op.limit),
    ).fetchall()
    ids = tuple(row[0] for row in rows)
    work.load_sessions(ids)
    for session_id in ids:
        log = _log(work, session_id)
        log.state = SessionState.SETTLED
        work.session_moved(log, SessionState.SETTLED, op.at_ms)
        # Its tokens stay, to be refused with a reason, but give nothing any more.
        work.db.execute("update resume_tokens set nonce = null where session = ?", (log.n,))
    return ids


def rotate(work: Work, op: Rotate) -> "Rotated | ActionsError":
    """Use a resume token (R-50)."""
    row = one(work.db, _FIND, (op.token_hash,))
    token = None if row is None else _Token(*row)
    if token is None or (token.tenant, token.principal) != (op.tenant, op.principal):
        # Another principal's attempt changes nothing and learns nothing.
        return NotFound(Code.RESUME_UNKNOWN, "no such resume token")
    log = _log(work, token.session_id)
    _refuse_settled(log)
    if token.state == "revoked":
        return Gone(Code.RESUME_REVOKED, "this chain of resume tokens was revoked; attach anew")
    if token.state == "used":
        return _again(work, op, token, log)
    if token.expires_ms <= op.at_ms:
        return Gone(Code.RESUME_SPENT, "this resume token has expired; attach anew")
    if token.predecessor is not None:
        # Its first use ends the time in which the request that gave it may be repeated.
        work.db.execute(
            "update resume_tokens set nonce = null where token_hash = ?", (token.predecessor,)
        )
    work.db.execute(
        "update resume_tokens set state = 'used', used_ms = ?, attempt_hash = ?, nonce = ?"
        " where token_hash = ?",
        (op.at_ms, op.attempt_hash, op.nonce, op.token_hash),
    )
    work.db.execute(
        _ADD,
        (
            op.new_hash,
            token.session,
            token.chain,
            token.principal,
            op.token_hash,
            op.at_ms,
            op.new_expires_at_ms,
        ),
    )
    if log.state is SessionState.NEW:
        log.state = SessionState.ACTIVE
        work.session_moved(log, SessionState.ACTIVE, op.at_ms)
    return Rotated(_shown(work, log), op.nonce)


def _again(work: Work, op: Rotate, token: _Token, log: SessionLog) -> "Rotated | ActionsError":
    """A token that was used: repeated by its own attempt, or by another one."""
    within = token.used_ms is not None and op.at_ms - token.used_ms <= op.window_ms
    if op.attempt_hash == token.attempt_hash:
        if within and token.nonce is not None:
            return Rotated(_shown(work, log), token.nonce)
        return Gone(
            Code.RESUME_SPENT, "this resume token is spent, and its answer was used or is old"
        )
    if within:
        return Conflict(Code.RESUME_CONFLICT, "another attempt used this resume token first")
    work.db.execute(
        "update resume_tokens set state = 'revoked', nonce = null where chain = ?", (token.chain,)
    )
    return Gone(Code.RESUME_REVOKED, "a spent resume token came again: its chain is revoked")


def _add_token(db: sqlite3.Connection, session: int, token: TokenRecord, at_ms: int) -> None:
    db.execute(
        _ADD,
        (
            token.token_hash,
            session,
            token.chain,
            token.principal,
            None,
            at_ms,
            token.expires_at_ms,
        ),
    )


def _log(work: Work, session_id: str) -> SessionLog:
    work.load_sessions((session_id,))
    log = work.session(session_id)
    if log is None:
        raise NotFound(Code.UNKNOWN_SESSION, f"there is no session {session_id}")
    return log


def _refuse_settled(log: SessionLog) -> None:
    if log.state is SessionState.SETTLED:
        raise Conflict(Code.SESSION_ENDED, f"session {log.session_id} is settled")


def _shown(work: Work, log: SessionLog) -> SessionRecord:
    """The record as it will be once this transaction is written."""
    work.write_session(log)
    found = find_session(work.db, log.session_id)
    if found is None:
        raise NotFound(Code.UNKNOWN_SESSION, f"there is no session {log.session_id}")
    return found
