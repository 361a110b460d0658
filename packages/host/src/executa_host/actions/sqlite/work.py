"""What one transaction gathers before it writes it: numbers, log rows, receipts, sessions.

Owns the order of a log and the counters that it takes its numbers from, in the same
transaction (R-51). `accepts`, `moves` and `singles` fill it, `write` empties it.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from executa_host.actions.crashpoints import point
from executa_host.actions.operations import Attested, Decided, Operation, Piece, Step
from executa_host.actions.sqlite import values
from executa_host.actions.sqlite.rows import json_text, tally_of
from executa_host.actions.sqlite.values import Row
from executa_host.actions.store import end_of
from executa_protocol.actions import TERMINAL, ActionState
from executa_protocol.receipts import NO_PREDECESSOR, digest
from executa_protocol.sessions import ENDED, SessionState, check_move, view

Numbered = tuple[int, Operation[Any]]
"""An operation with its id."""

_MOVED: Final = "n, action, number, at_ms, type, attempt, state"
_APPENDED: Final = "n, action, number, at_ms, type, attempt, sequence, kind, data"
_IN_SESSION: Final = ", session, session_number"
_WHY: Final = ", reason"
_OF_SESSION: Final = "n, session, session_number, at_ms, type, state"
_RECEIPTS: Final = (
    "insert into receipts (action, number, kind, at_ms, content, previous, digest, attested) values"
)
_CALLBACKS: Final = "insert into callbacks (n, action, kind, url, created_ms, next_ms) values"


class SessionLog(Struct):
    """A session while its log grows: its row, and how many open actions are in which state."""

    n: int
    session_id: str
    state: SessionState
    events: int
    tally: dict[str, int]
    updated_ms: int = 0

    @property
    def ended(self) -> bool:
        """Whether it was closed."""
        return self.state in ENDED

    def number(self) -> int:
        """The next number of its log."""
        self.events += 1
        return self.events

    def count(self, old: ActionState | None, new: ActionState) -> list[SessionState]:
        """One of its actions went from `old` to `new`: what the session shows one after the other.

        A closed session shows how it was closed, whatever its actions still do.
        """
        if old is not None:
            self._add(old, -1)
        if new not in TERMINAL:
            self._add(new, 1)
        shown = view(ActionState(state) for state in self.tally)
        if self.ended or shown is self.state:
            return []
        path = [shown]
        if self.state is SessionState.NEW and shown is not SessionState.ACTIVE:
            path = [SessionState.ACTIVE, shown]
        for state in path:
            check_move(self.state, state)
            self.state = state
        return path

    def _add(self, state: ActionState, by: int) -> None:
        left = self.tally.get(state, 0) + by
        if left:
            self.tally[state] = left
        else:
            self.tally.pop(state, None)


class Logged(Struct):
    """An action whose log grows: its key, and the last numbers that its log has used."""

    n: int
    action_id: str
    state: ActionState
    attempt: int
    number: int = 0
    sequence: int = 0
    session: SessionLog | None = None


class Work:
    """One transaction's rows, and the answers of its operations by their ids."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.answers: dict[int, Any] = {}
        self.touched: set[str] = set()
        self.callbacks = False
        self._numbers: dict[str, int] = dict(db.execute("select name, value from counters"))
        self._written = dict(self._numbers)
        self._sessions: dict[str, SessionLog | None] = {}
        self._events = values.Rows("events")
        self._receipts: list[tuple[int, str, int, tuple[Attested, ...], bool]] = []
        self._callbacks: list[Row] = []

    def take_number(self, counter: str) -> int:
        """The next number of a counter row."""
        self._numbers[counter] += 1
        return self._numbers[counter]

    def number(self, counter: str) -> int:
        """Where a counter is."""
        return self._numbers[counter]

    def add(self, counter: str, by: int) -> None:
        """Count up or down."""
        self._numbers[counter] += by

    # --- Sessions ---------------------------------------------------------------------------

    def load_sessions(self, ids: Iterable[str]) -> None:
        """Read the sessions that this transaction will touch."""
        missing = {each for each in ids if each} - self._sessions.keys()
        if not missing:
            return
        sql = (
            "select n, session_id, state, events, tally from sessions"
            " where session_id in (select value from json_each(?))"
        )
        self._sessions.update(dict.fromkeys(missing))
        for n, session_id, state, events, tally in self.db.execute(sql, (json_text(missing),)):
            self._sessions[session_id] = SessionLog(
                n, session_id, SessionState(state), events, tally_of(tally)
            )

    def session(self, session_id: str) -> SessionLog | None:
        """One that was loaded; None for none, and for one that is not there."""
        return self._sessions.get(session_id) if session_id else None

    def session_moved(
        self, log: SessionLog, state: SessionState, at_ms: int, why: str = ""
    ) -> None:
        """Log that a session is now in `state`."""
        log.updated_ms = at_ms
        self.touched.add(log.session_id)
        n = self.take_number("event")
        row = (n, log.n, log.number(), at_ms, "session", str(state))
        if why:
            self._events.add(_OF_SESSION + _WHY, (*row, why))
        else:
            self._events.add(_OF_SESSION, row)

    # --- Actions ------------------------------------------------------------------------------

    def log(self, action: Logged, steps: Sequence[Step], at_ms: int, why: str = "") -> None:
        """Log steps in order, in the action's log and its session's."""
        self.touched.add(action.action_id)
        session = action.session
        for step in steps:
            shows: Sequence[SessionState] = ()
            if isinstance(step, Piece):
                action.sequence += 1
                data = bytes(step.data).decode()
                columns = _APPENDED
                tail: Row = ("chunk", action.attempt, action.sequence, str(step.kind), data)
            elif isinstance(step, Decided):
                columns, tail = _MOVED, ("approval", action.attempt, str(step.status))
            else:
                old = None if action.number == 0 else action.state
                if step is ActionState.QUEUED and old not in (None, ActionState.ACCEPTED):
                    action.attempt += 1
                if session is not None:
                    shows = session.count(old, step)
                action.state = step
                if step in TERMINAL:
                    self.touched.add(end_of(action.action_id))
                columns, tail = _MOVED, ("state", action.attempt, str(step))
                if why:
                    columns, tail = columns + _WHY, (*tail, why)
            action.number += 1
            row = (self.take_number("event"), action.n, action.number, at_ms, *tail)
            if session is None:
                self._events.add(columns, row)
                continue
            session.updated_ms = at_ms
            self.touched.add(session.session_id)
            self._events.add(columns + _IN_SESSION, (*row, session.n, session.number()))
            for state in shows:
                self.session_moved(session, state, at_ms)

    def attest(
        self, action: Logged, at_ms: int, attested: tuple[Attested, ...], *, first: bool = False
    ) -> None:
        """Issue receipts; `first` if the action has none yet."""
        if attested:
            self._receipts.append((action.n, action.action_id, at_ms, attested, first))

    def call_back(self, action: Logged, kind: str, url: str, at_ms: int) -> None:
        """Have a callback delivered."""
        self.callbacks = True
        n = self.take_number("callback")
        self._callbacks.append((n, action.n, kind, url, at_ms, at_ms))

    # --- Writing ------------------------------------------------------------------------------

    def write(self) -> None:
        """Write everything gathered so far."""
        self._events.write(self.db)
        if self._receipts:
            values.run(self.db, _RECEIPTS, "", self._issue())
        if self._callbacks:
            values.run(self.db, _CALLBACKS, "", self._callbacks)
        for log in self._sessions.values():
            if log is not None:
                self.write_session(log)
        for name, value in self._numbers.items():
            if value != self._written.get(name):
                self.db.execute("update counters set value = ? where name = ?", (value, name))
        self._written = dict(self._numbers)
        self._receipts, self._callbacks = [], []
        point("batch.logged")

    def write_session(self, log: SessionLog) -> None:
        """Write what a session shows, if its log has grown."""
        if log.updated_ms:
            self.db.execute(
                "update sessions set state = ?, events = ?, tally = ?, updated_ms = ? where n = ?",
                (log.state, log.events, json_text(log.tally), log.updated_ms, log.n),
            )

    def _issue(self) -> list[Row]:
        older = [each[0] for each in self._receipts if not each[4]]
        heads = self._heads(older) if older else {}
        rows: list[Row] = []
        for n, action_id, at_ms, attested, _ in self._receipts:
            number, previous = heads.get(n, (0, NO_PREDECESSOR))
            for each in attested:
                number += 1
                others = (number, str(each.kind), at_ms, each.content, previous)
                previous = digest((action_id, *others))
                rows.append((n, *others, previous, each.text.decode()))
            heads[n] = number, previous
        return rows

    def _heads(self, actions: list[int]) -> dict[int, tuple[int, str]]:
        """Number and digest of each action's latest receipt: max() gives the rest of its row."""
        sql = (
            "select action, max(number), digest from receipts"
            " where action in (select value from json_each(?)) group by action"
        )
        found = self.db.execute(sql, (json_text(actions),))
        return {n: (number, digest) for n, number, digest in found}
