"""`SqliteStore`: the file, its lock, one writer and the readers beside it."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from executa_host.actions.interface import ActionPage, EventPage, SessionPage
from executa_host.actions.limits import READERS
from executa_host.actions.operations import Operation, Stored
from executa_host.actions.records import ChunkRecord, ReceiptRecord, SessionRecord
from executa_host.actions.requests import ActionQuery, SessionQuery
from executa_host.actions.settings import Synchronous
from executa_host.actions.sqlite import checks, lane, queries, rows, writer
from executa_host.actions.sqlite.backup import back_up
from executa_host.actions.sqlite.lane import Lane
from executa_host.actions.sqlite.lockfile import FileLock
from executa_host.actions.sqlite.migrate import migrate, migrations
from executa_host.actions.sqlite.private import make_private
from executa_host.actions.sqlite.writer import Writer
from executa_host.actions.store import Counts, Delivery, Marker, StoreBroken, Transaction, Viewer
from executa_host.actions.wakeups import Wakeups

P = ParamSpec("P")
T = TypeVar("T")


class SqliteStore:
    """A `Store` in one SQLite file.

    ::

        async with await SqliteStore.open(Path("actions.db")) as store:
            ...
    """

    def __init__(self, path: Path, lock: FileLock, writing: Lane, readers: Sequence[Lane]) -> None:
        """Use `SqliteStore.open`."""
        self.path = path
        self._lock = lock
        self._writing = writing
        self._readers = tuple(readers)
        self._next_reader = itertools.cycle(self._readers)
        self._wakeups = Wakeups()
        self._writer = Writer(writing, self._wakeups)
        self._closed = False

    @classmethod
    async def open(
        cls, path: Path, *, synchronous: Synchronous = "FULL", readers: int = READERS
    ) -> Self:
        """Open the file, made if it is not there and brought to the newest form.

        Raises `StoreLocked`, `StoreTooNew`, `StoreForeign` and `StoreError`; nothing is left
        open then, and a file that is not ours is as it was.
        """
        path = await asyncio.to_thread(path.absolute)
        lock = FileLock(path)
        lock.acquire()
        lanes: list[Lane] = []
        try:
            make_private(path)
            await lane.inspect(path, len(migrations()))
            lanes.append(await lane.writer(path, synchronous))
            await lanes[0].run(_migrate, lanes[0])
            for _ in range(readers):
                lanes.append(await lane.reader(path))  # noqa: PERF401 - closed one by one if one fails
        except BaseException:
            for each in lanes:
                await each.close()
            lock.release()
            raise
        return cls(path, lock, lanes[0], lanes[1:])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """See `Store.close`."""
        if self._closed:
            return
        self._closed = True
        await self._writer.close()
        for each in (*self._readers, self._writing):  # the last one to close empties the log
            await each.close()
        self._lock.release()

    @property
    def pending_count(self) -> int:
        """Operations that wait and followers that watch; for the leak check."""
        return self._writer.pending_count + self._wakeups.pending_count

    # --- Writing --------------------------------------------------------------------------------

    async def apply(self, operation: "Operation[T]") -> T:
        """See `Store.apply`."""
        return await self._writer.apply(operation)

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """See `Store.transaction`."""
        return self._writer.transaction()

    def watch(self, subject: str) -> AbstractContextManager[asyncio.Event]:
        """See `Store.watch`."""
        return self._wakeups.watch(subject)

    def ring_all(self) -> None:
        """See `Store.ring_all`."""
        self._wakeups.ring_all()

    # --- Reading --------------------------------------------------------------------------------

    async def _read(
        self, query: Callable[Concatenate[Lane, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self._closed:
            msg = "the store is closed"
            raise StoreBroken(msg)
        reader = next(self._next_reader)
        return await reader.run(query, reader, *args, **kwargs)

    async def action(self, action_id: str, *, input: bool = False) -> Stored | Marker | None:  # noqa: A002
        """See `Store.action`."""
        select = rows.WHOLE if input else rows.RECORD
        return await self._read(writer.find_action, action_id, select)

    async def actions(self, query: ActionQuery, viewer: Viewer) -> ActionPage:
        """See `Store.actions`."""
        return await self._read(queries.actions, query, viewer)

    async def open_actions(self, after: str = "", limit: int = 500) -> Sequence[Stored]:
        """See `Store.open_actions`."""
        return await self._read(queries.open_actions, after, limit)

    async def chunks(self, action_id: str, after: int, limit: int) -> Sequence[ChunkRecord]:
        """See `Store.chunks`."""
        return await self._read(queries.chunks, action_id, after, limit)

    async def receipts(self, action_id: str) -> Sequence[ReceiptRecord]:
        """See `Store.receipts`."""
        return await self._read(queries.receipts, action_id)

    async def events(self, subject: str, after: str, limit: int) -> EventPage:
        """See `Store.events`."""
        return await self._read(queries.events, subject, after, limit)

    async def session(self, session_id: str) -> SessionRecord | Marker | None:
        """See `Store.session`."""
        return await self._read(writer.find_session, session_id)

    async def sessions(self, query: SessionQuery, viewer: Viewer) -> SessionPage:
        """See `Store.sessions`."""
        return await self._read(queries.sessions, query, viewer)

    async def deliveries(self, due_ms: int, limit: int) -> Sequence[Delivery]:
        """See `Store.deliveries`."""
        return await self._read(queries.deliveries, due_ms, limit)

    async def next_delivery_ms(self) -> int | None:
        """See `Store.next_delivery_ms`."""
        return await self._read(queries.next_delivery_ms)

    async def counts(self) -> Counts:
        """See `Store.counts`."""
        return await self._read(queries.counts)

    async def check(self) -> list[str]:
        """See `Store.check`."""
        return await self._read(checks.check)

    async def backup(self, target: Path) -> None:
        """See `Store.backup`."""
        await self._read(back_up, target)


def _migrate(writing: Lane) -> None:
    migrate(writing.db, migrations())
