"""Runs suites one after the other and makes a document of their reports."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import uvloop
from rich.console import Console

from benchmarks import goals, machine, suites
from benchmarks.model import VERSION, Document, Report
from benchmarks.scale import SEED, Scale
from benchmarks.tables import show

SUITE_LIMIT: Final = 1_800.0
"""Seconds after which a suite is given up: every wait within it is bounded far below."""


def execute(names: Sequence[str], scale: Scale, console: Console) -> Document:
    """Run suites with their tables on `console` and progress on standard error."""
    progress = Console(stderr=True)
    document = Document(
        version=VERSION,
        quick=scale != Scale(),
        seed=SEED,
        environment=machine.environment(),
        reports=[],
    )
    begun = time.monotonic()
    for number, name in enumerate(names, 1):
        told = f"{name} ({number} of {len(names)}), {time.monotonic() - begun:.0f} s so far"
        with progress.status(told):
            report = uvloop.run(bounded(name, scale))
        document.reports.append(report)
        show(console, report)
    document.goals = goals.judge(document)
    return document


async def bounded(name: str, scale: Scale) -> Report:
    """One suite with the seconds that it took. No suite may hang for ever."""
    begun = time.monotonic()
    async with asyncio.timeout(SUITE_LIMIT):
        report = await suites.load(name)(scale)
    report.seconds = round(time.monotonic() - begun, 2)
    return report
