"""Lives on one file, one after the other, each of them killed; and what is found between them.

A life is a fork of this process, which has imported everything already: hundreds of kills
take minutes, not hours.
"""

import asyncio
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, field

from executa_host.actions.crashpoints import POINTS
from tests.crash.life import live
from tests.crash.reuse import reuse
from tests.crash.verify import verify

PATIENCE = 20.0
"""Seconds in which a point must be reached, or a life that is to finish must end."""

LIVES_ON_A_FILE = 10
"""Then everything is finished, and a new file is begun: verifying costs as much as it holds."""


class Report(Struct):
    """What came of it."""

    kills: int = 0
    files: int = 0
    reached: set[str] = field(default_factory=set[str])
    findings: list[str] = field(default_factory=list[str])


class Kill(Struct, frozen=True):
    """How a life ends: at the `count`-th time that it comes by `point`, or `after` seconds."""

    point: str = ""
    count: int = 1
    after: float = 0.0

    def __str__(self) -> str:
        return f"{self.point} #{self.count}" if self.point else f"after {self.after:.3f} s"


def kills(total: int, chance: random.Random) -> Iterator[Kill]:
    """At least `total` kills: at every point in turn, and at random moments in between."""
    points: list[str] = []
    for number in range(total):
        if number % 4 == 3:
            yield Kill(after=0.02 + chance.random() * 0.5)
            continue
        if not points:
            points = list(POINTS)
            chance.shuffle(points)
        point = points.pop()
        if point.startswith("recover."):
            # There is something to recover only after a kill while an action ran; a moment
            # that a clock chooses may come before that on a busy machine.
            yield Kill("invoke.begun", chance.randrange(1, 4))
            yield Kill(point)
            continue
        # What happens with every commit is reached at once: then a later time tells more.
        often = point.startswith("batch.") or point.partition(".")[0] in ("accept", "claim")
        yield Kill(point, chance.randrange(1, 80 if often else 4))


def run(total: int, seed: int, *, verbose: bool = False) -> Report:
    """Kill `total` lives."""
    chance = random.Random(seed)  # noqa: S311 - the same saga for the same seed
    report = Report()
    todo = list(kills(total, chance))
    while todo:
        folder = Path(tempfile.mkdtemp(prefix="executa-crash-"))
        end = LIVES_ON_A_FILE
        while end < len(todo) and todo[end].point.startswith("recover."):
            end += 1
        some, todo = todo[:end], todo[end:]
        before = len(report.findings)
        _file(folder, some, chance, report, verbose=verbose)
        report.files += 1
        if len(report.findings) > before:
            report.findings.append(f"kept for a look: {folder}")
        else:
            shutil.rmtree(folder)
    return report


def _file(
    folder: Path, some: list[Kill], chance: random.Random, report: Report, *, verbose: bool
) -> None:
    for kill in some:
        ended = _life(folder, chance.randrange(2**32), kill)
        if ended == "killed":
            report.kills += 1
            if kill.point:
                report.reached.add(kill.point)
        else:
            report.findings.append(f"{kill}: the life was not killed, it {ended}")
        found = asyncio.run(verify(folder, finished=False))
        report.findings += [f"{kill}: {each}" for each in found]
        if verbose:
            sys.stdout.write(f"{kill}: {ended}, {len(found)} findings\n")
            sys.stdout.flush()
    ended = _life(folder, chance.randrange(2**32), None)
    if ended != "ended":
        report.findings.append(f"the last life {ended}")
    found = asyncio.run(verify(folder, finished=True)) + asyncio.run(reuse(folder))
    report.findings += [f"at the end: {each}" for each in found]


def _life(folder: Path, seed: int, kill: Kill | None) -> str:
    """Fork, live, die. How it ended, in a word or two."""
    child = os.fork()
    if child == 0:
        status = 3
        try:
            arm = (kill.point, kill.count) if kill is not None and kill.point else None
            live(folder, seed, arm, finish=kill is None)
            status = 0
        except BaseException:  # noqa: BLE001 - it must not go on as the parent
            traceback.print_exc()
        finally:
            os._exit(status)
    if kill is not None and kill.after:
        time.sleep(kill.after)
        os.kill(child, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE + (60 if kill is None else 0)
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "went on for too long"
        time.sleep(0.002)
    if os.WIFSIGNALED(status):
        return "killed" if os.WTERMSIG(status) == signal.SIGKILL else "crashed"
    return "ended" if os.WEXITSTATUS(status) == 0 else "failed"
