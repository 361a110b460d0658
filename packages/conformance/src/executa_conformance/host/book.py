"""What a scripted nexus says about one plugin, and what it was asked."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from msgspec import Struct, field


class Seen(Struct):
    """One request. `name` is what was asked, such as ``sample``; `body` is decoded."""

    name: str
    bearer: str
    body: Any
    path: str
    invoke_id: str = ""
    session: str = ""
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the answer has gone out, or whoever asked has gone."""


class Reply(Struct):
    """What is answered: a body with a status, or the frames of a run."""

    body: Any = None
    status: int = 200
    frames: AsyncIterator[Any] | None = None
    cut: bool = False
    """The connection breaks after the frames."""
    marked: bool = True
    """The stream ends with its mark, ``"done": true``."""


def refusal(status: int, code: int, symbol: str, message: str = "refused on purpose") -> Reply:
    """A refusal in nexus's form."""
    error = {"code": code, "errorCode": symbol, "message": message}
    return Reply({"error": error}, status)


Answer = Callable[[Seen], Any]
"""Gives a `Reply`, also as a coroutine."""


async def frames_of(*frames: Any) -> AsyncIterator[Any]:
    """A run that is these frames."""
    for frame in frames:
        yield frame


def completion(text: str = "hello", tokens: int = 3) -> dict[str, Any]:
    """A completion in the chapter's shape."""
    usage = {"inputTokens": tokens, "outputTokens": tokens, "totalTokens": 2 * tokens}
    return {
        "role": "assistant",
        "content": {"type": "text", "text": text},
        "model": "kit-model",
        "stopReason": "endTurn",
        "usage": usage,
    }


FINAL: Final = {
    "event": "final",
    "text": "hello",
    "usage": {"inputTokens": 3, "outputTokens": 3, "totalTokens": 6},
}


class Book:
    """What nexus says to the plugin of one check, and what it was asked about it.

    Members may be changed at any time. `answers` replaces what is answered, by the name of
    the request: ``open``, ``renew``, ``close``, ``sample``, ``create``, ``refresh``,
    ``delete``, ``run``, ``cancel``, ``tool_result``, or a wire name such as ``storage/get``.
    """

    def __init__(self, tool_id: str) -> None:
        self.tool_id = tool_id
        self.grants = {"sampling": True, "agent": True, "storage": True, "files": True}
        self.caps: dict[str, int] = {}
        self.granted_tools: list[str] = ["*"]
        self.credentials: dict[str, str] = {}
        self.life = 600.0
        self.session_life = 600.0
        self.withheld: set[str] = set()
        self.scopes = ["user", "tool"]
        self.answers: dict[str, Answer] = {}
        self.seen: list[Seen] = []
        self._moved = asyncio.Event()
        self.minted: list[str] = []
        """Every token that was given; none of them may reach a plugin but in a context."""

    def hold(self, name: str) -> asyncio.Event:
        """Answer requests of a name only once the event that this gives is set, with a 503."""
        let_go = asyncio.Event()

        async def answer(_: Seen) -> Reply:
            await let_go.wait()
            return refusal(503, -32603, "INTERNAL_ERROR", "held back on purpose")

        self.answers[name] = answer
        return let_go

    def always(self, name: str, reply: Reply) -> None:
        """Answer requests of a name with this."""
        self.answers[name] = lambda _: reply

    def refuse(self, name: str, status: int, code: int, symbol: str) -> None:
        """Refuse requests of a name."""
        self.answers[name] = lambda _: refusal(status, code, symbol)

    def add(self, seen: Seen) -> None:
        """Keep a request."""
        self.seen.append(seen)
        self._moved.set()

    def named(self, name: str) -> list[Seen]:
        """The requests of a name so far."""
        return [seen for seen in self.seen if seen.name == name]

    async def wait(self, name: str, seconds: float, number: int = 1) -> Seen | None:
        """Request `number` of a name; None if it does not come in time."""
        try:
            async with asyncio.timeout(seconds):
                while len(found := self.named(name)) < number:
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            return None
        return found[number - 1]
