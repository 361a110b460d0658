"""Each suite once, with next to nothing to do and without the extra: no time is looked at."""

import pytest

from benchmarks import suites
from benchmarks.execution import bounded
from benchmarks.goals import GOALS
from benchmarks.scale import Scale

PLAIN = ("framing", "codec", "correlate", "sse", "frames", "reverse", "agent", "coldstart",
         "memory")  # fmt: skip
LONG = tuple(name for name in suites.NAMES if name not in PLAIN)


async def measured(name: str) -> None:
    """Run a suite; everything it measured must have been right and be there."""
    report = await bounded(name, Scale.tiny())
    assert report.suite == name
    assert [(row.contender, row.void) for row in report.voided] == []
    assert report.checked > 0
    assert any(row.contender.startswith("executa") for row in report.rows)
    for row in report.rows:
        assert all(value.least <= value.median <= value.greatest for value in row.values.values())
        assert all(value.least >= 0 for value in row.values.values())
    gone = {missing.contender for missing in report.absent}
    for goal in GOALS:
        if goal.suite == name and not goal.needs:
            assert report.figure(goal.key) is not None, goal.key
        elif goal.suite == name:
            assert report.figure(goal.key) is not None or gone >= set(goal.needs), goal.key


@pytest.mark.parametrize("name", PLAIN)
async def test_a_suite_measures_what_its_goals_need(name: str) -> None:
    await measured(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
async def test_a_long_suite_measures_what_its_goals_need(name: str) -> None:
    await measured(name)
