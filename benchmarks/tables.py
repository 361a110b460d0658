"""Reports and verdicts as tables for a person at a terminal."""

from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.model import STATED, Document, Report, Spread, Verdict

UNITS: Final = {
    "_per_s": "/s",
    "_us": "µs",
    "_ns": "ns",
    "_ms": "ms",
    "_mib": "MiB",
    "_mb_per_s": "MB/s",
}


WIDTH: Final = 160
"""Columns where nobody says how many there are: in a file or a pipe."""


def console(*, stderr: bool = False) -> Console:
    """A console that is wide enough for the tables if it is no terminal."""
    made = Console(stderr=stderr)
    return made if made.is_terminal else Console(stderr=stderr, width=WIDTH)


def heading(measure: str) -> str:
    """A measure's name as a heading: ``cpu_client_us`` becomes ``cpu client µs``."""
    for suffix in sorted(UNITS, key=len, reverse=True):
        if measure.endswith(suffix):
            return f"{measure.removesuffix(suffix).replace('_', ' ')} {UNITS[suffix]}"
    return measure.replace("_", " ")


def measures(report: Report) -> list[str]:
    """All measures of a report's rows, in the order in which they first appear."""
    found: dict[str, None] = {}
    for row in report.rows:
        found.update(dict.fromkeys(row.values))
    return list(found)


def show(console: Console, report: Report) -> None:
    """Print a report: medians of each contender and condition, then its figures.

    The least and the greatest round of every measure are in the JSON.
    """
    title = f"{report.suite}: medians; {report.checked:,} answers checked"
    table = Table(title=title, title_justify="left")
    table.add_column("condition")
    table.add_column("contender")
    columns = measures(report)
    for column in columns:
        table.add_column(heading(column), justify="right")
    for row in report.rows:
        if row.void:
            table.add_row(row.condition, row.contender, f"[red]void: {row.void[:60]}[/red]")
            continue
        cells = (row.values.get(column) for column in columns)
        shown = (short(cell.median) if cell else "" for cell in cells)
        table.add_row(row.condition, row.contender, *shown)
    console.print(table)
    for figure in report.figures:
        note = f" ({figure.note})" if figure.note else ""
        line = f"  {figure.title}: {spread(figure.value, figure.unit)}{note}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for gone in report.absent:
        line = f"  {gone.contender} was not measured: {gone.why}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def show_goals(console: Console, document: Document) -> None:
    """Print the table of goals, with a sentence on what the run may be judged by."""
    if not document.goals:
        return
    table = Table(title="goals", title_justify="left")
    for name in ("suite", "figure", "must", "aim", "reached", ""):
        table.add_column(name, justify="right" if name == "reached" else "left")
    for verdict in document.goals:
        table.add_row(
            verdict.suite, verdict.title, verdict.must, verdict.aim, reached(verdict),
            _word(verdict),
        )  # fmt: skip
    console.print(table)
    missed = sum(not verdict.met for verdict in document.goals)
    line = f"{len(document.goals) - missed} of {len(document.goals)} goals met"
    if document.quick:
        line += "; a quick run is rough, and goals are judged on full runs"
    console.print(line, highlight=False, soft_wrap=True)


def reached(verdict: Verdict) -> str:
    """The figure of a verdict, or why there is none."""
    if verdict.figure is None:
        return verdict.why
    note = f" ({verdict.why})" if verdict.why else ""
    return spread(verdict.figure, verdict.unit) + note


def short(value: float) -> str:
    """A number with about three digits that matter."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if value >= 10 else f"{value:,.2f}"


def spread(value: Spread, unit: str) -> str:
    """Median, least and greatest: ``4.20 (3.91 to 4.55)``."""
    unit = "" if unit == "x" else f" {unit}"
    shown = _figure(value.median) + unit
    return f"{shown} ({_figure(value.least)} to {_figure(value.greatest)})"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def judgement(verdict: Verdict) -> str:
    """A verdict in a word or four."""
    if not verdict.met:
        return "missed"
    if verdict.must == STATED:
        return "stated"
    return "met, and the aim" if verdict.aimed else "met"


def _word(verdict: Verdict) -> str:
    return f"[{'green' if verdict.met else 'red'}]{judgement(verdict)}[/]"
