"""Two runs side by side: which measures and figures of the second are others than before."""

from typing import Final

from msgspec import Struct
from rich.console import Console
from rich.table import Table

from benchmarks.model import Document, Report, Spread
from benchmarks.tables import heading, short

MORE_IS_BETTER: Final = ("_per_s",)
COSTS: Final = ("_us", "_ms", "_ns", "_mib")


class Change(Struct, frozen=True):
    """A measure or a figure that both runs have.

    `apart` says that no round of the one is among the rounds of the other: what overlaps may
    be noise. `better` is None where neither more nor less of it is good in itself.
    """

    suite: str
    condition: str
    contender: str
    measure: str
    before: Spread
    after: Spread
    better: bool | None = None

    @property
    def quotient(self) -> float:
        """The second median over the first; 1 where the first is zero."""
        return self.after.median / self.before.median if self.before.median else 1.0

    @property
    def apart(self) -> bool:
        """Whether the spreads do not overlap."""
        return self.after.least > self.before.greatest or self.after.greatest < self.before.least


def changes(before: Document, after: Document) -> list[Change]:
    """Everything that both runs measured, in the order of the second."""
    found: list[Change] = []
    for report in after.reports:
        earlier = before.report(report.suite)
        if earlier is not None:
            found += _measures(earlier, report)
            found += _figures(earlier, report)
    return found


def _measures(before: Report, after: Report) -> list[Change]:
    known = {(row.condition, row.contender): row.values for row in before.rows}
    return [
        Change(
            after.suite, row.condition, row.contender, heading(name),
            known[place][name], value, _better(name, known[place][name], value),
        )
        for row in after.rows
        if (place := (row.condition, row.contender)) in known
        for name, value in row.values.items()
        if name in known[place]
    ]  # fmt: skip


def _figures(before: Report, after: Report) -> list[Change]:
    return [
        Change(after.suite, figure.title, "", figure.unit, earlier.value, figure.value)
        for figure in after.figures
        if (earlier := before.figure(figure.key)) is not None and earlier.note == figure.note
    ]


def _better(name: str, before: Spread, after: Spread) -> bool | None:
    if name.endswith(MORE_IS_BETTER):
        return after.median > before.median
    return after.median < before.median if name.endswith(COSTS) else None


def warnings(before: Document, after: Document) -> list[str]:
    """Why the two may not be comparable, a sentence each."""
    told: list[str] = []
    if before.quick or after.quick:
        told.append("at least one of them is a quick run: its spreads are wide")
    for name in ("python", "machine", "processor", "cores", "usable_cores", "release"):
        first, second = (each.environment.get(name) for each in (before, after))
        if first != second:
            told.append(f"{name} is {first!r} in the one and {second!r} in the other")
    return told


def show_changes(
    console: Console, before: Document, after: Document, *, everything: bool = False
) -> None:
    """Print what changed by 5 % or more with spreads apart; with `everything` all of it."""
    for sentence in warnings(before, after):
        console.print(f"note: {sentence}", highlight=False, markup=False, soft_wrap=True)
    found = changes(before, after)
    shown = [each for each in found if everything or _matters(each)]
    table = Table(title="the second run over the first", title_justify="left")
    for name in ("suite", "condition", "contender", "measure"):
        table.add_column(name)
    for name in ("before", "after", "over before"):
        table.add_column(name, justify="right")
    for each in shown:
        colour = {True: "green", False: "red", None: "default"}[each.better]
        table.add_row(
            each.suite, each.condition, each.contender, each.measure,
            short(each.before.median), short(each.after.median),
            f"[{colour}]{each.quotient:.2f}[/{colour}]",
        )  # fmt: skip
    if shown:
        console.print(table)
    told = f"{len(shown)} of {len(found)} measures are shown"
    told += "" if everything else "; the others changed by less than 5 %, or their rounds overlap"
    console.print(told, highlight=False, soft_wrap=True)


def _matters(change: Change) -> bool:
    return change.apart and abs(change.quotient - 1) >= 0.05
