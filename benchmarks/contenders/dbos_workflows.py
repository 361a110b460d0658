"""`dbos`: durable workflows of three steps, its system database on SQLite."""

import sqlite3
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

from benchmarks.drivers.contender import Call, Options, Task
from benchmarks.extras import extra
from benchmarks.model import WrongAnswer

dbos: Any = extra("dbos")

TEXT: Final = "x" * 200


class Workflows:
    """The task ``lifecycle``: a workflow, its input, three steps, its result."""

    servers: Sequence[int] = ()

    def __init__(self) -> None:
        steps = [dbos.DBOS.step(name=f"step{number}")(_step) for number in range(3)]

        async def three_steps(text: str, number: int) -> str:
            for step in steps:
                number = await step(number)
            return f"{number} {text}"

        self._workflow = dbos.DBOS.workflow(name="three_steps")(three_steps)
        self._done = 0

    def call(self, task: Task) -> Call:
        """See `Opened.call`."""
        return {"lifecycle": self._lifecycle}[task.kind]

    async def _lifecycle(self, number: int) -> None:
        self._done += 1
        with dbos.SetWorkflowID(f"workflow-{self._done}"):
            answer = await self._workflow(TEXT, number)
        if answer != f"{number + 3} {TEXT}":
            msg = f"the workflow answered {answer!r:.60}"
            raise WrongAnswer(msg)


async def _step(number: int) -> int:
    return number + 1


@asynccontextmanager
async def open_workflows(options: Options) -> AsyncGenerator[Workflows]:
    """A system database in a new file, synced at each commit.

    `journal` is SQLite's mode; by default ``delete``, as the library leaves it, while ``wal``
    is what whoever knows SQLite would ask for.
    """
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        path = Path(folder) / "dbos.db"
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"pragma journal_mode = {options.get('journal', 'delete')}")
        config = {
            "name": "benchmarks",
            "system_database_url": f"sqlite:///{path}",
            "sys_db_pool_size": 1,  # more of them wait for each other's lock, and lose by it
            "log_level": "ERROR",
        }
        dbos.DBOS(config=config)
        workflows = Workflows()
        dbos.DBOS.launch()
        try:
            yield workflows
        finally:
            dbos.DBOS.destroy()
