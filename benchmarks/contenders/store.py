"""Our embedded store, and the floor under every durable one: a write and its fdatasync."""

import asyncio
import itertools
import os
import tempfile
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Raw

from benchmarks.drivers.contender import Call, Options, Task
from benchmarks.model import WrongAnswer
from executa_host.actions import receipting
from executa_host.actions.endings import end, move
from executa_host.actions.limits import WAL_PAGES
from executa_host.actions.operations import Accept, Piece, Stored, Terms
from executa_host.actions.outcomes import Verdict
from executa_host.actions.records import ActionRecord, Effect, Mode
from executa_host.actions.sqlite import SqliteStore
from executa_protocol import canonical
from executa_protocol.actions import ActionState
from executa_protocol.chunks import ChunkKind
from executa_protocol.ids import IdSource

GIVEN: Final = Raw(b'{"text":"' + b"x" * 200 + b'"}')
"""The input of every action: as much as the text of an invoke in `roundtrip`."""

OUTPUT: Final = Raw(b'{"text":"' + b"y" * 200 + b'"}')
AT_MS: Final = 1_700_000_000_000
LIFE: Final = (ActionState.QUEUED, ActionState.RUNNING, ActionState.COMPLETED)
PAGE: Final = 4_096


class ActionStore:
    """Tasks are ``accept``, ``lifecycle`` (accept, and three moves to the end) and ``event``
    (a chunk of a running action), each with a key, receipts and its log; and ``check``."""

    servers: Sequence[int] = ()

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._ids = IdSource()
        self._keys = itertools.count()
        self._idle: deque[Stored] = deque()
        """Running actions that no caller appends to at this moment."""

    def call(self, task: Task) -> Call:
        """See `Opened.call`."""
        return {
            "accept": self._accept,
            "lifecycle": self._lifecycle,
            "event": self._event,
            "check": self._check,
        }[task.kind]

    async def _accept(self, number: int) -> None:
        await self._accepted()

    async def _lifecycle(self, number: int) -> None:
        found = await self._accepted()
        for state in LIFE:
            found = await self._moved(found, state)

    async def _event(self, number: int) -> None:
        found = self._idle.popleft() if self._idle else await self._running()
        answer = await self._store.apply(move(found, "chunk", AT_MS, Piece(ChunkKind.DATA, GIVEN)))
        if not answer.won:
            msg = "a chunk was refused"
            raise WrongAnswer(msg)
        self._idle.append(found)

    async def _check(self, number: int) -> None:
        """Everything that was written, counted and chained again."""
        if faults := await self._store.check():
            raise WrongAnswer("; ".join(faults[:3]))

    async def _accepted(self) -> Stored:
        terms = Terms(
            mode=Mode.ASYNC,
            effect=Effect.READ,
            user_id="local",
            timeout_ms=60_000,
            max_attempts=3,
            idempotency_key=f"key-{next(self._keys)}",
            input_digest=canonical.digest(GIVEN),
        )
        made = Accept(
            at_ms=AT_MS,
            action_id=self._ids.action_id(),
            tenant="default",
            principal="ana",
            subject="ana",
            capability="p.read",
            terms=terms,
            input=GIVEN,
            receipts=(receipting.acceptance("default", "ana", "p.read", terms),),
        )
        answer = await self._store.apply(made)
        if answer.action_id != made.action_id or answer.replayed:
            msg = "another action was accepted than was submitted"
            raise WrongAnswer(msg)
        return Stored(_record(made.action_id, ActionState.ACCEPTED), 0, terms)

    async def _moved(self, found: Stored, state: ActionState) -> Stored:
        if state is ActionState.COMPLETED:
            operation = end(found, Verdict(state=state), AT_MS, output=OUTPUT)
        else:
            claims = state is ActionState.RUNNING
            operation = move(found, "queue", AT_MS, state, claim=claims)
        answer = await self._store.apply(operation)
        if not answer.won:
            msg = f"a move to {state} was refused"
            raise WrongAnswer(msg)
        return Stored(_record(found.record.action_id, state), answer.fence, found.terms)

    async def _running(self) -> Stored:
        found = await self._accepted()
        for state in LIFE[:2]:
            found = await self._moved(found, state)
        return found


def _record(action_id: str, state: ActionState) -> ActionRecord:
    return ActionRecord(
        action_id=action_id,
        capability="p.read",
        state=state,
        mode=Mode.ASYNC,
        tenant="default",
        principal="ana",
        subject="ana",
        effect=Effect.READ,
        accepted_at_ms=AT_MS,
        updated_at_ms=AT_MS,
        cursor="a1",
    )


@asynccontextmanager
async def open_store(options: Options) -> AsyncGenerator[ActionStore]:
    """A store in a new file, `synchronous` ``FULL`` (the default) or ``NORMAL``.

    With `warm` its log is as long as it gets: one that still grows costs several times as
    much to sync as one that is used again, and no store is new for long.
    """
    synchronous: Any = options.get("synchronous", "FULL")
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        path = Path(folder) / "actions.db"
        async with await SqliteStore.open(path, synchronous=synchronous) as store:
            opened = ActionStore(store)
            lifecycle = opened.call(Task("lifecycle"))
            log = path.with_name(f"{path.name}-wal")
            while options.get("warm", True) and log.stat().st_size < WAL_PAGES * PAGE:
                await asyncio.gather(*(lifecycle(number) for number in range(256)))
            yield opened


class Disk:
    """The task ``fdatasync``: a page written to a file that has its size, and synced."""

    servers: Sequence[int] = ()

    def __init__(self, fd: int, pages: int) -> None:
        self._fd = fd
        self._pages = pages
        self._page = os.urandom(PAGE)

    def call(self, task: Task) -> Call:
        """See `Opened.call`."""
        sync = os.fdatasync if hasattr(os, "fdatasync") else os.fsync

        async def call(number: int) -> None:
            written = os.pwrite(self._fd, self._page, number % self._pages * PAGE)
            sync(self._fd)
            if written != PAGE:
                msg = f"the disk took {written} bytes of {PAGE}"
                raise WrongAnswer(msg)

        return call


@asynccontextmanager
async def open_disk(options: Options) -> AsyncGenerator[Disk]:
    """A file of 16 MiB, as long as a store's log."""
    del options
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        fd = os.open(Path(folder) / "log", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.pwrite(fd, bytes(WAL_PAGES * PAGE), 0)
            os.fsync(fd)
            yield Disk(fd, WAL_PAGES)
        finally:
            os.close(fd)
