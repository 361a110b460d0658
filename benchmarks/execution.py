"""Runs suites one after the other and makes a document of their reports."""

import asyncio
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Final

import uvloop
from rich.console import Console
from rich.status import Status

from benchmarks import goals, machine, progress, suites
from benchmarks.model import VERSION, Document, Report, Row
from benchmarks.scale import SEED, Scale
from benchmarks.tables import show

SUITE_LIMIT: Final = 1_800.0
"""Seconds after which a suite is given up: every wait within it is bounded far below."""


def execute(names: Sequence[str], scale: Scale, console: Console) -> Document:
    """Run suites with their tables on `console` and progress on standard error.

    A suite that fails is void, and the others are run all the same.
    """
    waiting = Console(stderr=True)
    document = Document(
        version=VERSION,
        quick=scale != Scale(),
        seed=SEED,
        environment=machine.environment(),
        reports=[],
    )
    for number, name in enumerate(names, 1):
        place = f"{number} of {len(names)}: "
        if not waiting.is_terminal:
            waiting.print(place + name, highlight=False)
        with waiting.status(place + name) as status, progress.shown_by(_updating(status, place)):
            report = uvloop.run(bounded(name, scale))
        document.reports.append(report)
        show(console, report)
    document.goals = goals.judge(document)
    return document


def _updating(status: Status, place: str) -> Callable[[str], None]:
    begun = time.monotonic()

    def update(what: str) -> None:
        status.update(f"{place}{what}, {time.monotonic() - begun:.0f} s")

    return update


async def bounded(name: str, scale: Scale) -> Report:
    """One suite with the seconds that it took. No suite may hang, or take the others along."""
    begun = time.monotonic()
    try:
        async with asyncio.timeout(SUITE_LIMIT):
            report = await suites.load(name)(scale)
    except TimeoutError:
        report = _void(name, f"it had not ended after {SUITE_LIMIT:g} s")
    except Exception as fault:  # noqa: BLE001 - told, whatever it is
        traceback.print_exc()
        report = _void(name, f"{type(fault).__name__}: {fault}"[:500])
    report.seconds = round(time.monotonic() - begun, 2)
    return report


def _void(name: str, why: str) -> Report:
    return Report(name, rows=[Row("the suite", "executa", void=why)])
