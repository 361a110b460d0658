"""The published runner `anna-app-runtime-local`: its pool drives our plugin."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks import machine
from benchmarks.drivers.contender import Call, Options, Task, text
from benchmarks.extras import extra
from benchmarks.model import WrongAnswer

PEERS: Final = Path(__file__).parents[1] / "peers"
runner: Any = extra("anna_app_runtime_local")

TOOL_ID: Final = "echo"


class Pool:
    """The pool with one plugin. The task is ``inline``."""

    def __init__(self, pool: Any, servers: list[int]) -> None:
        self.servers = servers
        self._pool = pool

    def call(self, task: Task) -> Call:
        """See `Opened.call`."""
        pool, kind, size = self._pool, task.kind, task.size

        async def call(number: int) -> None:
            given = text(number, size)
            answer = await pool.invoke(tool_id=TOOL_ID, tool_name=kind, tool_args={"text": given})
            inner: dict[str, Any] = answer.get("data") or {}
            if not answer.get("success") or inner.get("data") != given:
                msg = f"the pool answered {answer!r:.120}"
                raise WrongAnswer(msg)

        return call


@asynccontextmanager
async def open_pool(options: Options) -> AsyncGenerator[Pool]:
    """The pool, its plugin started by a first call."""
    del options
    command = [sys.executable, str(PEERS / "inline_plugin.py")]
    pool = runner.ExecutaPool({TOOL_ID: runner.ExecutaSpec(TOOL_ID, ".", command)})
    try:
        opened = Pool(pool, [])
        await opened.call(Task("inline"))(0)
        opened.servers = machine.children()
        yield opened
    finally:
        await pool.shutdown()
