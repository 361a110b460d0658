"""One life of an engine under a mixed load, until something kills it.

Callers come and go, each from its own random numbers: they submit with and without keys,
repeat themselves, follow, cancel, decide, open and resume sessions, drive dead letters
again. Everything that they were told is noted.
"""

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from msgspec import Raw

from executa_host.actions import crashpoints
from executa_host.actions.engine import Engine
from executa_host.actions.faults import ActionsError
from executa_host.actions.records import (
    ActionState,
    ApprovalStatus,
    Callback,
    DeadLetter,
    Mode,
)
from executa_host.actions.requests import ALL_SCOPES, ActionQuery, Caller, Submission
from executa_host.actions.settings import CallbackSettings, EngineSettings, Retention, Slots
from executa_host.actions.sqlite import SqliteStore
from executa_protocol.actions import TERMINAL
from tests.crash.journal import Journal
from tests.crash.plugins import Catalog, Poster, Runner

ANA = Caller(principal="ana", scopes=ALL_SCOPES)
SETTINGS = EngineSettings(
    slots=Slots(in_all=12, per_plugin=12, per_tenant=12),
    callbacks=CallbackSettings(
        secrets={"*": b"s"}, allow=("hook.test",), attempts=1000, base_ms=2, max_ms=20
    ),
    retention=Retention(age_ms=400, count=150),
    settle_after_ms=50,
    housekeeping_every_ms=40,
)
CAPABILITIES = ("p.read", "p.put", "p.send", "p.wire")


def live(folder: Path, seed: int, arm: tuple[str, int] | None, *, finish: bool) -> None:
    """A life, in a process of its own. It ends by itself only if it is to `finish`."""
    if arm is not None:
        crashpoints.arm(_killer(*arm))
    asyncio.run(_live(folder, seed, finish=finish))


def _killer(name: str, count: int) -> Callable[[str], None]:
    left = count

    def reached(point: str) -> None:
        nonlocal left
        if point == name:
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return reached


async def _live(folder: Path, seed: int, *, finish: bool) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same life for the same seed
    journal = Journal(folder / "journal.jsonl")
    store = await SqliteStore.open(folder / "a.db")
    catalog = Catalog(seed)
    engine = Engine(
        store, Runner(journal, chance), catalog, SETTINGS, poster=Poster(journal, chance)
    )
    await engine.open()
    world = World(engine, journal, chance, catalog)
    if finish:
        await world.finish()
    else:
        await asyncio.gather(*(world.caller() for _ in range(10)))
    await engine.close()
    await store.close()
    journal.close()


