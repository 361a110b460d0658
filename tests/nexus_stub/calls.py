"""Short ways to say what these tests say often."""

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Generator
from typing import Any, cast

import pytest
from msgspec import Raw

from executa_protocol import codec
from executa_protocol.codes import by_symbol
from executa_protocol.methods.agent import AgentSessionCreateParams
from executa_protocol.methods.common import TextContent
from executa_protocol.methods.sampling import SamplingMessage, SamplingParams
from executa_protocol.nexus import (
    AgentRun,
    AppContext,
    HostTool,
    InvokeOpening,
    MintedAgentSession,
    Nexus,
    NexusError,
    ToolOutcome,
)

EVERYTHING = ("llm.sample", "llm.agent.auto", "aps.kv", "aps.files")

RECALL = HostTool(
    "notebook.recall",
    "Find notes.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)

Executor = Callable[[dict[str, Any]], tuple[bool, Any]]


def opening(
    capabilities: tuple[str, ...] = EVERYTHING,
    *,
    user: str = "ada",
    plugin: str = "brief",
    app: AppContext | None = None,
    credentials: tuple[str, ...] = (),
) -> InvokeOpening:
    """An invoke that is about to begin."""
    return InvokeOpening(
        user_id=user,
        executa_tool_id=f"tool-{plugin}",
        plugin=plugin,
        tool="main",
        invoke_id=uuid.uuid4().hex,
        capabilities=capabilities,
        credentials=credentials,
        app=app,
    )


def ask(text: str, max_tokens: int = 400, **more: Any) -> SamplingParams:
    """One user message."""
    messages = [SamplingMessage("user", TextContent("text", text))]
    return SamplingParams(messages=messages, max_tokens=max_tokens, **more)


async def tokens(nexus: Nexus, *args: Any, **options: Any) -> tuple[str, str]:
    """The sampling and the storage token of a new invoke."""
    grant = await nexus.open_invoke(opening(*args, **options))
    assert grant.sampling_token is not None
    assert grant.storage_token is not None
    return grant.sampling_token.value, grant.storage_token.value


async def session(nexus: Nexus, **options: Any) -> MintedAgentSession:
    """An agent session of a new invoke; `options` are those of `create`."""
    sampling, _ = await tokens(nexus)
    options = {"kind": "agent", "agent_submode": "auto", **options}
    return await nexus.create_agent_session(sampling, AgentSessionCreateParams(**options))


def run(content: str, *tools: HostTool, run_id: str = "run", **more: Any) -> AgentRun:
    """One run of an agent session."""
    return AgentRun(run_id=run_id, content=content, tools=tools, **more)


async def play(
    nexus: Nexus, token: str, wanted: AgentRun, execute: Executor | None = None
) -> list[dict[str, Any]]:
    """All frames of a run; `execute` answers the tool calls that the host would execute."""
    frames: list[dict[str, Any]] = []
    async for raw in nexus.run_agent(token, wanted):
        frame = cast("dict[str, Any]", codec.decode_any(raw))
        frames.append(frame)
        if frame.get("executor") == "host":
            assert execute is not None, f"a tool call that nobody expected: {frame}"
            ok, data = execute(frame)
            outcome = ToolOutcome(wanted.run_id, frame["call_id"], ok, Raw(codec.encode(data)))
            await nexus.post_tool_result(token, outcome)
    return frames


def events(frames: list[dict[str, Any]]) -> list[str]:
    """The names of the events in order, runs of deltas as one."""
    names = [frame["event"] for frame in frames]
    return [name for index, name in enumerate(names) if [name] != names[index - 1 : index]]


async def store(nexus: Nexus, token: str, method: str, **params: Any) -> dict[str, Any]:
    """One storage or files call, in and out as plain values."""
    data = await nexus.storage(token, method, codec.encode({"scope": "tool", **params}))
    return cast("dict[str, Any]", codec.decode_any(data))


@contextlib.contextmanager
def refused_as(
    name: str, status: int | None = None, match: str | None = None
) -> Generator[pytest.ExceptionInfo[NexusError]]:
    """The block is refused by the row of that name, with that HTTP status."""
    row = by_symbol(name)
    with pytest.raises(NexusError, match=match) as info:
        yield info
    fault = info.value
    assert (fault.code, fault.symbol) == (row.number, row.symbol), fault
    if status is not None:
        assert fault.status == status, fault


@contextlib.contextmanager
def refused_as_busy() -> Generator[None]:
    """The block is refused because too many runs are going on (*observed*)."""
    with pytest.raises(NexusError) as info:
        yield
    assert (info.value.status, info.value.symbol) == (429, "APP_CONCURRENCY_LIMIT")
    assert info.value.retry_after == 1.0


async def until(holds: Callable[[], bool]) -> None:
    """Let others run until `holds`, bounded: a server learns of a closed stream by itself."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0)
