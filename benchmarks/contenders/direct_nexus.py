"""A nexus in the host's own process that answers with constants.

It is to our host what a callback is to a client of another protocol: the least that can
stand behind a reverse call, so that a figure shows the host's and the plugin's work alone.
Tokens and grants are real to the host, which checks and counts them as always.
"""

import time
from collections.abc import AsyncIterator, Iterator
from functools import lru_cache
from itertools import count
from typing import Final

from executa_protocol import codec
from executa_protocol.frames import Delta, ToolCall, ToolResult, encode_frame
from executa_protocol.frames import Final as FinalFrame
from executa_protocol.methods.agent import AgentSessionCreateParams
from executa_protocol.methods.common import TextContent
from executa_protocol.methods.sampling import SamplingParams, SamplingResult, Usage
from executa_protocol.nexus import (
    AgentRun,
    Grants,
    InvokeGrant,
    InvokeOpening,
    MintedAgentSession,
    Token,
    ToolOutcome,
)

ANSWER: Final = "A sentence that a model might have said."
RUN_TEXT: Final = "The run has ended as planned."
LIFE: Final = 3_600.0
"""Seconds that tokens last; no measurement takes as long."""

_NUMBERS = count(1)


class DirectNexus:
    """A `Nexus` of constants. An agent run has as many frames as its content says."""

    async def open_invoke(self, opening: InvokeOpening) -> InvokeGrant:
        """Grant everything."""
        return _granted(opening.invoke_id)

    async def renew_invoke(self, invoke_id: str) -> InvokeGrant:
        """New tokens, as good as the old ones."""
        return _granted(invoke_id)

    async def close_invoke(self, invoke_id: str) -> None:
        """Nothing is kept that could be let go."""

    async def sample(self, token: str, params: SamplingParams) -> SamplingResult:
        """The same sentence each time."""
        return SamplingResult(
            content=TextContent("text", ANSWER),
            model="constant",
            stop_reason="endTurn",
            usage=Usage(input_tokens=8, output_tokens=8),
        )

    async def create_agent_session(
        self, token: str, params: AgentSessionCreateParams
    ) -> MintedAgentSession:
        """Mint one with a number."""
        number = next(_NUMBERS)
        uuid = f"{number:08d}-0000-4000-8000-000000000000"
        return _minted(uuid, f"a-{number}")

    async def refresh_agent_session(
        self, token: str, app_session_uuid: str, ttl_seconds: int | None
    ) -> MintedAgentSession:
        """Prolong it."""
        return _minted(app_session_uuid, token)

    async def delete_agent_session(self, token: str, app_session_uuid: str) -> None:
        """Nothing is kept."""

    async def run_agent(self, token: str, run: AgentRun) -> AsyncIterator[bytes]:
        """Prepared frames, as many as the content says."""
        for frame in prepared_frames(int(run.content)):
            yield frame

    async def cancel_run(self, token: str, run_id: str) -> bool:
        """Every run has ended by the time it is asked to."""
        return False

    async def post_tool_result(self, token: str, outcome: ToolOutcome) -> None:
        """Nobody waits for it."""

    async def storage(self, token: str, method: str, params: bytes) -> bytes:
        """Nothing is stored."""
        return codec.encode({"key": "k", "value": None})

    async def aclose(self) -> None:
        """Nothing is open."""


def _granted(invoke_id: str) -> InvokeGrant:
    expires_at = time.time() + LIFE
    return InvokeGrant(
        grants=Grants(sampling=True, agent=True, storage=True, files=True),
        sampling_token=Token(f"s-{invoke_id}", expires_at),
        storage_token=Token(f"k-{invoke_id}", expires_at),
        granted_tools=("*",),
    )


def _minted(uuid: str, token: str) -> MintedAgentSession:
    return MintedAgentSession(uuid, token, token, time.time() + LIFE, granted_tools=("*",))


@lru_cache(maxsize=8)
def prepared_frames(number: int) -> tuple[bytes, ...]:
    """The frames of a run: mostly text, a tool call and its result in every sixteen."""
    return tuple(_frames(number))


def _frames(number: int) -> Iterator[bytes]:
    for place in range(number - 1):
        call_id = f"call-{place // 16}"
        if place % 16 == 14 and place + 2 < number:
            args = {"query": f"number {place}", "limit": 5, "filters": {"kind": ["a", "b"]}}
            yield encode_frame(ToolCall("notes.search", call_id, args))
        elif place % 16 == 15:
            data = {"hits": [{"id": place, "title": "A note", "score": 0.75}], "more": False}
            yield encode_frame(ToolResult(call_id, True, data))
        else:
            yield encode_frame(Delta(f"The {place}th piece of a text that a model writes. "))
    usage = {"input_tokens": 100, "output_tokens": number}
    yield encode_frame(FinalFrame(RUN_TEXT, usage))
