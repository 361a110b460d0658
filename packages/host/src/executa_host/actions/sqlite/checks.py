"""Whether a file keeps what it promises: every invariant, looked up row by row.

Says what is wrong in sentences, and changes nothing. It trusts no counter: each is counted
again.
"""

import sqlite3
from collections.abc import Iterator
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, Final

from msgspec import Raw

from executa_host.actions.operations import Stored
from executa_host.actions.records import Approval, ApprovalStatus, CancelOutcome
from executa_host.actions.sqlite import rows
from executa_host.actions.sqlite.lane import Lane
from executa_protocol import sessions
from executa_protocol.actions import TERMINAL, ActionState, MoveReason, check_move
from executa_protocol.chunks import Chunk, ChunkKind, check_append
from executa_protocol.errors import ExecutaError
from executa_protocol.receipts import Receipt, ReceiptKind, check_chain
from executa_protocol.sessions import SessionState, view

_REASONS: Final[tuple[MoveReason | None, ...]] = (None, "recovery", "denied")


def check(lane: Lane) -> list[str]:
    """Everything that does not hold."""
    db = lane.db
    db.execute("begin")
    try:
        return list(_findings(db))
    finally:
        db.execute("rollback")


def _findings(db: sqlite3.Connection) -> Iterator[str]:
    for (text,) in db.execute("pragma integrity_check"):
        if text != "ok":
            yield f"SQLite: {text}"
    for table, rowid, parent, _ in db.execute("pragma foreign_key_check"):
        yield f"row {rowid} of {table} belongs to no row of {parent}"
    yield from _actions(db)
    yield from _sessions(db)
    yield from _orphans(db)
    yield from _keys(db)
    yield from _tokens(db)
    yield from _counters(db)


# --- Actions --------------------------------------------------------------------------------


def _actions(db: sqlite3.Connection) -> Iterator[str]:
    logs = db.execute(
        "select action, number, type, state, attempt, sequence, kind, at_ms, data from events"
        " where action is not null order by action, number"
    )
    receipts = db.execute(
        "select action, number, kind, at_ms, content, previous, digest from receipts"
        " order by action, number"
    )
    log_of = _Groups(logs)
    receipts_of = _Groups(receipts)
    for row in db.execute(f"{rows.RECORD} order by a.n"):
        action = rows.stored(row)
        name = action.record.action_id
        for fault in (
            *_log(action, log_of.of(row[0])),
            *_receipts(action, receipts_of.of(row[0])),
            *_state(action),
        ):
            yield f"{name}: {fault}"


class _Groups:
    """Rows grouped by their first column, asked for in rising order."""

    def __init__(self, found: Iterator[Any]) -> None:
        self._groups = groupby(found, key=itemgetter(0))
        self._ahead: tuple[int, list[Any]] | None = None

    def of(self, n: int) -> list[Any]:
        while self._ahead is None or self._ahead[0] < n:
            group = next(self._groups, None)
            if group is None:
                return []
            self._ahead = (group[0], list(group[1]))
        return self._ahead[1] if self._ahead[0] == n else []


def _log(action: Stored, log: list[Any]) -> Iterator[str]:
    record = action.record
    if [row[1] for row in log] != list(range(1, len(log) + 1)):
        yield "its events have gaps"
    if record.cursor != f"a{len(log)}":
        yield f"it counts {record.cursor[1:]} events and has {len(log)}"
    states = [(ActionState(row[3]), row[4]) for row in log if row[2] == "state"]
    if not states or states[0][0] is not ActionState.ACCEPTED:
        yield "its log does not begin with its acceptance"
        return
    for (old, before), (new, after) in pairwise(states):
        added = [again for reason in _REASONS if (again := _legal(old, new, reason)) is not None]
        if not added:
            yield f"its log goes from {old} to {new}"
        elif after != before + added[0]:
            yield f"attempt {before} became {after} from {old} to {new}"
    if states[-1] != (record.state, record.attempt):
        yield f"it is {record.state} and its log says {states[-1][0]}"
    yield from _chunks(action, [row for row in log if row[5] is not None])


