"""What a test may not leave behind, and how it is found.

Owns the snapshot of this process (child processes, open descriptors, threads), its comparison, and
`LeakCheck`, which gathers one test's leaks. It knows nothing of pytest (`leak_plugin` does) and
nothing of Executa: a peer is anything that counts what it still waits for.

Descriptors and child processes are read from /proc; where there is none (macOS) only tasks, threads
and watched objects are checked.
"""

import asyncio
import contextlib
import gc
import os
import signal
import threading
from collections.abc import Callable, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

# Patience in seconds, spent only while something is still there: a thread that reaps a child or
# closes a database ends a moment after the call that told it to. About two seconds in all.
SETTLE_DELAYS = (0.002, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0)

# A task that was cancelled but not awaited is gone after a turn or two of its loop. Turns, unlike
# time, give the same verdict on a busy machine; a task that needs more was left running.
SETTLE_TURNS = 10

# Opened once a process by libraries that want randomness, and never closed.
LAZY_DESCRIPTORS = frozenset({"/dev/random", "/dev/urandom"})

_PROC = Path("/proc/self/fd")


class HasInFlight(Protocol):
    """Something that counts the requests it is serving."""

    @property
    def in_flight(self) -> int | Sized:
        """How many, or the collection of them."""
        ...


class HasPendingCount(Protocol):
    """Something that counts the answers it waits for."""

    @property
    def pending_count(self) -> int | Sized:
        """How many, or the collection of them."""
        ...


Probe: TypeAlias = Callable[[], str | None]
Watched: TypeAlias = HasInFlight | HasPendingCount | Probe


@dataclass(frozen=True)
class Snapshot:
    """What this process holds at one moment."""

    children: dict[int, str]
    descriptors: dict[int, str]
    threads: frozenset[threading.Thread]

    @classmethod
    def take(cls) -> "Snapshot":
        """Read it from the system."""
        return cls(_children(), _descriptors(), frozenset(threading.enumerate()))

    def leaks(self) -> list[str]:
        """What this process holds now that it did not hold then, one sentence each."""
        now = Snapshot.take()
        return [
            *(
                f"child process {pid}: {what}"
                for pid, what in now.children.items()
                if pid not in self.children
            ),
            *(
                f"open descriptor {number}: {target}"
                for number, target in now.descriptors.items()
                if self.descriptors.get(number) != target and target not in LAZY_DESCRIPTORS
            ),
            *(
                f"thread {thread.name}"
                for thread in now.threads - self.threads
                if thread.is_alive() and not thread.daemon
            ),
        ]

    def new_children(self) -> dict[int, str]:
        """Child processes that it did not have then, by pid."""
        return {pid: what for pid, what in _children().items() if pid not in self.children}


