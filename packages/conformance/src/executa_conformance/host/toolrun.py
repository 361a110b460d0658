"""A run whose model calls tools of the host (R-36), as a scripted nexus streams it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from executa_conformance.host.asking import Open
from executa_conformance.host.book import FINAL, Reply, Seen
from executa_conformance.reading import members


class ToolRun:
    """A run whose model calls tools of the host, waits for each, and then says its final."""

    def __init__(self, asked: Open, *names: str, repeat: bool = False, tag: str = "call") -> None:
        self._names = names
        self._repeat = repeat
        self._tag = tag
        self.posted: list[dict[str, Any]] = []
        self._arrived = asyncio.Event()
        book = asked.actor.book
        book.answers["run"] = lambda _: Reply(frames=self._frames())
        self._earlier = book.answers.get("tool_result")
        book.answers["tool_result"] = self._take
        book.answers["cancel"] = self._cancel
        self._cancelled = False

    def _cancel(self, _: Seen) -> Reply:
        self._cancelled = True
        self._arrived.set()
        return Reply({"cancelled": True})

    def _take(self, seen: Seen) -> Reply:
        call = str(members(seen.body).get("call_id"))
        if self._earlier is not None and not call.startswith(f"{self._tag}-"):
            return self._earlier(seen)
        self.posted.append(members(seen.body))
        self._arrived.set()
        return Reply(status=204)

    async def _frames(self) -> AsyncIterator[Any]:
        for number, name in enumerate(self._names):
            call = f"{self._tag}-{number}"
            frame = {
                "event": "tool_call",
                "name": name,
                "args": {"text": call},
                "call_id": call,
                "executor": "host",
            }
            yield frame
            if self._repeat:
                yield frame
            outcome = await self.outcome(call)
            if self._cancelled:
                yield {"event": "final", "text": "", "cancelled": True}
                return
            yield {
                "event": "tool_result",
                "call_id": call,
                "ok": outcome.get("ok"),
                "data": outcome.get("data"),
            }
        yield FINAL

    async def outcome(self, call: str) -> dict[str, Any]:
        """What was posted for a call, once it is, or nothing of a run that was cancelled."""
        while not self._cancelled:
            for posted in self.posted:
                if posted.get("call_id") == call:
                    return posted
            self._arrived.clear()
            await self._arrived.wait()
        return {}
