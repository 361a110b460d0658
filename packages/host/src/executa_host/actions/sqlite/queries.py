"""Reading: listings by filter and page, logs after a cursor, what is due.

Every function runs on a reader's thread, in one read transaction of its own: a statement.
"""

# ruff: noqa: S608 - what is put together here are constants; values are bound

import re
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET

from executa_host.actions.faults import Code, Gone, Invalid, NotFound
from executa_host.actions.interface import ActionPage, EventPage, SessionPage
from executa_host.actions.operations import Stored
from executa_host.actions.records import ChunkRecord, ReceiptRecord, SessionState
from executa_host.actions.requests import ActionQuery, SessionQuery
from executa_host.actions.sqlite import rows
from executa_host.actions.sqlite.lane import Lane
from executa_host.actions.sqlite.values import one
from executa_host.actions.store import Counts, Delivery, Viewer
from executa_protocol.actions import TERMINAL, ActionState
from executa_protocol.chunks import ChunkKind
from executa_protocol.ids import is_session_id

_OPEN: Final = ", ".join(f"'{state}'" for state in ActionState if state not in TERMINAL)


class _Filter:
    """Conditions that must all hold, with what they compare to."""

    def __init__(self) -> None:
        self._conditions = ["true"]
        self.values: list[Any] = []

    def add(self, condition: str, *values: Any) -> None:
        self._conditions.append(condition)
        self.values += values

    def equal(self, column: str, value: str) -> None:
        if value:
            self.add(f"{column} = ?", value)

    def any_of(self, column: str, wanted: Sequence[str]) -> None:
        if wanted:
            self.add(f"{column} in ({', '.join('?' * len(wanted))})", *wanted)

    def page(self, cursor: str, *, oldest_first: bool, n: str) -> None:
        if cursor:
            match = re.fullmatch(r"p([0-9a-f]{1,15})", cursor)
            if match is None:
                raise Invalid(
                    Code.CURSOR_INVALID, "this is no cursor of a listing", path="$.cursor"
                )
            self.add(f"{n} {'>' if oldest_first else '<'} ?", int(match[1], 16))

    def __str__(self) -> str:
        return " and ".join(self._conditions)


def _next(found: Sequence[Any], limit: int) -> str:
    """The cursor after a page; empty if there was no row beyond its limit."""
    return f"p{found[limit - 1][0]:x}" if len(found) > limit else ""


# --- Actions --------------------------------------------------------------------------------


def actions(lane: Lane, query: ActionQuery, viewer: Viewer) -> ActionPage:
    """See `Store.actions`."""
    where = _Filter()
    where.any_of("a.state", query.states)
    where.equal("a.tenant", query.tenant)
    where.equal("a.capability", query.capability)
    where.equal("a.principal", query.principal)
    where.equal("a.transaction_id", query.transaction_id)
    where.equal("s.session_id", query.session_id)
    if query.approval is not UNSET:
        where.add("a.approval_status = ?", query.approval)
    if viewer.tenant is not None:
        where.add("a.tenant = ?", viewer.tenant)
    if viewer.principal is not None:
        seen = "a.principal = ? or a.subject = ? or s.initiator = ? or s.responder = ?"
        seen += " or a.approval_status is not null" if viewer.approvals else ""
        where.add(f"({seen})", *[viewer.principal] * 4)
    where.page(query.cursor, oldest_first=query.oldest_first, n="a.n")
    order = "asc" if query.oldest_first else "desc"
    sql = f"{rows.LISTED} where {where} order by a.n {order} limit ?"
    found = lane.db.execute(sql, (*where.values, query.limit + 1)).fetchall()
    records = tuple(rows.stored(row).record for row in found[: query.limit])
    return ActionPage(records, _next(found, query.limit))


def open_actions(lane: Lane, after: str, limit: int) -> list[Stored]:
    """See `Store.open_actions`."""
    sql = (
        f"{rows.RECORD} where a.state in ({_OPEN})"
        " and a.n > coalesce((select n from actions where action_id = ?), 0)"
        " order by a.n limit ?"
    )
    return [rows.stored(row) for row in lane.db.execute(sql, (after, limit))]


def chunks(lane: Lane, action_id: str, after: int, limit: int) -> list[ChunkRecord]:
    """See `Store.chunks`."""
    sql = (
        "select e.sequence, e.attempt, e.kind, e.at_ms, e.data from events e"
        " where e.action = (select n from actions where action_id = ?) and e.sequence > ?"
        " order by e.number limit ?"
    )
    return [
        ChunkRecord(action_id, row[0], row[1], ChunkKind(row[2]), row[3], rows.raw(row[4]))
        for row in lane.db.execute(sql, (action_id, after, limit))
    ]


def receipts(lane: Lane, action_id: str) -> list[ReceiptRecord]:
    """See `Store.receipts`."""
    sql = f"{rows.RECEIPT} where a.action_id = ? order by r.number"
    return [rows.receipt(row) for row in lane.db.execute(sql, (action_id,))]


