"""A runner that does what a test says, and a catalog of what it can run."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from executa_host.actions.contracts import Capability, capability_of
from executa_host.actions.faults import Code, Unavailable
from executa_host.actions.records import ActionError
from executa_host.actions.runner import Attempt, Emit, Ended
from executa_host.actions.settings import CapabilityConfig
from executa_protocol.chunks import ChunkKind
from executa_protocol.manifest import Parameter, Tool

PATIENCE = 20
"""Seconds after which a test that waits has failed."""


def raw(value: Any) -> Raw:
    """A value as raw JSON."""
    return Raw(msgspec.json.encode(value))


class ScriptedRun:
    """An attempt that ends when the test says so."""

    def __init__(self, attempt: Attempt, emit: Emit) -> None:
        self.attempt = attempt
        self.emit_chunk = emit
        self.cancelled = asyncio.Event()
        self.reason = ""
        self.abandoned = False
        self.on_cancel: Ended | None = None
        self._ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()

    async def ended(self) -> Ended:
        return await asyncio.shield(self._ended)

    def cancel(self, reason: str) -> None:
        self.reason = reason
        self.cancelled.set()
        if self.on_cancel is not None:
            self.end(self.on_cancel)

    def abandon(self) -> None:
        self.abandoned = True

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._ended.done()

    # --- What a test says -------------------------------------------------------------------

    def end(self, ended: Ended) -> None:
        """End it that way."""
        if not self._ended.done():
            self._ended.set_result(ended)

    def answer(self, value: Any = None) -> None:
        """The tool returns a value."""
        self.end(Ended(kind="answered", output=raw(value)))

    def fail(self, code: str = "TOOL_FAILED", *, retryable: bool = False) -> None:
        """The tool fails."""
        self.end(Ended(kind="answered", error=ActionError(code, "it failed", retryable)))

    def lose(self, *, written: bool = True) -> None:
        """The plugin dies."""
        self.end(Ended(kind="lost", written=written))

    def time_out(self, *, written: bool = True) -> None:
        """The tool takes too long."""
        self.end(Ended(kind="timed_out", written=written))

    def acknowledge(self) -> None:
        """The plugin confirms that it was cancelled."""
        self.end(Ended(kind="cancelled", acknowledged=True))

    def show(self, kind: ChunkKind, value: Any) -> None:
        """Emit a chunk."""
        self.emit_chunk(kind, raw(value))


class ScriptedRunner:
    """Hands every attempt to the test; `auto` answers those of a tool by itself."""

    def __init__(self) -> None:
        self.runs: list[ScriptedRun] = []
        self.auto: dict[str, Callable[[ScriptedRun], None]] = {}
        self._came = asyncio.Event()

    def begin(self, attempt: Attempt, emit: Emit) -> ScriptedRun:
        run = ScriptedRun(attempt, emit)
        self.runs.append(run)
        self._came.set()
        answer = self.auto.get(attempt.tool)
        if answer is not None:
            answer(run)
        return run

    def of(self, action_id: str) -> list[ScriptedRun]:
        """The attempts of an action so far."""
        return [run for run in self.runs if run.attempt.action_id == action_id]

    async def begun(self, action_id: str, attempt: int = 1) -> ScriptedRun:
        """Wait for an attempt of an action, by the order in which they began."""
        async with asyncio.timeout(PATIENCE):
            while len(self.of(action_id)) < attempt:
                self._came.clear()
                await self._came.wait()
        return self.of(action_id)[attempt - 1]


def tool(name: str, **members: Any) -> Tool:
    """A tool with an optional argument `n` and a required `text`."""
    parameters = [
        Parameter(name="text", type="string"),
        Parameter(name="n", type="integer", required=False),
    ]
    return Tool(name=name, parameters=parameters, **members)


class ScriptedCatalog:
    """The tools of plugin ``p``, and of ``q`` that has one of them."""

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {
            "p.read": tool("read", effect="read", streaming=True),
            "p.put": tool("put", effect="idempotent", streaming=True),
            "p.send": tool("send", streaming=True),
            "p.wire": tool("wire", approval=True, streaming=True),
            "p.slow": tool("slow", effect="read", timeout=5),
            "q.read": tool("read", effect="read"),
        }
        self.configured: dict[str, CapabilityConfig] = {}
        self.down = False

    async def find(self, name: str, user_id: str) -> Capability | None:
        del user_id
        if self.down:
            raise Unavailable(Code.CAPABILITY_UNAVAILABLE, "the plugin does not start")
        found = self.tools.get(name)
        plugin = name.partition(".")[0]
        return None if found is None else capability_of(plugin, found, self.configured)

    async def all(self, user_id: str) -> tuple[Capability, ...]:
        found = [await self.find(name, user_id) for name in sorted(self.tools)]
        return tuple(each for each in found if each is not None)
