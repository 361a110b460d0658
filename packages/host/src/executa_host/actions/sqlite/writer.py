"""The one writer: many waiting callers, one transaction (group commit).

Owns the queue in front of the writing lane. While one batch is on the disk the next one
gathers; a caller is answered once its batch is durable. A batch holds at most one operation
of an action: what comes second must see what the first one did.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

from msgspec import Struct

from executa_host.actions.crashpoints import points
from executa_host.actions.limits import BATCH_BYTES, BATCH_OPERATIONS
from executa_host.actions.operations import Accept, AnyOperation, Move, Operation, Stored
from executa_host.actions.records import SessionRecord
from executa_host.actions.sqlite import batch, rows
from executa_host.actions.sqlite.batch import Applied
from executa_host.actions.sqlite.lane import Lane
from executa_host.actions.sqlite.work import Numbered
from executa_host.actions.store import CALLBACKS, Marker, StoreBroken
from executa_host.actions.validation import validate
from executa_host.actions.wakeups import Wakeups

T = TypeVar("T")

_log = logging.getLogger(__name__)


class _Waiting(Struct):
    op: int
    operation: AnyOperation
    size: int
    answer: "asyncio.Future[Any]"


class Writer:
    """Applies operations on `lane` and rings the bells of what they changed."""

    def __init__(self, lane: Lane, wakeups: Wakeups) -> None:
        self._lane = lane
        self._wakeups = wakeups
        self._queue: deque[_Waiting] = deque()
        self._arrived = asyncio.Event()
        self._turn = asyncio.Lock()
        self._count = 0
        self._closing = False
        self._broken: StoreBroken | None = None
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run())

    @property
    def pending_count(self) -> int:
        """How many operations wait; for the leak check."""
        return len(self._queue)

    async def apply(self, operation: "Operation[T]") -> T:
        """See `Store.apply`."""
        self._check()
        size = validate(operation)  # type: ignore[arg-type] - all operations there are
        self._count += 1
        answer: asyncio.Future[T] = self._loop.create_future()
        self._queue.append(_Waiting(self._count, operation, size, answer))  # type: ignore[arg-type]
        self._arrived.set()
        return await answer

    @contextlib.asynccontextmanager
    async def transaction(self) -> "AsyncGenerator[OwnTransaction]":
        """See `Store.transaction`."""
        self._check()
        async with self._turn:
            own = OwnTransaction(self._lane)
            try:
                await self._lane.run(_begin, self._lane)
                yield own
            except BaseException:
                # Also what was begun for a caller that was cancelled meanwhile.
                await asyncio.shield(self._lane.run(_roll_back, self._lane))
                raise
            # A caller that is cancelled here cannot call it back, and followers are told.
            committing = asyncio.ensure_future(self._lane.run(_commit, self._lane, own.steps))
            committing.add_done_callback(lambda _: self._ring(own.applied))
            await asyncio.shield(committing)

    async def close(self) -> None:
        """Apply what waits, then end."""
        self._closing = True
        self._arrived.set()
        await asyncio.wait((self._task,))

    # --- The loop ----------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._queue:
                async with self._turn:
                    await self._commit_batch(self._take())
            if self._closing:
                return

    def _take(self) -> list[_Waiting]:
        """The next batch, in order; what is of an action that is in it already stays behind."""
        taken: list[_Waiting] = []
        behind: list[_Waiting] = []
        actions: set[str] = set()
        size = 0
        while self._queue and len(taken) < BATCH_OPERATIONS and size <= BATCH_BYTES:
            waiting = self._queue.popleft()
            if waiting.answer.cancelled():
                continue  # nobody waits, and nothing was done
            operation = waiting.operation
            if isinstance(operation, (Move, Accept)):
                if operation.action_id in actions:
                    behind.append(waiting)
                    continue
                actions.add(operation.action_id)
            size += waiting.size
            taken.append(waiting)
        self._queue.extendleft(reversed(behind))
        return taken

    async def _commit_batch(self, taken: list[_Waiting]) -> None:
        if not taken:
            return
        operations: list[Numbered] = [(waiting.op, waiting.operation) for waiting in taken]
        try:
            self._check_disk()
            applied = await self._lane.run(_commit_batch, self._lane, operations)
        except StoreBroken as fault:
            _log.critical("%s", fault)
            self._broken = fault
            applied = Applied(dict.fromkeys((op for op, _ in operations), fault), set())
        for waiting in taken:
            if not waiting.answer.done():
                _settle(waiting.answer, applied.answers.get(waiting.op))
        self._ring(applied)

    def _ring(self, applied: Applied) -> None:
        self._wakeups.ring(applied.touched)
        if applied.callbacks:
            self._wakeups.ring((CALLBACKS,))

    def _check_disk(self) -> None:
        if self._broken is not None:
            raise self._broken

    def _check(self) -> None:
        self._check_disk()
        if self._closing:
            msg = "the store is closed"
            raise StoreBroken(msg)


class OwnTransaction:
    """See `Transaction`."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._count = 0
        self.applied = Applied({}, set())
        self.steps: list[str] = []

    async def apply(self, operation: "Operation[T]") -> T:
        """See `Transaction.apply`."""
        validate(operation)  # type: ignore[arg-type] - all operations there are
        self._count -= 1  # below zero: never the id of an operation of the queue
        applied = await self._lane.run(_apply, self._lane, [(self._count, operation)])
        self.steps.append(operation.step)
        self.applied.touched |= applied.touched
        self.applied.callbacks = self.applied.callbacks or applied.callbacks
        answer: T = batch.unwrap(applied.answers[self._count])
        return answer

    async def action(self, action_id: str) -> Stored | Marker | None:
        """See `Transaction.action`."""
        return await self._lane.run(find_action, self._lane, action_id)

    async def session(self, session_id: str) -> SessionRecord | Marker | None:
        """See `Transaction.session`."""
        return await self._lane.run(find_session, self._lane, session_id)


def find_action(lane: Lane, action_id: str, select: str = rows.RECORD) -> Stored | Marker | None:
    """An action, or what retention left of it."""
    found = rows.find_action(lane.db, action_id, select)
    return rows.find_marker(lane.db, action_id) if found is None else found


def find_session(lane: Lane, session_id: str) -> SessionRecord | Marker | None:
    """A session, or what retention left of it."""
    found = rows.find_session(lane.db, session_id)
    return rows.find_marker(lane.db, session_id) if found is None else found


def _settle(future: "asyncio.Future[Any]", answer: Any) -> None:
    if not isinstance(answer, Exception):
        future.set_result(answer)
        return
    try:
        batch.unwrap(answer)
    except Exception as fault:  # noqa: BLE001 - handed to whoever waits
        future.set_exception(fault)


def _commit_batch(lane: Lane, operations: list[Numbered]) -> Applied:
    return batch.commit(lane.db, operations)


def _apply(lane: Lane, operations: list[Numbered]) -> Applied:
    return batch.apply(lane.db, operations)


def _begin(lane: Lane) -> None:
    lane.db.execute("begin immediate")


def _commit(lane: Lane, steps: list[str]) -> None:
    lane.db.execute("commit")
    points(steps, "committed")


def _roll_back(lane: Lane) -> None:
    if lane.db.in_transaction:
        lane.db.execute("rollback")
