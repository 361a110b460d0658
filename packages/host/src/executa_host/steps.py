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
from typing import Any, Final, TypeVar, cast

Task = asyncio.Task[None]

A = TypeVar("A")

Work = Callable[[A], Coroutine[Any, Any, None]]
"""Makes the coroutine when its turn has come: one that never runs must not be left behind."""

Waits = Callable[[A, Task], None]
"""Gets the task of a coroutine that waits."""

Runner = Generator[Any, Any, None]
"""Is sent coroutines. It gives what they wait for, and the value of each in an `ENDED`."""

ENDED: Final[type[Any]] = tuple
"""Of one member. Nothing that a coroutine waits for is a tuple."""


def _run_all() -> Runner:
    work = yield ()
    while True:
        work = yield ((yield from work),)


_RUN_ALL: Final = cast("Callable[[], Runner]", coroutine(_run_all))  # so that it may await


def new_runner() -> Runner:
    """Runs one coroutine after the other, until one of them raises.

    A coroutine that is stepped by hand ends with a `StopIteration`, which costs more than
    two coroutines. What is awaited in here ends without one.
    """
    runner = _RUN_ALL()
    runner.send(None)
    return runner


@coroutine
def going_on(
    send: Callable[[None], Any], throw: Callable[[BaseException], Any], awaited: Any
) -> Generator[Any, Any, Any]:
    """Await the rest of what a runner runs, whose first step gave `awaited`."""
    while type(awaited) is not ENDED:
        try:
            yield awaited
        except BaseException as fault:  # noqa: BLE001 - a cancel is the coroutine's to see
            awaited = throw(fault)
        else:
            awaited = send(None)
    return awaited[0]


class SharedTasks:
    """Runs coroutines, each in a copy of the context in which it was begun, as a task would.

    `keep` gets every task that they share.
    """

    def __init__(self, keep: Callable[[Task], None]) -> None:
        self._keep = keep
        self._queue: deque[tuple[Context, Work[Any], Any, Waits[Any]]] = deque()
        self._task: Task | None = None
        """The task that takes from the queue, until what it took waits."""

    def run(self, work: Work[A], argument: A, waits: Waits[A]) -> None:
        """Run `work` with its argument in the next turn of the loop.

        If it waits for anything, `waits` gets the argument and the task, which then ends with
        it and by which it can be cancelled.
        """
        self._queue.append((copy_context(), work, argument, waits))
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
        runner = new_runner()
        step = runner.send
        try:
            while True:
                if not queue:
                    return
                context, work, argument, waits = queue.popleft()
                awaited = context.run(step, work(argument))
                if type(awaited) is not ENDED:
                    break
        finally:
            self._let_go(task)
        if task is not None:
            waits(argument, task)
        await going_on(partial(context.run, step), partial(context.run, runner.throw), awaited)