# --- Logs -------------------------------------------------------------------------------------


def events(lane: Lane, subject: str, after: str, limit: int) -> EventPage:
    """See `Store.events`."""
    of_session = is_session_id(subject)
    log = "s" if of_session else "a"
    start = _position(after, log)
    # One transaction, so that the head and the rows are of the same moment.
    db = lane.db
    db.execute("begin")
    try:
        n, head, floor, ended = (_session_head if of_session else _action_head)(db, subject)
        if start > head:
            msg = f"the log of {subject} has {head} events, and this cursor is of a later one"
            raise Invalid(Code.CURSOR_AHEAD, msg, path="$.after", data={"head": f"{log}{head}"})
        if start < floor:
            msg = f"retention removed what follows this cursor in the log of {subject}"
            raise Gone(Code.CURSOR_GONE, msg, path="$.after", data={"floor": f"{log}{floor}"})
        number = "e.session_number" if of_session else "e.number"
        column = "e.session" if of_session else "e.action"
        sql = (
            f"{rows.EVENT.format(number=number)} where {column} = ? and {number} > ?"
            f" order by {number} limit ?"
        )
        found = tuple(rows.event(row, log) for row in db.execute(sql, (n, start, limit)))
    finally:
        db.execute("rollback")
    cursor = found[-1].cursor if found else f"{log}{start}"
    return EventPage(found, cursor, ended=ended and cursor == f"{log}{head}")


def _position(cursor: str, log: str) -> int:
    if not cursor:
        return 0
    match = re.fullmatch(r"([as])(0|[1-9][0-9]{0,17})", cursor)
    if match is None or match[1] != log:
        raise Invalid(Code.CURSOR_INVALID, "this is no cursor of this log", path="$.after")
    return int(match[2])


def _action_head(db: sqlite3.Connection, action_id: str) -> tuple[int, int, int, bool]:
    sql = "select n, events, state from actions where action_id = ?"
    row = one(db, sql, (action_id,))
    if row is None:
        raise NotFound(Code.UNKNOWN_ACTION, f"there is no action {action_id}")
    return row[0], row[1], 0, row[2] in TERMINAL


def _session_head(db: sqlite3.Connection, session_id: str) -> tuple[int, int, int, bool]:
    sql = "select n, events, floor, state from sessions where session_id = ?"
    row = one(db, sql, (session_id,))
    if row is None:
        raise NotFound(Code.UNKNOWN_SESSION, f"there is no session {session_id}")
    return row[0], row[1], row[2], row[3] == SessionState.SETTLED


# --- Sessions, callbacks, counts ------------------------------------------------------------------


def sessions(lane: Lane, query: SessionQuery, viewer: Viewer) -> SessionPage:
    """See `Store.sessions`."""
    where = _Filter()
    where.any_of("state", query.states)
    where.equal("tenant", query.tenant)
    if query.principal:
        where.add("(initiator = ? or responder = ?)", query.principal, query.principal)
    if viewer.tenant is not None:
        where.add("tenant = ?", viewer.tenant)
    if viewer.principal is not None:
        where.add("(initiator = ? or responder = ?)", viewer.principal, viewer.principal)
    where.page(query.cursor, oldest_first=query.oldest_first, n="n")
    order = "asc" if query.oldest_first else "desc"
    sql = f"{rows.SESSION} where {where} order by n {order} limit ?"
    found = lane.db.execute(sql, (*where.values, query.limit + 1)).fetchall()
    records = tuple(rows.session(row) for row in found[: query.limit])
    return SessionPage(records, _next(found, query.limit))


def deliveries(lane: Lane, due_ms: int, limit: int) -> list[Delivery]:
    """See `Store.deliveries`."""
    sql = (
        "select c.n, a.action_id, c.kind, c.url, c.attempts, c.next_ms"
        " from callbacks c join actions a on a.n = c.action"
        " where c.next_ms <= ? order by c.next_ms, c.n limit ?"
    )
    return [
        Delivery(
            delivery=row[0],
            action_id=row[1],
            kind=row[2],
            url=row[3],
            attempts=row[4],
            next_at_ms=row[5],
        )
        for row in lane.db.execute(sql, (due_ms, limit))
    ]


def next_delivery_ms(lane: Lane) -> int | None:
    """See `Store.next_delivery_ms`."""
    row = one(lane.db, "select min(next_ms) from callbacks where next_ms is not null")
    return None if row is None else row[0]


def counts(lane: Lane) -> Counts:
    """See `Store.counts`."""
    row = one(
        lane.db,
        f"select (select count(*) from actions where state in ({_OPEN})),"
        " (select value from counters where name = 'ended'),"
        " (select count(*) from sessions),"
        " (select count(*) from callbacks where next_ms is not null)",
    )
    return Counts(0, 0, 0, 0) if row is None else Counts(*row)