def _legal(old: ActionState, new: ActionState, reason: MoveReason | None) -> int | None:
    try:
        return check_move(old, new, reason)
    except ExecutaError:
        return None


def _chunks(action: Stored, log: list[Any]) -> Iterator[str]:
    record = action.record
    last: Chunk | None = None
    try:
        for _, _, _, _, attempt, sequence, kind, at_ms, data in log:
            chunk = Chunk(
                record.action_id, sequence, attempt, ChunkKind(kind), at_ms, Raw(data.encode())
            )
            check_append(last, chunk)
            last = chunk
    except ExecutaError as fault:
        yield str(fault)
    if record.chunks != len(log):
        yield f"it counts {record.chunks} chunks and has {len(log)}"
    ended = last is not None and last.kind is ChunkKind.END
    if ended != (record.state in TERMINAL):
        yield f"it is {record.state} and its chunks have {'an' if ended else 'no'} end"


def _receipts(action: Stored, found: list[Any]) -> Iterator[str]:
    record = action.record
    chain = [Receipt(record.action_id, row[1], ReceiptKind(row[2]), *row[3:]) for row in found]
    try:
        check_chain(chain)
    except ExecutaError as fault:
        yield str(fault)
    kinds = [receipt.kind for receipt in chain]
    if kinds[:1] != [ReceiptKind.ACCEPTANCE] or kinds.count(ReceiptKind.ACCEPTANCE) != 1:
        yield "its receipts do not begin with its acceptance"
    outcomes = kinds.count(ReceiptKind.OUTCOME)
    if outcomes != (record.state in TERMINAL) or (outcomes and kinds[-1] != ReceiptKind.OUTCOME):
        yield f"it is {record.state} and has {outcomes} receipts of an outcome"


def _state(action: Stored) -> Iterator[str]:
    record = action.record
    terminal = record.state in TERMINAL
    has_result = not isinstance(record.result, type(record.input)) if terminal else True
    if terminal != bool(record.ended_at_ms) or not has_result:
        yield f"it is {record.state} and its end or its result is missing"
    if (record.state is ActionState.DEAD_LETTERED) != bool(record.dead_letter):
        yield f"it is {record.state} and its letter does not fit"
    if record.cancellation:
        settled = isinstance(record.cancellation.outcome, CancelOutcome)
        if settled != terminal:
            yield f"it is {record.state} and its cancellation is {record.cancellation.outcome}"
    elif record.state in (ActionState.CANCELLING, ActionState.CANCELLED):
        yield f"it is {record.state} and nobody asked for it"
    undecided = isinstance(record.approval, Approval) and record.approval.status in (
        ApprovalStatus.REQUIRED,
        ApprovalStatus.REQUESTED,
    )
    if terminal and undecided:
        yield f"it is {record.state} and still waits for an approval"
    waiting = isinstance(record.approval, Approval) and record.approval.status in (
        ApprovalStatus.REQUESTED,
        ApprovalStatus.APPROVED,
    )
    if record.state is ActionState.PENDING_APPROVAL and not waiting:
        yield "it awaits an approval that nobody asked for"


# --- Sessions ---------------------------------------------------------------------------------


def _sessions(db: sqlite3.Connection) -> Iterator[str]:
    for row in db.execute(f"{rows.SESSION} order by n").fetchall():
        record = rows.session(row)
        n, events, floor, tally = row[0], row[8], row[9], rows.tally_of(row[10])
        numbers = [
            number
            for (number,) in db.execute(
                "select session_number from events where session = ? and session_number > ?"
                " order by session_number",
                (n, floor),
            )
        ]
        if numbers != list(range(floor + 1, events + 1)):
            yield f"{record.session_id}: its events have gaps"
        counted = dict(
            db.execute(
                "select state, count(*) from actions where session = ? and ended_ms is null"
                " group by state",
                (n,),
            )
        )
        if counted != tally:
            yield f"{record.session_id}: it counts {tally} and has {counted}"
        yield from (f"{record.session_id}: {fault}" for fault in _walk(db, n, record.state, tally))


