"""A model that does what its prompt says, step by step, and waits where a test wants it to.

The content of a run is JSON: a list of turns, each a list of steps. A step is one of::

    {"say": "text"}            a piece of text; with "times", so many of them
    {"call": "PLUGIN.TOOL", "args": {...}}
    {"raw": {...}}             a frame as it is
    {"hold": "name"}           wait until the test calls `release(name)`
    {"fail": 503}              the provider fails
    {"tokens": 7}              what the turn has used, else 1
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from executa_nexus_stub.models.base import (
    Completion,
    ModelError,
    ModelInfo,
    ModelRequest,
    RawFrame,
    TextPiece,
    TokenUsage,
    ToolSpec,
    ToolUse,
    TurnEnd,
    TurnEvent,
)


def program(*turns: list[dict[str, Any]]) -> str:
    """The content of a run that does this."""
    return json.dumps(turns)


class ScriptedModel:
    """See the top. `offered` are the tools that each turn was offered."""

    def __init__(self, tokens: int = 7) -> None:
        self.offered: list[list[str]] = []
        self.requests: list[ModelRequest] = []
        self.completions = 0
        self._tokens = tokens
        self._held: dict[str, asyncio.Event] = {}
        self._reached: dict[str, asyncio.Event] = {}

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(name="scripted")

    def release(self, name: str) -> None:
        """Let the runs go on that wait at this step."""
        self._held.setdefault(name, asyncio.Event()).set()

    async def reached(self, name: str) -> None:
        """Wait, within bounds, until a run waits at this step."""
        async with asyncio.timeout(20):
            await self._reached.setdefault(name, asyncio.Event()).wait()

    async def complete(self, request: ModelRequest) -> Completion:
        self.requests.append(request)
        self.completions += 1
        text = request.messages[-1].text
        if text.startswith("hold "):
            await self._hold(text.removeprefix("hold "))
        if text.startswith("fail "):
            raise ModelError("the provider failed", status=int(text.removeprefix("fail ")))
        used = min(self._tokens, request.max_tokens)
        return Completion("done", "endTurn", TokenUsage(3, used))

    async def turn(
        self, request: ModelRequest, tools: Sequence[ToolSpec]
    ) -> AsyncIterator[TurnEvent]:
        self.requests.append(request)
        self.offered.append([tool.name for tool in tools])
        last = max(i for i, message in enumerate(request.messages) if message.role == "user")
        turns: list[list[dict[str, Any]]] = json.loads(request.messages[last].text)
        done = sum(message.role == "assistant" for message in request.messages[last:])
        used = 1
        for step in turns[done] if done < len(turns) else []:
            if "say" in step:
                for _ in range(step.get("times", 1)):
                    yield TextPiece(step["say"])
            elif "call" in step:
                yield ToolUse(step["call"], step.get("args", {}))
            elif "raw" in step:
                yield RawFrame(json.dumps(step["raw"]).encode())
            elif "hold" in step:
                await self._hold(step["hold"])
            elif "fail" in step:
                raise ModelError("the provider failed", status=step["fail"])
            else:
                used = step["tokens"]
        yield TurnEnd("endTurn", TokenUsage(3, used))

    async def _hold(self, name: str) -> None:
        self._reached.setdefault(name, asyncio.Event()).set()
        await self._held.setdefault(name, asyncio.Event()).wait()

    async def aclose(self) -> None:
        """Nothing to let go of."""
