"""Threads for plain functions: at most a bounded number, and extra ones for nested calls.

A nested call comes while its ancestor holds a thread and waits for it (R-36), so it must
never wait for a thread itself. All threads are daemons: one that never ends must not keep
the process. Everything but the jobs themselves happens on the loop.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

MOST_THREADS: Final = 32
"""Plain functions that run at once; the next ones wait for a thread."""

Job = Callable[[], None]


class Workers:
    """Runs jobs in threads. A job must not raise; `done` is called on the loop after each."""

    __slots__ = ("_jobs", "_limit", "_running", "_threads")

    def __init__(self, limit: int = MOST_THREADS) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._limit = limit
        self._threads = 0
        self._running = 0

    def submit(self, job: Job) -> None:
        """Run `job` in the next free thread."""
        self._running += 1
        if self._running > self._threads and self._threads < self._limit:
            self._threads += 1
            _start(self._work, f"executa-tool-{self._threads}")
        self._jobs.put(job)

    def done(self) -> None:
        """A job that was submitted has ended."""
        self._running -= 1

    def stop(self) -> None:
        """Let idle threads go, and busy ones when they are done."""
        for _ in range(self._threads):
            self._jobs.put(None)
        self._threads = 0

    def submit_extra(self, job: Job) -> None:
        """Run `job` now, in a thread of its own. `done` is not called for it."""
        _start(job, "executa-tool-nested")

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


def _start(target: Job, name: str) -> None:
    threading.Thread(target=target, name=name, daemon=True).start()
