"""Rows as records and back.

Owns which column becomes which member. Cursors are ``a`` and a number for an action's log,
``s`` and a number for a session's: one of the wrong log is noticed.
"""

# ruff: noqa: S608 - what is put together here are constants; values are bound

import sqlite3
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from executa_host.actions.operations import Stored, Terms
from executa_host.actions.records import (
    ActionError,
    ActionRecord,
    ActionResult,
    ActionState,
    Approval,
    Cancellation,
    ChunkRecord,
    DeadLetter,
    EventRecord,
    ReceiptRecord,
    SessionRecord,
    SessionState,
)
from executa_host.actions.sqlite.values import Row
from executa_host.actions.store import Marker
from executa_protocol.chunks import ChunkKind
from executa_protocol.receipts import ReceiptKind

S = TypeVar("S", bound=Struct)

_ENCODER = msgspec.json.Encoder()
_TERMS = msgspec.json.Decoder(Terms)
_APPROVAL = msgspec.json.Decoder(Approval)
_CANCELLATION = msgspec.json.Decoder(Cancellation)
_DEAD_LETTER = msgspec.json.Decoder(DeadLetter)
_ERROR = msgspec.json.Decoder(ActionError)
_RESULT = msgspec.json.Decoder(ActionResult)
_TALLY = msgspec.json.Decoder(dict[str, int])
_NAMES = msgspec.json.Decoder(tuple[str, ...])


def text(value: Struct | UnsetType) -> str | None:
    """A struct as JSON text; None, which leaves a column as it is, for UNSET."""
    return None if value is UNSET else _ENCODER.encode(value).decode()


def json_text(value: Any) -> str:
    """Any value as JSON text."""
    return _ENCODER.encode(value).decode()


def raw(value: str) -> Raw:
    """JSON text as it was given."""
    return Raw(value.encode())


def _read(decoder: "msgspec.json.Decoder[S]", value: str | None) -> S | UnsetType:
    return UNSET if value is None else decoder.decode(value)


def tally_of(value: str) -> dict[str, int]:
    """A session's count of open actions by state."""
    return _TALLY.decode(value)


# --- Actions ------------------------------------------------------------------------------

STORED: Final = """
    select a.n, a.action_id, a.capability, a.state, a.tenant, a.principal, a.subject,
        a.accepted_ms, a.updated_ms, a.events, s.session_id, a.attempt, a.chunks,
        a.expires_ms, a.not_before_ms, a.started_ms, a.ended_ms, a.approval,
        a.cancellation, a.dead_letter, a.last_error, a.fence, r.terms,
        s.initiator, s.responder, {result}, {input}
    from actions a join requests r on r.action = a.n left join sessions s on s.n = a.session
"""

WHOLE: Final = STORED.format(result="a.result", input="r.input")
RECORD: Final = STORED.format(result="a.result", input="null")
LISTED: Final = STORED.format(result="null", input="null")


def stored(row: Row) -> Stored:
    """A row of `STORED`."""
    terms = _TERMS.decode(row[22])
    record = ActionRecord(
        action_id=row[1],
        capability=row[2],
        state=ActionState(row[3]),
        mode=terms.mode,
        tenant=row[4],
        principal=row[5],
        subject=row[6],
        effect=terms.effect,
        accepted_at_ms=row[7],
        updated_at_ms=row[8],
        cursor=f"a{row[9]}",
        session_id=row[10] or "",
        attempt=row[11],
        max_attempts=terms.max_attempts,
        chunks=row[12],
        timeout_ms=terms.timeout_ms,
        expires_at_ms=row[13],
        not_before_ms=row[14],
        started_at_ms=row[15] or 0,
        ended_at_ms=row[16] or 0,
        idempotency_key=terms.idempotency_key,
        input_digest=terms.input_digest,
        input=UNSET if row[26] is None else raw(row[26]),
        context=terms.context,
        callback=terms.callback,
        delegation=terms.delegation,
        app=terms.app,
        transaction=terms.transaction,
        approval=_read(_APPROVAL, row[17]),
        cancellation=_read(_CANCELLATION, row[18]),
        dead_letter=_read(_DEAD_LETTER, row[19]),
        last_error=_read(_ERROR, row[20]),
        redrive_of=terms.redrive_of,
        result=_read(_RESULT, row[25]),
    )
    parties = () if row[23] is None else (row[23], row[24])
    return Stored(record=record, fence=row[21], terms=terms, parties=parties)


