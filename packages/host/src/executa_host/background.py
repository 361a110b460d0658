"""Work that nobody waits for: kept, bounded in time, and its faults told."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from executa_host.bounds import Bounds
from executa_host.steps import SharedTasks
from executa_protocol.errors import ExecutaError

_log = logging.getLogger(__name__)

Work = Callable[[], Coroutine[Any, Any, Any]]
"""Makes the coroutine when its turn has come: one that never runs must not be left behind."""


class Background:
    """The tasks of one host that run beside its calls."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._tasks: set[asyncio.Task[Any]] = set()
        self.shared = SharedTasks(self.keep)
        """For work that begins often and seldom waits."""

    def __len__(self) -> int:
        return len(self._tasks)

    def run(self, work: Work, what: str, within: float) -> "asyncio.Task[None]":
        """Run `work` to its end, or until `within` seconds are over. `what` is for the log.

        Whoever waits for the task learns when it is over, and nothing else.
        """
        task = asyncio.get_running_loop().create_task(self._bounded((work, what, within)))
        self.keep(task)
        return task

    def begin(self, work: Work, what: str, within: float) -> None:
        """As `run`, for what begins often and seldom waits."""
        self.shared.run(self._bounded, (work, what, within), _kept)

    def keep(self, task: "asyncio.Task[Any]") -> None:
        """Hold on to a task until it has ended. Its outcome is its own business."""
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def finish(self, within: float) -> None:
        """Wait until everything has ended, and cancel what has not after `within` seconds."""
        deadline = asyncio.get_running_loop().time() + within
        while self._tasks and (left := deadline - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait(self._tasks, timeout=left)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    async def _bounded(self, bounded: "tuple[Work, str, float]") -> None:
        work, what, within = bounded
        try:
            await self._bounds.run(work(), within)
        except TimeoutError:
            _log.warning("%s was given up after %g s", what, within)
        except ExecutaError as fault:
            _log.warning("%s failed: %s", what, fault)
        except Exception:  # noqa: BLE001 - nobody waits, so the log has to hear of it
            _log.exception("%s failed", what)


def _kept(bounded: object, task: "asyncio.Task[None]") -> None:
    """`SharedTasks` has given it to `keep` already."""
