"""Reading and following: records, results, logs (R-48, R-51, R-54).

Whoever follows reads the store after its cursor; bells only say that it is worth it.
"""

from collections.abc import AsyncIterator

import msgspec
from msgspec import UNSET

from executa_host.actions import access
from executa_host.actions.board import Board
from executa_host.actions.endings import result_of
from executa_host.actions.faults import Code, Invalid, NotFound, Unavailable
from executa_host.actions.interface import ActionPage, EventPage, Outcome
from executa_host.actions.operations import Stored
from executa_host.actions.records import ActionRecord, ActionView
from executa_host.actions.requests import ActionQuery, Caller, Include, Scope
from executa_host.actions.store import end_of
from executa_host.actions.timing import wait_for
from executa_protocol.actions import TERMINAL
from executa_protocol.ids import is_action_id, is_session_id
from executa_protocol.limits import QUERY_DEFAULT, QUERY_MAX, WAIT_MAX


def check_limit(limit: int) -> None:
    """Raise `Invalid` OUT_OF_RANGE unless a query may be this large (R-48)."""
    if not 1 <= limit <= QUERY_MAX:
        msg = f"limit: {limit} is not from 1 to {QUERY_MAX}"
        raise Invalid(Code.OUT_OF_RANGE, msg, path="$.limit")


def check_wait(wait: float) -> None:
    """Raise `Invalid` OUT_OF_RANGE unless a wait may be this long (R-48)."""
    if not 0 <= wait <= WAIT_MAX:
        msg = f"wait: {wait:g} is not from 0 to {WAIT_MAX:g} seconds"
        raise Invalid(Code.OUT_OF_RANGE, msg, path="$.wait")


class Feeds:
    """Reads."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._store = board.store

    async def get(
        self, caller: Caller, action_id: str, include: frozenset[Include]
    ) -> ActionView | None:
        """See `Actions.get`."""
        access.require(caller, Scope.READ)
        if not is_action_id(action_id):
            return None
        found = await self._store.action(action_id, input=Include.INPUT in include)
        try:
            record = access.visible(caller, found, action_id).record
        except NotFound:
            return None
        view = ActionView(record if Include.RESULT in include else _without_result(record))
        if Include.CHUNKS in include:
            chunks = await self._store.chunks(action_id, 0, QUERY_MAX)
            view = ActionView(view.action, tuple(chunks))
        if Include.RECEIPTS in include:
            receipts = await self._store.receipts(action_id)
            view = ActionView(view.action, view.chunks, tuple(receipts))
        return view

    async def list(self, caller: Caller, query: ActionQuery) -> ActionPage:
        """See `Actions.list`."""
        access.require(caller, Scope.READ)
        check_limit(query.limit)
        return await self._store.actions(query, access.viewer(caller))

    async def result(self, caller: Caller, action_id: str, wait: float) -> Outcome:
        """See `Actions.result`."""
        access.require(caller, Scope.READ)
        check_wait(wait)
        with self._store.watch(end_of(action_id)) as bell:
            deadline = self._board.clock.monotonic() + wait
            while True:
                bell.clear()
                stored = access.visible(caller, await self._store.action(action_id), action_id)
                left = deadline - self._board.clock.monotonic()
                if stored.record.state in TERMINAL or left <= 0 or self._board.stopping:
                    return _outcome(stored)
                await wait_for(self._board.clock, bell, left)

    async def events(
        self, caller: Caller, subject: str, after: str, *, limit: int, wait: float
    ) -> EventPage:
        """See `Actions.events`."""
        access.require(caller, Scope.READ)
        check_limit(limit)
        check_wait(wait)
        with self._store.watch(subject) as bell:
            deadline = self._board.clock.monotonic() + wait
            await self._check_subject(caller, subject)
            while True:
                bell.clear()
                page = await self._read(caller, subject, after, limit)
                left = deadline - self._board.clock.monotonic()
                if page.events or page.ended or left <= 0 or self._board.stopping:
                    return page
                await wait_for(self._board.clock, bell, left)

    async def follow(
        self, caller: Caller, subject: str, after: str, heartbeat: float
    ) -> AsyncIterator[EventPage]:
        """See `Actions.follow`."""
        cursor = after
        while True:
            page = await self.events(caller, subject, cursor, limit=QUERY_DEFAULT, wait=heartbeat)
            if self._board.stopping and not page.events and not page.ended:
                raise Unavailable(Code.DRAINING, "the host is stopping; follow again later")
            yield page
            if page.ended:
                return
            cursor = page.cursor

    async def _read(self, caller: Caller, subject: str, after: str, limit: int) -> EventPage:
        try:
            return await self._store.events(subject, after, limit)
        except NotFound:
            # It was there a moment ago: retention took it, which is another answer.
            await self._check_subject(caller, subject)
            raise

    async def _check_subject(self, caller: Caller, subject: str) -> None:
        if is_action_id(subject):
            access.visible(caller, await self._store.action(subject), subject)
        elif is_session_id(subject):
            access.visible_session(caller, await self._store.session(subject), subject)
        else:
            raise NotFound(Code.UNKNOWN_ACTION, f"{subject[:64]!r} is no action and no session")


def _without_result(record: ActionRecord) -> ActionRecord:
    return msgspec.structs.replace(record, result=UNSET)


def _outcome(stored: Stored) -> Outcome:
    return Outcome(_without_result(stored.record), result_of(stored))
