"""The MCP Python SDK's low-level client, over stdio, to its low-level server or to fastmcp's."""

import sys
import warnings
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks import machine
from benchmarks.contenders.direct_nexus import ANSWER
from benchmarks.drivers.contender import Call, Options, Task, text
from benchmarks.extras import extra
from benchmarks.model import WrongAnswer

PEERS: Final = Path(__file__).parents[1] / "peers"

types: Any = extra("mcp_types")
session_module: Any = extra("mcp.client.session")
stdio: Any = extra("mcp.client.stdio")

_SAID: Final = types.CreateMessageResult(
    role="assistant",
    content=types.TextContent(type="text", text=ANSWER),
    model="constant",
    stop_reason="endTurn",
)


class McpSession:
    """A session with one server. Tasks are ``echo`` and ``sample``."""

    def __init__(self, session: Any, servers: list[int]) -> None:
        self.servers = servers
        self._session = session

    def call(self, task: Task) -> Call:
        """See `Opened.call`."""
        session, size, count, name = self._session, task.size, task.count, task.kind
        more = {"count": count} if name == "sample" else {}
        said = ANSWER * count if name == "sample" else ""

        async def call(number: int) -> None:
            given = text(number, size)
            result = await session.call_tool(name, {"text": given, **more})
            content: Any = result.content[0]
            if result.is_error or content.text != given + said:
                msg = f"the server answered {content.text!r:.80}"
                raise WrongAnswer(msg)

        return call


async def _sampled(context: Any, params: Any) -> Any:
    del context, params
    return _SAID


@asynccontextmanager
async def _open(*server: str) -> AsyncGenerator[McpSession]:
    warnings.simplefilter("ignore")
    parameters = stdio.StdioServerParameters(
        command=sys.executable, args=[str(PEERS / server[0]), *server[1:]]
    )
    async with (
        stdio.stdio_client(parameters) as (reading, writing),
        session_module.ClientSession(reading, writing, sampling_callback=_sampled) as session,
    ):
        await session.initialize()
        await session.list_tools()
        yield McpSession(session, machine.children())


@asynccontextmanager
async def open_low_level(options: Options) -> AsyncGenerator[McpSession]:
    """The low-level server, under uvloop as its client is."""
    del options
    async with _open("mcp_server.py", "--uvloop") as session:
        yield session


@asynccontextmanager
async def open_fastmcp(options: Options) -> AsyncGenerator[McpSession]:
    """fastmcp's server."""
    del options
    async with _open("fastmcp_server.py") as session:
        yield session
