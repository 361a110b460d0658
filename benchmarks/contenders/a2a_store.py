"""`a2a-sdk`: its database task store on SQLite, a task saved at each of its states."""

import sqlite3
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

from benchmarks.drivers.contender import Call, Options, Task
from benchmarks.extras import extra
from benchmarks.model import WrongAnswer

stores: Any = extra("a2a.server.tasks")
contexts: Any = extra("a2a.server.context")
types: Any = extra("a2a.types")
asyncio_engines: Any = extra("sqlalchemy.ext.asyncio")

TEXT: Final = "x" * 200
STATES: Final = (
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
)
"""A lifecycle of ours has four writes; so has this one, its third with the artifact."""


class TaskStore:
    """Tasks are ``accept`` (one save) and ``lifecycle`` (four saves, then read once)."""

    servers: Sequence[int] = ()

    def __init__(self, store: Any) -> None:
        self._store = store
        self._context = contexts.ServerCallContext()
        self._done = 0

    def call(self, task: Task) -> Call:
        """See `Opened.call`."""
        return {"accept": self._accept, "lifecycle": self._lifecycle}[task.kind]

    async def _accept(self, number: int) -> None:
        await self._store.save(self._task(), self._context)

    async def _lifecycle(self, number: int) -> None:
        task = self._task()
        for place, state in enumerate(STATES):
            task.status.state = types.TaskState.Value(state)
            if place == 2:
                artifact = task.artifacts.add(artifact_id="a", name="answer")
                artifact.parts.add(text=TEXT)
            await self._store.save(task, self._context)
        if number % 64 == 0:  # reading each one back would be a fifth of its cost
            found = await self._store.get(task.id, self._context)
            if found is None or found.status.state != task.status.state or not found.artifacts:
                msg = "the store gave another task back"
                raise WrongAnswer(msg)

    def _task(self) -> Any:
        self._done += 1
        task = types.Task(id=f"task-{self._done}", context_id="context")
        task.status.state = types.TaskState.Value(STATES[0])
        message = task.history.add(message_id=f"m-{self._done}")
        message.role = types.Role.Value("ROLE_USER")
        message.parts.add(text=TEXT)
        return task


@asynccontextmanager
async def open_tasks(options: Options) -> AsyncGenerator[TaskStore]:
    """A store in a new file, synced at each commit as ours is.

    `journal` is SQLite's mode; by default ``delete``, as the library leaves it, while ``wal``
    is what whoever knows SQLite would ask for.
    """
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        path = Path(folder) / "tasks.db"
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"pragma journal_mode = {options.get('journal', 'delete')}")
        # One connection: more of them wait for each other's lock, and lose by it.
        engine = asyncio_engines.create_async_engine(
            f"sqlite+aiosqlite:///{path}",
            pool_size=options.get("connections", 1),
            max_overflow=0,
            pool_timeout=120,
            connect_args={"timeout": 60},
        )
        store = stores.DatabaseTaskStore(engine)
        await store.initialize()
        try:
            yield TaskStore(store)
        finally:
            await engine.dispose()
