"""The engine: durable actions on a host, as `interface.Actions` promises them.

The facade over its parts, and their life: open (take over what an engine before it left),
drain, close. One engine has the file (R-47).
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Final, Self

import msgspec

from executa_host.actions import access
from executa_host.actions.board import Board
from executa_host.actions.callback_http import HttpPoster, Poster
from executa_host.actions.callbacks import Callbacks
from executa_host.actions.contracts import Catalog
from executa_host.actions.decisions import Decisions
from executa_host.actions.dispatch import Dispatcher
from executa_host.actions.feeds import Feeds
from executa_host.actions.host_catalog import HostCatalog
from executa_host.actions.host_runner import HostRunner
from executa_host.actions.housekeeping import keep_house, tidy
from executa_host.actions.intake import Intake
from executa_host.actions.interface import (
    ActionPage,
    EventPage,
    Outcome,
    Status,
    Submitted,
)
from executa_host.actions.operations import Pruned
from executa_host.actions.records import ActionRecord, ActionView, ApprovalStatus, Contract
from executa_host.actions.recovery import recover
from executa_host.actions.requests import (
    EVERY_ACTION,
    NOTHING,
    ActionQuery,
    Caller,
    Include,
    Scope,
    Submission,
)
from executa_host.actions.runner import Runner
from executa_host.actions.session_desk import SessionDesk
from executa_host.actions.settings import EngineSettings
from executa_host.actions.store import Store
from executa_host.actions.timing import wait_for
from executa_host.clock import Clock, SystemClock
from executa_host.host import Host
from executa_protocol.actions import TERMINAL, ActionState
from executa_protocol.ids import IdSource
from executa_protocol.limits import QUERY_DEFAULT, QUERY_MAX

_CANCELLABLE: Final = tuple(
    state for state in ActionState if state not in {*TERMINAL, ActionState.CANCELLING}
)


class Engine:
    """See `Actions`.

    ::

        async with Host(nexus) as host, await SqliteStore.open(path) as store:
            async with Engine.on_host(host, store) as actions:
                submitted = await actions.submit(caller, submission("notebook.recall"))

    `ids`, `clock` and `jitter` (numbers from 0 to 1) are there for tests to replace.
    """

    def __init__(
        self,
        store: Store,
        runner: Runner,
        catalog: Catalog,
        settings: EngineSettings | None = None,
        *,
        clock: Clock | None = None,
        poster: Poster | None = None,
        ids: IdSource | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        settings = settings or EngineSettings()
        self._board = Board(
            store, runner, catalog, settings, clock or SystemClock(), ids=ids, jitter=jitter
        )
        self._dispatcher = Dispatcher(self._board)
        self._intake = Intake(self._board, self._dispatcher)
        self._decisions = Decisions(self._board, self._dispatcher)
        self._feeds = Feeds(self._board)
        self._poster = poster or HttpPoster(settings.callbacks.allow)
        self._callbacks = Callbacks(self._board, self._poster)
        self._sessions = SessionDesk(self._board, self._cancel_open)
        self._on_close: list[Callable[[], None]] = []
        self._ready = False

    @classmethod
    def on_host(
        cls,
        host: Host,
        store: Store,
        settings: EngineSettings | None = None,
        *,
        clock: Clock | None = None,
    ) -> Self:
        """An engine that runs actions as invokes of `host`. Close it before the host."""
        settings = settings or EngineSettings()
        runner = HostRunner(host)
        engine = cls(store, runner, HostCatalog(host, settings.capabilities), settings, clock=clock)
        engine._on_close.append(runner.close)
        return engine

    # --- Life ----------------------------------------------------------------------------------

    async def open(self) -> int:
        """Recover what was left open, and begin; how many actions were open."""
        recovered = await recover(self._board, self._dispatcher)
        self._board.spawn(self._callbacks.run())
        self._board.spawn(keep_house(self._board))
        self._ready = True
        return recovered

    async def drain(self, grace: float) -> None:
        """See `Actions.drain`."""
        self._board.draining = True
        await wait_for(self._board.clock, self._dispatcher.idle, grace)
        self._board.stopping = True
        self._board.store.ring_all()

    async def close(self) -> None:
        """Stop. What runs is left for recovery; the store stays open. Idempotent."""
        self._ready = False
        self._board.draining = self._board.stopping = True
        self._board.store.ring_all()
        await self._board.stop()
        await self._poster.close()
        while self._on_close:
            self._on_close.pop()()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def pending_count(self) -> int:
        """Tasks that run; for the leak check."""
        return self._board.pending_count

    @property
    def running(self) -> int:
        """Actions that run now."""
        return self._dispatcher.running

    async def tidy(self) -> Pruned:
        """Do now what housekeeping does from time to time; what retention removed."""
        return await tidy(self._board)

    # --- Actions -------------------------------------------------------------------------------

    @property
    def sessions(self) -> SessionDesk:
        """See `Actions.sessions`."""
        return self._sessions

    async def capabilities(self, caller: Caller) -> tuple[Contract, ...]:
        """See `Actions.capabilities`."""
        access.require(caller, Scope.READ)
        found = await self._board.catalog.all(caller.user_id)
        return tuple(each.contract for each in found)

    async def capability(self, caller: Caller, name: str) -> Contract | None:
        """See `Actions.capability`."""
        access.require(caller, Scope.READ)
        found = await self._board.catalog.find(name, caller.user_id)
        return None if found is None else found.contract

    async def submit(self, caller: Caller, submission: Submission) -> Submitted:
        """See `Actions.submit`."""
        return await self._board.whole(self._intake.submit(caller, submission))

    async def redrive(
        self, caller: Caller, action_id: str, *, idempotency_key: str = ""
    ) -> Submitted:
        """See `Actions.redrive`."""
        return await self._board.whole(self._intake.redrive(caller, action_id, idempotency_key))

    async def get(
        self, caller: Caller, action_id: str, include: frozenset[Include] = NOTHING
    ) -> ActionView | None:
        """See `Actions.get`."""
        return await self._feeds.get(caller, action_id, include)

    async def list(self, caller: Caller, query: ActionQuery = EVERY_ACTION) -> ActionPage:
        """See `Actions.list`."""
        return await self._feeds.list(caller, query)

    async def result(self, caller: Caller, action_id: str, wait: float = 0.0) -> Outcome:
        """See `Actions.result`."""
        return await self._feeds.result(caller, action_id, wait)

    async def events(
        self,
        caller: Caller,
        subject: str,
        after: str = "",
        *,
        limit: int = QUERY_DEFAULT,
        wait: float = 0.0,
    ) -> EventPage:
        """See `Actions.events`."""
        return await self._feeds.events(caller, subject, after, limit=limit, wait=wait)

    def follow(
        self, caller: Caller, subject: str, after: str = "", *, heartbeat: float = 15.0
    ) -> AsyncIterator[EventPage]:
        """See `Actions.follow`."""
        return self._feeds.follow(caller, subject, after, heartbeat)

    async def cancel(self, caller: Caller, action_id: str, reason: str = "") -> ActionRecord:
        """See `Actions.cancel`."""
        return await self._board.whole(self._decisions.cancel(caller, action_id, reason))

    async def approve(
        self, caller: Caller, action_id: str, *, content: str = "", note: str = ""
    ) -> ActionRecord:
        """See `Actions.approve`."""
        decision = (ApprovalStatus.APPROVED, content, note)
        return await self._board.whole(self._decisions.decide(caller, action_id, *decision))

    async def deny(
        self, caller: Caller, action_id: str, *, content: str = "", note: str = ""
    ) -> ActionRecord:
        """See `Actions.deny`."""
        decision = (ApprovalStatus.DENIED, content, note)
        return await self._board.whole(self._decisions.decide(caller, action_id, *decision))

    async def status(self) -> Status:
        """See `Actions.status`."""
        counts = await self._board.store.counts()
        return Status(
            ready=self._ready and not self._board.draining,
            draining=self._board.draining,
            open=counts.open,
            queued=self._dispatcher.queued,
            running=self._dispatcher.running,
            callbacks=counts.callbacks,
        )

    async def _cancel_open(self, caller: Caller, session_id: str) -> None:
        """Ask the open actions of a session that was given up to end."""
        query = ActionQuery(session_id=session_id, states=_CANCELLABLE, limit=QUERY_MAX)
        asker = msgspec.structs.replace(caller, scopes=caller.scopes | {Scope.CANCEL, Scope.READ})
        more = True
        while more:
            page = await self._feeds.list(asker, query)
            asked = [self.cancel(asker, each.action_id, "session closed") for each in page.records]
            await asyncio.gather(*asked)
            query = msgspec.structs.replace(query, cursor=page.next_cursor)
            more = bool(page.next_cursor)