class World:
    """Everybody outside."""

    def __init__(
        self, engine: Engine, journal: Journal, chance: random.Random, catalog: Catalog
    ) -> None:
        self._engine = engine
        self._journal = journal
        self._chance = chance
        self._catalog = catalog
        self._sessions: list[tuple[str, str]] = []
        self._ids: list[str] = []

    async def caller(self) -> None:
        """One caller, who never stops."""
        acts: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (20, self._submit),
            (4, self._follow),
            (3, self._cancel),
            (8, self._decide),
            (2, self._open),
            (3, self._resume),
            (1, self._attach),
            (1, self._close),
            (2, self._redrive),
            (1, self._change_tools),
        ]
        weights = [weight for weight, _ in acts]
        while True:
            _, act = self._chance.choices(acts, weights)[0]
            try:
                await act()
            except ActionsError as refused:
                self._journal.note("refused", code=refused.code)
            await asyncio.sleep(self._chance.random() * 0.003)

    # --- Acts ---------------------------------------------------------------------------------

    async def _submit(self) -> None:
        chance = self._chance
        key = f"k{chance.randrange(10**9)}" if chance.random() < 0.6 else ""
        members: dict[str, Any] = {
            "capability": chance.choice(CAPABILITIES),
            "input": Raw(b'{"text":"%d"}' % chance.randrange(10)),
            "mode": chance.choice((Mode.ASYNC, Mode.STREAMING)),
            "idempotency_key": key,
        }
        if chance.random() < 0.2:
            members["expires_in_ms"] = chance.randrange(1, 60)
        if chance.random() < 0.3:
            members["callback"] = Callback("https://hook.test/x", approvals=chance.random() < 0.5)
        if self._sessions and chance.random() < 0.4:
            members["session_id"] = chance.choice(self._sessions)[0]
        if key:
            self._journal.note("trying", key=key, capability=members["capability"])
        action_id = await self._submitted(members)
        if key and chance.random() < 0.3:
            await self._submitted(members)
        self._ids.append(action_id)
        if chance.random() < 0.3:
            outcome = await self._engine.result(ANA, action_id, wait=0.05)
            if outcome.action.state in TERMINAL:
                self._journal.note(
                    "ended", action=outcome.action.action_id, state=outcome.action.state
                )

    async def _submitted(self, members: dict[str, Any]) -> str:
        submitted = await self._engine.submit(ANA, Submission(**members))
        self._journal.note(
            "accepted",
            action=submitted.action.action_id,
            capability=members["capability"],
            key=members["idempotency_key"],
            replayed=submitted.replayed,
            callback="callback" in members,
        )
        return submitted.action.action_id

    async def _follow(self) -> None:
        subjects = self._ids[-20:] + [session_id for session_id, _ in self._sessions[-3:]]
        if not subjects:
            return
        subject, cursor = self._chance.choice(subjects), ""
        for _ in range(4):
            page = await self._engine.events(ANA, subject, cursor, limit=50, wait=0.02)
            for event in page.events:
                chunk = event.chunk.sequence if event.chunk else 0
                self._journal.note(
                    "event",
                    subject=subject,
                    cursor=event.cursor,
                    is_=[event.type, event.action_id, event.state, event.attempt, chunk],
                )
            cursor = page.cursor
            if page.ended:
                return

    async def _cancel(self) -> None:
        if self._ids:
            await self._engine.cancel(ANA, self._chance.choice(self._ids[-10:]))

    async def _decide(self) -> None:
        query = ActionQuery(approval=ApprovalStatus.REQUESTED, limit=20)
        for record in (await self._engine.list(ANA, query)).records:
            approve = self._chance.random() < 0.7
            decide = self._engine.approve if approve else self._engine.deny
            await decide(ANA, record.action_id)
            self._journal.note("decided", action=record.action_id, approved=approve)

    async def _redrive(self) -> None:
        query = ActionQuery(states=(ActionState.DEAD_LETTERED,), limit=5)
        for record in (await self._engine.list(ANA, query)).records:
            if isinstance(record.dead_letter, DeadLetter) and not record.dead_letter.redriven_as:
                again = await self._engine.redrive(ANA, record.action_id)
                new = again.action.action_id
                self._journal.note("redriven", old=record.action_id, new=new)
                self._journal.note(
                    "accepted",
                    action=new,
                    capability=record.capability,
                    key="",
                    replayed=again.replayed,
                    callback=False,
                )

    async def _change_tools(self) -> None:
        self._catalog.version += 1

    async def _open(self) -> None:
        opened = await self._engine.sessions.open(ANA, responder="ben")
        session_id = opened.session.session_id
        self._journal.note("token", session=session_id, token=opened.resume_token)
        self._sessions = [*self._sessions[-8:], (session_id, opened.resume_token)]

    async def _attach(self) -> None:
        if self._sessions:
            session_id, _ = self._chance.choice(self._sessions)
            opened = await self._engine.sessions.attach(ANA, session_id)
            self._journal.note("token", session=session_id, token=opened.resume_token)

    async def _resume(self) -> None:
        if not self._sessions:
            return
        session_id, token = self._chance.choice(self._sessions)
        attempt = f"a{self._chance.randrange(10**9)}"
        self._journal.note("resuming", token=token, attempt=attempt)
        resumed = await self._engine.sessions.resume(ANA, token, attempt_id=attempt)
        self._journal.note(
            "resumed", session=session_id, old=token, token=resumed.resume_token, attempt=attempt
        )
        if (session_id, token) in self._sessions:  # others were at it meanwhile
            place = self._sessions.index((session_id, token))
            self._sessions[place] = (session_id, resumed.resume_token)

    async def _close(self) -> None:
        if self._sessions:
            place = self._chance.randrange(len(self._sessions))
            session_id, _ = self._sessions.pop(place)
            outcome: Any = self._chance.choice(("completed", "cancelled", "failed"))
            closed = await self._engine.sessions.close(ANA, session_id, outcome)
            self._journal.note("closed", session=session_id, outcome=closed.outcome)

    # --- The end --------------------------------------------------------------------------------

    async def finish(self) -> None:
        """Let everything end that is open, and every callback arrive."""
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(ActionsError):
                    await self._decide()
                status = await self._engine.status()
                if not status.open and not status.callbacks:
                    return
                await asyncio.sleep(0.02)
