"""Coroutines that mostly end without ever waiting, run at little cost.

With nexus in the same process a task costs as much as what a reverse call does. Here the
coroutines that are begun in one turn of the loop run one after the other in one task; the
first that waits keeps that task to itself, and the rest goes on in the next.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from functools import partial
from types import coroutine
from typing import Any

Task = asyncio.Task[None]

Work = Callable[[], Coroutine[Any, Any, None]]
"""Makes the coroutine when its turn has come: one that never runs must not be left behind."""

Waits = Callable[[Task], None]
"""Gets the task of a coroutine that waits."""


@coroutine
def going_on(
    send: Callable[[None], Any], throw: Callable[[BaseException], Any], awaited: Any
) -> Generator[Any, Any, Any]:
    """Await the rest of a coroutine whose first step, a `send`, gave `awaited`."""
    try:
        while True:
            try:
                yield awaited
            except BaseException as fault:  # noqa: BLE001 - a cancel is the coroutine's to see
                awaited = throw(fault)
            else:
                awaited = send(None)
    except StopIteration as end:
        return end.value


class SharedTasks:
    """Runs coroutines, each in a copy of the context in which it was begun, as a task would.

    `keep` gets every task that they share.
    """

    def __init__(self, keep: Callable[[Task], None]) -> None:
        self._keep = keep
        self._queue: deque[tuple[Context, Work, Waits]] = deque()
        self._task: Task | None = None
        """The task that takes from the queue, until what it took waits."""

    def run(self, work: Work, waits: Waits) -> None:
        """Run `work` in the next turn of the loop.

        If it waits for anything, `waits` gets the task, which then ends with it and by
        which it can be cancelled.
        """
        self._queue.append((copy_context(), work, waits))
        if self._task is None:
            self._begin()

    def _begin(self) -> None:
        self._task = task = asyncio.get_running_loop().create_task(self._run())
        task.add_done_callback(self._let_go)
        self._keep(task)

    def _let_go(self, task: Task | None) -> None:
        """Whatever has become of `task`, others go on without it."""
        if task is self._task:
            self._task = None
            if self._queue:
                self._begin()

    async def _run(self) -> None:
        task, queue = self._task, self._queue
        try:
            while True:
                if not queue:
                    return
                context, work, waits = queue.popleft()
                run = context.run
                running = run(work)
                try:
                    awaited = run(running.send, None)
                except StopIteration:
                    continue
                break
        finally:
            self._let_go(task)
        if task is not None:
            waits(task)
        await going_on(partial(run, running.send), partial(run, running.throw), awaited)
