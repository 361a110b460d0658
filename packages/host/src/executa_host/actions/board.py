"""The actions that have not ended, as this engine knows them, and the moves it makes of them.

Owns the entries in memory and what is remembered after each move. The disk is the truth:
whoever loses a move takes over what the disk says. Nothing here decides on a move.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct

from executa_host.actions.contracts import Catalog
from executa_host.actions.endings import after
from executa_host.actions.operations import Move, Stored
from executa_host.actions.records import ActionRecord, ActionState
from executa_host.actions.runner import Run, Runner
from executa_host.actions.scheduler import Entry
from executa_host.actions.settings import EngineSettings
from executa_host.actions.store import Store, StoreBroken
from executa_host.actions.timing import now_ms
from executa_host.clock import Clock, Timer
from executa_protocol.actions import TERMINAL
from executa_protocol.ids import IdSource

T = TypeVar("T")

_log = logging.getLogger(__name__)

INPUT_KEPT = 64 * 1024
"""Inputs up to this stay in memory while their actions wait; larger ones are read again."""


class Item(Struct, eq=False):
    """One open action. `run` is its attempt under way, `moving` a move to `queued` that is
    on its way to the disk, `timer` what is due for it next."""

    stored: Stored
    entry: Entry
    tool: str
    input: Raw | None = None
    run: Run | None = None
    moving: "asyncio.Future[Any] | None" = None
    timer: Timer | None = None

    @property
    def action_id(self) -> str:
        """Its id."""
        return self.entry.action_id

    @property
    def state(self) -> ActionState:
        """Where it is."""
        return self.stored.record.state


def cursor_number(record: ActionRecord) -> int:
    """How many events an action has."""
    return int(record.cursor[1:])


class Board:
    """What the parts of one engine share: its surroundings and its open actions."""

    def __init__(
        self,
        store: Store,
        runner: Runner,
        catalog: Catalog,
        settings: EngineSettings,
        clock: Clock,
        *,
        ids: IdSource | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.store = store
        self.runner = runner
        self.catalog = catalog
        self.settings = settings
        self.clock = clock
        self.ids = ids or IdSource(clock.now)
        self.jitter = jitter
        self.draining = False
        """Nothing new begins."""
        self.stopping = False
        """Nobody waits any longer; set once what runs has had its time."""
        self.items: dict[str, Item] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._asked: set[asyncio.Task[Any]] = set()

    @property
    def pending_count(self) -> int:
        """Tasks that run; for the leak check."""
        return len(self._tasks) + len(self._asked)

    def now(self) -> int:
        """Epoch milliseconds."""
        return now_ms(self.clock)

    # --- Tasks ---------------------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run `work`; what it raises goes to the log."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Do what a caller asked for to its end, also if the caller goes away meanwhile: what is
        on disk must also be known here (R-51)."""
        task = asyncio.get_running_loop().create_task(work)
        self._asked.add(task)
        task.add_done_callback(self._answered)
        return await asyncio.shield(task)

    def _answered(self, task: "asyncio.Task[Any]") -> None:
        self._asked.discard(task)
        if not task.cancelled():
            task.exception()  # told to the caller, if it is still there

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        fault = task.exception()
        if isinstance(fault, StoreBroken):
            _log.error("left for recovery: %s", fault)
        elif fault is not None:
            _log.error("work on an action failed", exc_info=fault)

    async def stop(self) -> None:
        """End all tasks, and wait for that."""
        while self._asked:
            await asyncio.wait(self._asked)
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)
        for item in self.items.values():
            self.disarm(item)

    # --- Items ---------------------------------------------------------------------------------

    def add(self, stored: Stored) -> Item:
        """Know an action from now on. One that is known already is what it was."""
        record = stored.record
        known = self.items.get(record.action_id)
        if known is not None:
            return known
        item = self.items[record.action_id] = self.unlisted(stored)
        return item

    def unlisted(self, stored: Stored) -> Item:
        """An entry for an action that this engine need not know of: it has ended, mostly."""
        record = stored.record
        plugin, _, tool = record.capability.partition(".")
        item = Item(stored, Entry(record.action_id, record.tenant, plugin), tool)
        self._remember(item, stored)
        return item

    def caught_up(self, stored: Stored) -> Item:
        """The entry of an action that was just read. The disk may be a moment ahead of what
        is known here: the answer to a move is on its way."""
        item = self.items.get(stored.record.action_id)
        if item is None:
            return self.unlisted(stored)
        self._catch_up(item, stored)
        return item

    def _catch_up(self, item: Item, stored: Stored) -> None:
        if cursor_number(stored.record) > cursor_number(item.stored.record):
            self._remember(item, stored)

    @staticmethod
    def kept(given: Raw) -> Raw | None:
        """An input as it is kept in memory while its action waits, if it is."""
        data = bytes(given)
        return Raw(data) if len(data) <= INPUT_KEPT else None

    def _remember(self, item: Item, stored: Stored) -> None:
        record = stored.record
        if isinstance(record.input, Raw):
            item.input = self.kept(record.input)
            record = msgspec.structs.replace(record, input=UNSET)
        stored.record = record
        item.stored = stored

    async def input_of(self, item: Item) -> Raw:
        """An action's input."""
        if item.input is not None:
            return item.input
        found = await self.store.action(item.action_id, input=True)
        if isinstance(found, Stored) and isinstance(found.record.input, Raw):
            return found.record.input
        return Raw(b"{}")

    async def move(self, item: Item, made: Move) -> bool:
        """Make a move and take over what came of it; whether it was this one that won (R-42)."""
        answer = await self.store.apply(made)
        if answer.won:
            # Every move logs something: whoever read of it, or of a later one, came first.
            if answer.events > cursor_number(item.stored.record):
                item.stored = after(item.stored, made, answer.fence, answer.events, answer.chunks)
        elif answer.current is not None:
            self._catch_up(item, answer.current)
        if answer.missing or item.state in TERMINAL:
            self._forget(item)
        return answer.won

    def _forget(self, item: Item) -> None:
        self.disarm(item)
        self.items.pop(item.action_id, None)

    # --- Timers ---------------------------------------------------------------------------------

    def arm(self, item: Item, when_ms: int, callback: Callable[[], None]) -> None:
        """Call back when `when_ms` has come, instead of whatever was due before."""
        self.disarm(item)
        seconds = max(0, when_ms - self.now()) / 1000
        item.timer = self.clock.call_later(seconds, callback)

    def disarm(self, item: Item) -> None:
        """Nothing is due."""
        if item.timer is not None:
            item.timer.cancel()
            item.timer = None
