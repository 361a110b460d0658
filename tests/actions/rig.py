"""An engine with everything around it in a test's hands: clock, runner, catalog, callbacks."""

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec import UNSET, Raw

from executa_host.actions.callback_http import DeliveryFailed
from executa_host.actions.engine import Engine
from executa_host.actions.interface import Outcome, Submitted
from executa_host.actions.operations import Stored
from executa_host.actions.records import ActionRecord, ActionState, EventRecord, Mode
from executa_host.actions.requests import ALL_SCOPES, Caller, Submission
from executa_host.actions.settings import CallbackSettings, EngineSettings
from executa_host.actions.sqlite import SqliteStore
from tests.actions.manual_clock import ManualClock
from tests.actions.scripted import PATIENCE, ScriptedCatalog, ScriptedRun, ScriptedRunner, raw

ANA = Caller(principal="ana")
BEN = Caller(principal="ben")
BOSS = Caller(principal="boss", scopes=ALL_SCOPES - {"admin"})
ROOT = Caller(principal="root", tenant="elsewhere", scopes=ALL_SCOPES)
STRANGER = Caller(principal="ana", tenant="other")

SETTINGS = EngineSettings(
    callbacks=CallbackSettings(secrets={"default": b"secret"}, allow=("hook.test",))
)


class Posted:
    """One callback as it was posted."""

    def __init__(self, url: str, body: bytes, headers: dict[str, str]) -> None:
        self.url = url
        self.body = body
        self.headers = headers


class RecordingPoster:
    """Takes callbacks; the first `failing` of them fail."""

    def __init__(self) -> None:
        self.posted: list[Posted] = []
        self.failing = 0
        self._came = asyncio.Event()

    async def post(self, url: str, body: bytes, headers: dict[str, str], timeout: float) -> None:
        del timeout
        self.posted.append(Posted(url, body, headers))
        self._came.set()
        if len(self.posted) <= self.failing:
            raise DeliveryFailed("answered 500")

    async def close(self) -> None:
        pass

    async def count(self, number: int) -> list[Posted]:
        """Wait until that many were posted."""
        async with asyncio.timeout(PATIENCE):
            while len(self.posted) < number:
                self._came.clear()
                await self._came.wait()
        return self.posted


class Rig:
    """An engine on a file. `reopen` ends it as a crash would, and begins another."""

    def __init__(
        self,
        path: Path,
        settings: EngineSettings = SETTINGS,
        store_class: type[SqliteStore] = SqliteStore,
    ) -> None:
        self.path = path
        self.store_class = store_class
        self.settings = settings
        self.clock = ManualClock()
        self.runner = ScriptedRunner()
        self.catalog = ScriptedCatalog()
        self.poster = RecordingPoster()
        self.store: SqliteStore
        self.engine: Engine

    async def __aenter__(self) -> Self:
        self.store = await self.store_class.open(self.path, synchronous="NORMAL")
        self.engine = Engine(
            self.store,
            self.runner,
            self.catalog,
            self.settings,
            clock=self.clock,
            poster=self.poster,
            jitter=lambda: 1.0,
        )
        await self.engine.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.engine.close()
        await self.store.close()

    async def reopen(self) -> None:
        """Leave everything as it is on disk, and begin anew."""
        await self.__aexit__(None, None, None)
        self.runner = ScriptedRunner()
        await self.__aenter__()

    # --- Shorthand --------------------------------------------------------------------------

    async def submit(
        self,
        capability: str = "p.read",
        arguments: dict[str, Any] | None = None,
        *,
        caller: Caller = ANA,
        **members: Any,
    ) -> ActionRecord:
        """Submit, and give the record."""
        return (await self.submitted(capability, arguments, caller=caller, **members)).action

    async def submitted(
        self,
        capability: str = "p.read",
        arguments: dict[str, Any] | None = None,
        *,
        caller: Caller = ANA,
        **members: Any,
    ) -> Submitted:
        """Submit."""
        given = raw({"text": "t"} if arguments is None else arguments)
        return await self.engine.submit(
            caller, Submission(capability=capability, input=given, **members)
        )

    async def running(
        self,
        capability: str = "p.read",
        arguments: dict[str, Any] | None = None,
        *,
        mode: Mode = Mode.ASYNC,
        **members: Any,
    ) -> tuple[str, ScriptedRun]:
        """An action whose attempt is under way."""
        record = await self.submit(capability, arguments, mode=mode, **members)
        return record.action_id, await self.runner.begun(record.action_id)

    async def record(self, action_id: str) -> ActionRecord:
        """The record on disk."""
        found = await self.store.action(action_id)
        assert isinstance(found, Stored)
        return found.record

    async def until(self, action_id: str, *states: ActionState, attempt: int = 0) -> ActionRecord:
        """Wait until an action is in one of `states`, in that attempt, and give its record."""
        with self.store.watch(action_id) as bell:
            async with asyncio.timeout(PATIENCE):
                while True:
                    bell.clear()
                    record = await self.record(action_id)
                    if record.state in states and attempt in (0, record.attempt):
                        return record
                    await bell.wait()

    async def outcome(self, action_id: str) -> Outcome:
        """Wait for the end, as an observer who sees everything does."""
        async with asyncio.timeout(PATIENCE):
            return await self.engine.result(ROOT, action_id, wait=30)

    async def events(self, subject: str, after: str = "") -> list[EventRecord]:
        """A log from a cursor on."""
        found: list[EventRecord] = []
        while True:
            page = await self.store.events(subject, after, 100)
            if not page.events:
                return found
            found += page.events
            after = page.cursor

    async def states(self, action_id: str) -> list[str]:
        """The states that an action's log shows, in order."""
        return [event.state for event in await self.events(action_id) if event.type == "state"]

    async def check(self) -> None:
        """Every invariant holds."""
        findings = await self.store.check()
        assert findings == [], findings


def output_of(record: ActionRecord) -> bytes:
    """What a completed action returned."""
    assert record.result is not UNSET
    assert isinstance(record.result.output, Raw)
    return bytes(record.result.output)