def _walk(
    db: sqlite3.Connection, n: int, state: SessionState, tally: dict[str, int]
) -> Iterator[str]:
    path = [
        SessionState(text)
        for (text,) in db.execute(
            "select state from events where session = ? and type = 'session'"
            " order by session_number",
            (n,),
        )
    ]
    for old, new in pairwise(path):
        try:
            sessions.check_move(old, new)
        except ExecutaError as fault:
            yield str(fault)
    if path[-1:] != [state] or path[:1] != [SessionState.NEW]:
        yield f"it is {state} and its log says {path}"
    if state not in sessions.ENDED and state is not SessionState.NEW:
        shown = view(ActionState(each) for each in tally)
        if shown is not state:
            yield f"it shows {state} and its actions say {shown}"


# --- The rest -----------------------------------------------------------------------------------


_ORPHANS: Final = {
    "an event of no action": "select n from events where action is not null"
    " and action not in (select n from actions)",
    "an event of no session": "select n from events where session is not null"
    " and session not in (select n from sessions)",
    "an event of nothing": "select n from events where action is null and session is null",
    "an action of no session": "select n from actions where session is not null"
    " and session not in (select n from sessions)",
    "an action without its request": "select n from actions where n not in"
    " (select action from requests)",
}


def _orphans(db: sqlite3.Connection) -> Iterator[str]:
    for what, sql in _ORPHANS.items():
        for (n,) in db.execute(sql):
            yield f"{what}: {n}"


def _keys(db: sqlite3.Connection) -> Iterator[str]:
    for key, action_id, forget_ms, there in db.execute(
        "select k.key, k.action_id, k.forget_ms, a.n is not null from idempotency_keys k"
        " left join actions a on a.action_id = k.action_id"
    ):
        if bool(there) != (forget_ms is None):
            yield f"key {key!r} of {action_id}: its action is {'there' if there else 'gone'}"
    for (action_id,) in db.execute(
        "select a.action_id from actions a join requests r on r.action = a.n"
        " where json_extract(r.terms, '$.idempotency_key') is not null"
        # A list: of a join SQLite would make a look at every key for every action.
        " and a.action_id not in (select action_id from idempotency_keys)"
    ):
        yield f"{action_id}: its key is not kept"


def _tokens(db: sqlite3.Connection) -> Iterator[str]:
    for chain, live in db.execute(
        "select chain, count(*) from resume_tokens where state = 'live' group by chain"
    ):
        if live != 1:
            yield f"a chain of resume tokens has {live} live ones: {chain}"
    for (chain,) in db.execute(
        "select distinct chain from resume_tokens t where state = 'revoked' and exists"
        " (select 1 from resume_tokens o where o.chain = t.chain and o.state <> 'revoked')"
    ):
        yield f"a chain of resume tokens is revoked in part: {chain}"


def _counters(db: sqlite3.Connection) -> Iterator[str]:
    counters = dict(db.execute("select name, value from counters"))
    for name, table in (("action", "actions"), ("event", "events"), ("session", "sessions")):
        sql = f"select coalesce(max(n), 0) from {table}"  # noqa: S608 - one of these three
        (highest,) = db.execute(sql).fetchone()
        if highest > counters[name]:
            yield f"counter {name} is at {counters[name]}, and {highest} is taken"
    (ended,) = db.execute("select count(*) from actions where ended_ms is not null").fetchone()
    if ended != counters["ended"]:
        yield f"counter ended is at {counters['ended']}, and {ended} actions have ended"
