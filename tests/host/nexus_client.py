"""A client of nexus against a scripted server, and something to ask it."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from executa_host.nexus.http import HttpNexus
from executa_protocol.methods.agent import AgentSessionCreateParams
from executa_protocol.methods.common import TextContent
from executa_protocol.methods.sampling import SamplingMessage, SamplingParams
from executa_protocol.nexus import AgentRun, InvokeOpening
from tests.host.nexus_server import Reply, ScriptedNexus

TOKEN = "eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl"  # noqa: S105 - distinctive, and opens nothing
KEY = "host-key-distinctive"
OPENING = InvokeOpening("local", "tool-x", "x", "do", "0" * 32)
SAMPLE = SamplingParams(
    messages=[SamplingMessage("user", TextContent("text", "a private question"))], max_tokens=5
)
CREATE = AgentSessionCreateParams(kind="agent", agent_submode="auto")
RUN = AgentRun(run_id="r", content="a private question")
DELTA = b'{"event":"delta","text":"a"}'
FINAL = b'{"event":"final","text":"a"}'
GRANT = b'{"grants":{"sampling":true}}'


class Pauses:
    """What the client waited between attempts."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@contextlib.asynccontextmanager
async def against(
    *replies: Reply, **options: Any
) -> AsyncGenerator[tuple[HttpNexus, ScriptedNexus, Pauses]]:
    """A client, the server that it talks to, and its pauses."""
    pauses = Pauses()
    async with ScriptedNexus(*replies) as server:
        nexus = HttpNexus(server.url, key=KEY, pause=pauses, jitter=lambda: 0.5, **options)
        try:
            yield nexus, server, pauses
        finally:
            assert nexus.in_flight == 0
            await nexus.aclose()


async def frames_of(nexus: HttpNexus) -> list[bytes]:
    """All frames of a run."""
    return [frame async for frame in nexus.run_agent(TOKEN, RUN)]
