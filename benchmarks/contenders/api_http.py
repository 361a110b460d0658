"""Our HTTP API as `executa serve` has it, and the floor: aiohttp that answers at once."""

import asyncio
import json
import sys
import tempfile
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp

from benchmarks import machine
from benchmarks.drivers.contender import Call, Options, Task, text
from benchmarks.model import WrongAnswer
from executa_host.keys import KeyFile, keys_beside

PEERS: Final = Path(__file__).parents[1] / "peers"
START_LIMIT: Final = 60.0
STOP_LIMIT: Final = 30.0
CONNECTIONS: Final = 512

CONFIG: Final = """
[nexus]
kind = "stub"

[plugins.small]
command = {command}
"""


class Api:
    """Requests to one server. Tasks are ``submit`` (an action is on disk), ``result`` (one has
    run in a plugin and its result is here), and ``read`` (an action that has ended)."""

    def __init__(self, session: aiohttp.ClientSession, servers: list[int]) -> None:
        self.servers = servers
        self._session = session
        self._ended: deque[str] = deque(maxlen=256)

    def call(self, task: Task) -> Call:
        """See `Opened.call`."""
        if task.kind == "read":
            return self._read
        size, sync = task.size, task.kind == "result"

        async def call(number: int) -> None:
            given = text(number, size)
            body: dict[str, Any] = {
                "capability": "small.inline",
                "input": {"text": given},
                "mode": "sync" if sync else "async",
            }
            status, answer = await self._ask("POST", "/v1/actions", body)
            if status != (200 if sync else 202):
                msg = f"the API answered {status}: {answer!r:.200}"
                raise WrongAnswer(msg)
            if sync:
                if answer["result"]["output"] != given:
                    msg = f"the action gave {answer['result']!r:.100}"
                    raise WrongAnswer(msg)
                self._ended.append(answer["action"]["action_id"])

        return call

    async def _read(self, number: int) -> None:
        while not self._ended:
            await self.call(Task("result"))(number)
        action_id = self._ended[number % len(self._ended)]
        status, answer = await self._ask("GET", f"/v1/actions/{action_id}", None)
        if status != 200 or answer["action"]["state"] != "completed":
            msg = f"the API answered {status}: {answer!r:.200}"
            raise WrongAnswer(msg)

    async def _ask(self, method: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        async with self._session.request(method, path, json=body) as response:
            return response.status, await response.json()


class Floor:
    """The task ``echo``: a body of JSON there, and another one back."""

    def __init__(self, session: aiohttp.ClientSession, servers: list[int]) -> None:
        self.servers = servers
        self._session = session

    def call(self, task: Task) -> Call:
        """See `Opened.call`."""
        size = task.size

        async def call(number: int) -> None:
            given = text(number, size)
            body = {"capability": "small.inline", "input": {"text": given}, "mode": "sync"}
            async with self._session.post("/", json=body) as response:
                answer = await response.json()
            if answer["result"]["output"] != given:
                msg = f"the server answered {answer!r:.100}"
                raise WrongAnswer(msg)

        return call


@asynccontextmanager
async def open_api(options: Options) -> AsyncGenerator[Api]:
    """`executa serve` with one plugin and a store on disk, its default settings."""
    del options
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
        folder = Path(name)
        store, config = folder / "actions.db", folder / "host.toml"
        command = json.dumps([sys.executable, str(PEERS / "inline_plugin.py")])
        config.write_text(CONFIG.format(command=command), encoding="utf-8")
        key = KeyFile(keys_beside(store)).create("benchmarks").text
        program = ("-m", "executa_host.cli", "serve", "--config", str(config), "--json")
        where = ("--port", "0", "--store", str(store))
        async with _served(*program, *where) as (url, pid):
            headers = {"Authorization": f"Bearer {key}"}
            async with _session(url, headers) as session:
                api = Api(session, [pid])
                await api.call(Task("result"))(0)  # starts the plugin
                api.servers = [pid, *machine.descendants(pid)]
                yield api


@asynccontextmanager
async def open_floor(options: Options) -> AsyncGenerator[Floor]:
    """One process of aiohttp under uvloop."""
    del options
    async with _served(str(PEERS / "http_floor.py")) as (url, pid), _session(url, {}) as session:
        yield Floor(session, [pid])


def _session(url: str, headers: dict[str, str]) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    return aiohttp.ClientSession(url, connector=connector, headers=headers)


@asynccontextmanager
async def _served(*arguments: str) -> AsyncGenerator[tuple[str, int]]:
    """A program that says its address as JSON in its first line."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_LIMIT):
            line = await process.stdout.readline()
        if not line:
            msg = "the server ended before it listened"
            raise WrongAnswer(msg)
        yield json.loads(line)["url"], process.pid
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(STOP_LIMIT):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