class LeakCheck:
    """One test's leaks. `watch` adds what only the test knows of."""

    def __init__(self) -> None:
        self._before = Snapshot.take()
        self._probes: list[Probe] = []
        self._found: list[str] = []
        self.finished = False

    @property
    def found(self) -> list[str]:
        """What the test left behind, one sentence each; whole once `finished` is true."""
        return self._found

    def watch(self, subject: Watched, name: str | None = None) -> None:
        """Assert after the test that `subject` waits for nothing.

        `subject` has `in_flight` or `pending_count` (or both), or is called and returns what is
        wrong, or None. `name` is what a failure calls it.

        Raises TypeError if it is none of these.
        """
        counts = [field for field in ("in_flight", "pending_count") if hasattr(subject, field)]
        if counts:
            label = name or type(subject).__name__
            self._probes += [_count_probe(subject, field, label) for field in counts]
        elif callable(subject):
            self._probes.append(_named(subject, name))
        else:
            raise TypeError(f"{subject!r} has no in_flight, no pending_count and is not callable")

    def end_of_loop(self, runner: asyncio.Runner) -> None:
        """Look while the loop can still be asked, just before it is closed.

        Closing would cancel its tasks unseen. Its child processes can be reaped only by it, and
        uvloop's close does not return while one of them lives.
        """
        self._found += self._run_probes() + stray_tasks(runner)
        if not runner.get_loop().is_closed() and self._before.new_children():
            runner.run(self._end_children())

    def finish(self) -> None:
        """Gather, after bounded patience, what is left now that everything was torn down."""
        self._found += self._run_probes()
        leaks = self._before.leaks()
        for delay in SETTLE_DELAYS:
            if not leaks:
                break
            threading.Event().wait(delay)
            leaks = self._before.leaks()
            if leaks:  # after the wait: collecting costs more than most waits
                gc.collect()
                leaks = self._before.leaks()
        self._found += leaks
        self._kill_children()
        self._reap_children()
        self.finished = True

    async def _end_children(self) -> None:
        if not await self._children_gone():
            children = self._before.new_children()
            self._found += [f"child process {pid}: {what}" for pid, what in children.items()]
            self._kill_children()
            await self._children_gone()
            self._reap_children()

    async def _children_gone(self) -> bool:
        for delay in SETTLE_DELAYS:
            if not self._before.new_children():
                return True
            await asyncio.sleep(delay)
        return False

    def _kill_children(self) -> None:
        # What was reported must outlive neither the test nor the run.
        for pid in self._before.new_children():
            with contextlib.suppress(ProcessLookupError):  # its owner may reap it meanwhile
                os.kill(pid, signal.SIGKILL)

    def _reap_children(self) -> None:
        for pid in self._before.new_children():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)

    def _run_probes(self) -> list[str]:
        # Let go of the watched objects too: what they hold open may close only with them.
        probes, self._probes = self._probes, []
        return [trouble for probe in probes if (trouble := probe()) is not None]


def stray_tasks(runner: asyncio.Runner) -> list[str]:
    """Tasks that still run on the runner's loop, one sentence each."""
    loop = runner.get_loop()
    if loop.is_closed():
        return []
    if asyncio.all_tasks(loop):
        runner.run(_turns())
    return sorted(f"task {task!r}" for task in asyncio.all_tasks(loop))


async def _turns() -> None:
    for _ in range(SETTLE_TURNS):
        await asyncio.sleep(0)


def _count_probe(subject: object, field: str, name: str) -> Probe:
    def probe() -> str | None:
        value: int | Sized = getattr(subject, field)
        count = value if isinstance(value, int) else len(value)
        return f"{name}.{field} is {value!r}, not empty" if count else None

    return probe


def _named(probe: Probe, name: str | None) -> Probe:
    def named() -> str | None:
        trouble = probe()
        return trouble if trouble is None or name is None else f"{name}: {trouble}"

    return named


def _children() -> dict[int, str]:
    """Direct children by pid, with state and command line; the unreaped dead are among them."""
    if not _PROC.exists() or not _has_children():
        return {}
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                # The command stands in parentheses and may itself hold any character.
                after_command = (entry / "stat").read_text(errors="replace").rpartition(")")[2]
                command = (entry / "cmdline").read_text(errors="replace").replace("\0", " ").strip()
            except OSError:
                continue  # ended while being read
            state, parent = after_command.split()[:2]
            if int(parent) == os.getpid():
                found[int(entry.name)] = f"{command or 'unreaped'} (state {state})"
    return found


def _has_children() -> bool:
    # One call instead of a walk through /proc, in the common case. WNOWAIT reaps nothing.
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _descriptors() -> dict[int, str]:
    if not _PROC.exists():
        return {}
    found: dict[int, str] = {}
    for entry in _PROC.iterdir():
        try:
            # A file deleted meanwhile is still the same file.
            found[int(entry.name)] = str(entry.readlink()).removesuffix(" (deleted)")
        except OSError:
            continue  # the descriptor this listing itself uses
    return found
