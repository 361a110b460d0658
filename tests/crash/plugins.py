"""Tools that note in the journal what they did, and a receiver of callbacks that does too.

What a tool does next is drawn from the life's own random numbers.
"""

import asyncio
import random

from msgspec import Raw

from executa_host.actions.callback_http import DeliveryFailed
from executa_host.actions.contracts import Capability, capability_of
from executa_host.actions.records import ActionError, Mode, Retry
from executa_host.actions.runner import Attempt, Emit, Ended
from executa_host.actions.settings import CapabilityConfig
from executa_protocol.chunks import ChunkKind
from executa_protocol.manifest import Parameter, Tool
from tests.crash.journal import Journal

MUTATING = frozenset({"p.send", "p.wire"})
ATTEMPTS = 4
CONFIGURED = {
    "p.*": CapabilityConfig(
        modes=(Mode.SYNC, Mode.ASYNC, Mode.STREAMING),
        retry=Retry(ATTEMPTS, 2, 20),
        approval_ttl_ms=60_000,
    )
}


def _tools(version: int) -> dict[str, Tool]:
    text = [Parameter(name="text", type="string")]
    return {
        "p.read": Tool(name="read", parameters=text, effect="read"),
        "p.put": Tool(name="put", parameters=text, effect="idempotent"),
        "p.send": Tool(name="send", parameters=text),
        # Its description changes with each life, which voids approvals that were not used.
        "p.wire": Tool(name="wire", parameters=text, approval=True, description=f"v{version}"),
    }


class Catalog:
    """The tools of plugin ``p``. `version` may change at any time."""

    def __init__(self, version: int) -> None:
        self.version = version

    async def find(self, name: str, user_id: str) -> Capability | None:
        del user_id
        tool = _tools(self.version).get(name)
        return None if tool is None else capability_of("p", tool, CONFIGURED)

    async def all(self, user_id: str) -> tuple[Capability, ...]:
        found = [await self.find(name, user_id) for name in _tools(self.version)]
        return tuple(each for each in found if each is not None)


class Run:
    """An attempt: it notes that it began, shows chunks, and ends in one way or another."""

    def __init__(
        self, attempt: Attempt, emit: Emit, journal: Journal, chance: random.Random
    ) -> None:
        self._attempt = attempt
        self._emit = emit
        self._journal = journal
        self._chance = chance
        self._cancelled = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._go())

    async def ended(self) -> Ended:
        return await asyncio.shield(self._task)

    def cancel(self, reason: str) -> None:
        del reason
        self._cancelled.set()

    def abandon(self) -> None:
        self._task.cancel()

    async def _go(self) -> Ended:
        about = {"action": self._attempt.action_id, "attempt": self._attempt.attempt}
        self._journal.note("run", tool=f"p.{self._attempt.tool}", **about)
        shown = 0
        for _ in range(self._chance.choice((0, 0, 1, 5, 40))):
            self._journal.note("chunk", data=shown, **about)
            self._emit(ChunkKind.DATA, Raw(b"%d" % shown))
            shown += 1
            if self._chance.random() < 0.5:
                await self._pause()
            if self._cancelled.is_set():
                break
        await self._pause()
        how = self._chance.choices(("answer", "fail", "retry", "lose", "late"), (12, 2, 2, 2, 1))[0]
        if self._cancelled.is_set():
            how = self._chance.choice(("answer", "acknowledge", "silent"))
        self._journal.note("answer", how=how, shown=shown, **about)
        return _ends(how)

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._chance.random() * 0.004):
                await self._cancelled.wait()
        except TimeoutError:
            pass


def _ends(how: str) -> Ended:
    if how == "answer":
        return Ended(kind="answered", output=Raw(b'{"done":true}'))
    if how in ("fail", "retry"):
        return Ended(kind="answered", error=ActionError("E", "it failed", how == "retry"))
    if how == "late":
        return Ended(kind="timed_out")
    if how == "lose":
        return Ended(kind="lost")
    return Ended(kind="cancelled", acknowledged=how == "acknowledge")


class Runner:
    """Begins runs."""

    def __init__(self, journal: Journal, chance: random.Random) -> None:
        self._journal = journal
        self._chance = chance

    def begin(self, attempt: Attempt, emit: Emit) -> Run:
        return Run(attempt, emit, self._journal, self._chance)


class Poster:
    """Takes callbacks, not always at once."""

    def __init__(self, journal: Journal, chance: random.Random) -> None:
        self._journal = journal
        self._chance = chance

    async def post(self, url: str, body: bytes, headers: dict[str, str], timeout: float) -> None:
        del url, timeout
        if self._chance.random() < 0.2:
            raise DeliveryFailed("not now")
        self._journal.note("callback", delivery=headers["Executa-Delivery"], size=len(body))

    async def close(self) -> None:
        pass
