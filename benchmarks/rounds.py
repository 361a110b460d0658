"""Rounds in which the contenders take turns, and what is made of them.

A shared machine is noisy for seconds at a time. So every contender is measured in every
round, each round begins with another one, and ratios are taken within the same round.
A contender that answers wrongly is void from then on; the others go on.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from benchmarks import progress
from benchmarks.model import Absent, Figure, Missing, Report, Row, Spread, WrongAnswer, spreads

T = TypeVar("T")

Sample = dict[str, float]
"""What one contender needed in one round, by the names of `Row.values`."""

CHECKED: Final = "checked"
"""The measure that counts the answers which were checked; it goes to the report."""


class Trial(Struct):
    """One contender under one condition.

    `take` measures once; it raises `WrongAnswer` or `Absent`. `warm_up` is run once before,
    uncounted.
    """

    name: str
    take: Callable[[], Awaitable[Sample]]
    warm_up: Callable[[], Awaitable[object]] | None = None


class Series(Struct):
    """The samples of all contenders under one condition, by name, in the order of rounds."""

    condition: str
    samples: dict[str, list[Sample]]
    void: dict[str, str]

    def values(self, contender: str, measure: str) -> list[float] | None:
        """One measure of a contender, round by round; None if it is void or absent."""
        taken = self.samples.get(contender)
        if not taken or contender in self.void:
            return None
        return [sample[measure] for sample in taken]


async def alternate(condition: str, trials: Sequence[Trial], rounds: int, report: Report) -> Series:
    """Measure all trials in alternating rounds and put their rows into `report`."""
    series = Series(condition, {trial.name: [] for trial in trials}, {})
    gone: set[str] = set()
    progress.tell(f"{report.suite}, {condition}")
    for trial in trials:
        if trial.warm_up is not None:
            await _attempt(trial.name, trial.warm_up, series, gone, report)
    for number in range(rounds):
        turn = number % max(1, len(trials))
        for trial in (*trials[turn:], *trials[:turn]):
            if trial.name in gone or trial.name in series.void:
                continue
            sample = await _attempt(trial.name, trial.take, series, gone, report)
            if sample is not None:
                report.checked += int(sample.pop(CHECKED, 0))
                series.samples[trial.name].append(sample)
    for trial in trials:
        if trial.name in series.void:
            report.rows.append(Row(condition, trial.name, void=series.void[trial.name]))
        elif series.samples[trial.name]:
            report.rows.append(Row(condition, trial.name, spreads(series.samples[trial.name])))
    return series


async def _attempt(
    name: str, work: Callable[[], Awaitable[T]], series: Series, gone: set[str], report: Report
) -> T | None:
    try:
        return await work()
    except Absent as absence:
        gone.add(name)
        missing(report, name, str(absence))
    except WrongAnswer as fault:
        series.void[name] = str(fault)
    return None


def missing(report: Report, contender: str, why: str) -> None:
    """Note once that a contender is not there."""
    if all(known.contender != contender for known in report.absent):
        report.absent.append(Missing(contender, why))


def ratio(
    report: Report,
    key: str,
    title: str,
    over: Sequence[float] | None,
    under: Sequence[float] | None,
    *,
    note: str = "",
) -> None:
    """`over` divided by `under`, each pair from the same round, as a figure of the report.

    Without one of the two there is no figure.
    """
    if over and under:
        quotients = [first / second for first, second in zip(over, under, strict=True) if second]
        if quotients:
            report.figures.append(Figure(key, title, Spread.of(quotients), "x", note))


def figure(
    report: Report,
    key: str,
    title: str,
    values: Sequence[float] | None,
    *,
    unit: str,
) -> None:
    """A cost in its own unit as a figure of the report, if it was measured."""
    if values:
        report.figures.append(Figure(key, title, Spread.of(values), unit))
