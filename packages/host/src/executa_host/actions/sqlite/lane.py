"""A connection with a thread of its own, on which whole functions run.

aiosqlite takes one hop to its thread for each statement; a batch of twenty statements
would be on the way longer than at work. `Lane.run` takes one hop for all of them, and
what runs there is plain `sqlite3`. This module knows no table.
"""

import asyncio
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import aiosqlite

from executa_host.actions.limits import BUSY_MS, WAL_PAGES
from executa_host.actions.settings import Synchronous
from executa_host.actions.sqlite.migrate import check_version
from executa_host.actions.store import StoreError, StoreForeign, StoreTooNew

P = ParamSpec("P")
T = TypeVar("T")

OLDEST_SQLITE: Final = (3, 37, 0)
"""The first with strict tables; also needed: upserts, RETURNING and UPDATE FROM."""

_STATEMENTS_KEPT: Final = 256
_WRITER_CACHE_KIB: Final = 64 * 1024


class Lane(aiosqlite.Connection):
    """An aiosqlite connection that also runs whole functions on its thread."""

    stopped: "asyncio.Future[Any] | None" = None
    """Done once the thread has been told to end and is done with the loop."""

    def stop(self) -> "asyncio.Future[Any] | None":
        """See aiosqlite, which forgets this future when a connection cannot be opened."""
        self.stopped = super().stop()  # pyright: ignore[reportUnknownMemberType] - a bare Future
        return self.stopped

    async def run(self, work: "Callable[P, T]", *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` on the connection's thread; it finds the connection in its arguments."""
        execute: Any = getattr(self, "_execute")  # noqa: B009 - it has no types
        result: T = await execute(work, *args, **kwargs)
        return result

    @property
    def db(self) -> sqlite3.Connection:
        """The connection, for functions that `run` runs. Raises ValueError once it is closed."""
        return self._conn


async def writer(path: Path, synchronous: Synchronous) -> Lane:
    """The one lane that writes. Transactions are begun and ended by whoever runs on it."""
    return await _opened(partial(_open_writer, path, synchronous))


async def reader(path: Path) -> Lane:
    """A lane that cannot write."""
    return await _opened(partial(_open_reader, path))


async def _opened(connector: Callable[[], sqlite3.Connection]) -> Lane:
    lane = Lane(connector, iter_chunk_size=64)
    try:
        await lane  # opens it, and gives itself as the class that it inherits from
    except BaseException:
        if lane.stopped is not None:
            await lane.stopped  # or its thread would speak to a loop that may be closed by then
        raise
    return lane


async def inspect(path: Path, newest: int) -> int:
    """Look at a file before anything is written to it: how many steps it has had, 0 for none.

    Raises as `check_version`, with the path.
    """
    return await asyncio.to_thread(_inspect, path, newest)


def _inspect(path: Path, newest: int) -> int:
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return 0
    try:
        with closing(connect(path)) as db:
            return check_version(db, newest)
    except (StoreForeign, StoreTooNew) as fault:
        raise type(fault)(f"{path}: {fault}") from fault
    except sqlite3.Error as fault:
        raise StoreError(f"{path} cannot be opened: {fault}") from fault


def connect(path: Path) -> sqlite3.Connection:
    """A connection of this thread's own. Raises `StoreError` for an SQLite that is too old."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        msg = f"SQLite {sqlite3.sqlite_version} is too old for durable actions: {needed} or newer"
        raise StoreError(msg)
    db = sqlite3.connect(path, isolation_level=None, cached_statements=_STATEMENTS_KEPT)
    db.execute(f"pragma busy_timeout = {BUSY_MS}")
    return db


def _open_writer(path: Path, synchronous: Synchronous) -> sqlite3.Connection:
    db = connect(path)
    db.execute("pragma journal_mode = wal")
    db.execute(f"pragma synchronous = {synchronous}")
    if sys.platform == "darwin":  # its fsync stops at the drive's cache
        db.execute(f"pragma fullfsync = {int(synchronous == 'FULL')}")
        db.execute(f"pragma checkpoint_fullfsync = {int(synchronous == 'FULL')}")
    db.execute(f"pragma wal_autocheckpoint = {WAL_PAGES}")
    db.execute(f"pragma cache_size = -{_WRITER_CACHE_KIB}")
    db.execute("pragma foreign_keys = on")
    return db


def _open_reader(path: Path) -> sqlite3.Connection:
    db = connect(path)
    db.execute("pragma query_only = on")
    return db