def find_action(db: sqlite3.Connection, action_id: str, select: str = RECORD) -> Stored | None:
    """One action by its id."""
    row = db.execute(f"{select} where a.action_id = ?", (action_id,)).fetchone()
    return None if row is None else stored(row)


def find_actions(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, Stored]:
    """Actions by their ids; those that are not there are left out."""
    sql = f"{RECORD} where a.action_id in (select value from json_each(?))"
    found = [stored(row) for row in db.execute(sql, (json_text(list(ids)),))]
    return {each.record.action_id: each for each in found}


def find_marker(db: sqlite3.Connection, identity: str) -> Marker | None:
    """What retention left of an id."""
    sql = "select tenant, principals, removed_ms from removed where identity = ?"
    row = db.execute(sql, (identity,)).fetchone()
    if row is None:
        return None
    return Marker(
        identity=identity,
        tenant=row[0],
        principals=_NAMES.decode(row[1]),
        removed_at_ms=row[2],
    )


# --- Sessions -------------------------------------------------------------------------------

SESSION: Final = """
    select n, session_id, tenant, initiator, responder, label, state, outcome, events, floor,
        tally, created_ms, updated_ms, ended_ms
    from sessions
"""


def session(row: Row) -> SessionRecord:
    """A row of `SESSION`."""
    return SessionRecord(
        session_id=row[1],
        tenant=row[2],
        initiator=row[3],
        responder=row[4],
        label=row[5],
        state=SessionState(row[6]),
        outcome=row[7] or "",
        cursor=f"s{row[8]}",
        floor=f"s{row[9]}",
        open_actions=sum(tally_of(row[10]).values()),
        created_at_ms=row[11],
        updated_at_ms=row[12],
        ended_at_ms=row[13] or 0,
    )


def find_session(db: sqlite3.Connection, session_id: str) -> SessionRecord | None:
    """One session by its id."""
    row = db.execute(f"{SESSION} where session_id = ?", (session_id,)).fetchone()
    return None if row is None else session(row)


# --- Logs -------------------------------------------------------------------------------------

EVENT: Final = """
    select {number}, e.type, e.at_ms, a.action_id, s.session_id, e.state, e.reason, e.attempt,
        e.sequence, e.kind, e.data
    from events e left join actions a on a.n = e.action left join sessions s on s.n = e.session
"""


def event(row: Row, log: str) -> EventRecord:
    """A row of `EVENT`; `log` is ``a`` or ``s``, the number that the row begins with."""
    chunk: ChunkRecord | UnsetType = UNSET
    if row[8] is not None:
        chunk = ChunkRecord(row[3], row[8], row[7], ChunkKind(row[9]), row[2], raw(row[10]))
    return EventRecord(
        cursor=f"{log}{row[0]}",
        type=row[1],
        at_ms=row[2],
        action_id=row[3] or "",
        session_id=row[4] or "",
        state=row[5] or "",
        reason=row[6] or "",
        attempt=row[7] or 0,
        chunk=chunk,
    )


RECEIPT: Final = """
    select a.action_id, r.number, r.kind, r.at_ms, r.content, r.previous, r.digest, r.attested
    from receipts r join actions a on a.n = r.action
"""


def receipt(row: Row) -> ReceiptRecord:
    """A row of `RECEIPT`."""
    return ReceiptRecord(
        row[0], row[1], ReceiptKind(row[2]), row[3], row[4], row[5], row[6], raw(row[7])
    )
