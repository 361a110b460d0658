"""A batch of operations in one transaction, or, if that fails, each in one of its own.

Runs on the writer's thread. Whatever fails here fails for its own caller only, except when
the disk itself does: then nobody knows what it holds, and the store is broken.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from executa_host.actions.crashpoints import point, points
from executa_host.actions.faults import ActionsError
from executa_host.actions.operations import (
    Accept,
    Attach,
    CallbackTried,
    CloseSession,
    Move,
    OpenSession,
    Operation,
    Prune,
    Rotate,
    Settle,
)
from executa_host.actions.sqlite import session_writes
from executa_host.actions.sqlite.accepts import accept, redrive
from executa_host.actions.sqlite.moves import move
from executa_host.actions.sqlite.retention import prune
from executa_host.actions.sqlite.work import Numbered, Work
from executa_host.actions.store import StoreBroken
from executa_protocol.errors import UsageError


class Applied(Struct):
    """What a batch gave: an answer or an exception for each operation id; whose logs grew."""

    answers: dict[int, Any]
    touched: set[str]
    callbacks: bool = False


def _callback_tried(work: Work, op: CallbackTried) -> None:
    work.db.execute(
        "update callbacks set attempts = attempts + 1, next_ms = ?, error = ?,"
        " done_ms = case when ? then null else ? end where n = ?",
        (op.next_at_ms or None, op.error or None, op.next_at_ms, op.at_ms, op.delivery),
    )


_SINGLE: Final[dict[type, Callable[[Work, Any], Any]]] = {
    OpenSession: session_writes.open_session,
    Attach: session_writes.attach,
    Rotate: session_writes.rotate,
    CloseSession: session_writes.close,
    Settle: session_writes.settle,
    CallbackTried: _callback_tried,
    Prune: prune,
}


def apply(db: sqlite3.Connection, operations: Sequence[Numbered]) -> Applied:
    """Apply operations in the transaction that is open.

    Raises what SQLite raises; then the transaction must be rolled back.
    """
    work = Work(db)
    point("batch.begun")
    accepts = [(op, each) for op, each in operations if isinstance(each, Accept)]
    plain = [(op, each) for op, each in accepts if not each.terms.redrive_of]
    if plain:
        accept(work, plain)
    moves = [(op, each) for op, each in operations if isinstance(each, Move)]
    if moves:
        move(work, moves)
    work.write()
    for op, each in operations:
        if op not in work.answers:
            _apply_single(work, op, each)
            work.write()  # the next one must find it
    points((each.step for _, each in operations), "written")
    return Applied(work.answers, work.touched, work.callbacks)


def _apply_single(work: Work, op: int, operation: Operation[Any]) -> None:
    try:
        if isinstance(operation, Accept):
            redrive(work, op, operation)
        else:
            work.answers[op] = _SINGLE[type(operation)](work, operation)
    except ActionsError as refusal:
        work.answers[op] = refusal


def commit(db: sqlite3.Connection, operations: Sequence[Numbered]) -> Applied:
    """Apply operations and make them durable; never raises but `StoreBroken`."""
    try:
        db.execute("begin immediate")
        applied = apply(db, operations)
        db.execute("commit")
    except Exception as fault:  # noqa: BLE001 - whatever it is belongs to one of the callers
        _roll_back(db, fault)
        if len(operations) == 1:
            return Applied({operations[0][0]: fault}, set())
        return _singly(db, operations)
    points((each.step for _, each in operations), "committed")
    return applied


def _singly(db: sqlite3.Connection, operations: Sequence[Numbered]) -> Applied:
    whole = Applied({}, set())
    for each in operations:
        one = commit(db, [each])
        whole.answers.update(one.answers)
        whole.touched |= one.touched
        whole.callbacks = whole.callbacks or one.callbacks
    return whole


_FATAL: Final = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PRIMARY: Final = 0xFF


def _roll_back(db: sqlite3.Connection, fault: Exception) -> None:
    if isinstance(fault, sqlite3.Error):
        code = getattr(fault, "sqlite_errorcode", 0) & _PRIMARY
        if code in _FATAL:
            # After a failed sync the pages in memory say nothing about those on the disk.
            msg = f"the disk failed ({fault}); nothing is accepted until the store is opened anew"
            raise StoreBroken(msg) from fault
    try:
        if db.in_transaction:
            db.execute("rollback")
    except sqlite3.Error as worse:
        msg = f"a transaction could not be undone: {worse}"
        raise StoreBroken(msg) from fault


def unwrap(answer: Any) -> Any:
    """An operation's answer, or raise what it holds instead."""
    if isinstance(answer, Exception):
        if isinstance(answer, sqlite3.Error):
            msg = f"the store could not hold this: {answer}"
            raise UsageError(msg) from answer
        raise answer
    return answer
