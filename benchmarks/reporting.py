"""Writes the document about a run: a template's words with the run's tables and plots.

What the words say about conditions and limits stands in `report_template.md`; figures are
never typed in by hand.
"""

from collections.abc import Iterable
from pathlib import Path
from string import Template
from typing import Any, Final

from benchmarks import suites
from benchmarks.model import Document, Report, encode
from benchmarks.plots import plots
from benchmarks.tables import heading, judgement, measures, reached, short, spread

DOCS: Final = Path(__file__).parents[1] / "docs"
REPORT: Final = DOCS / "benchmarks.md"
REPORT_FIGURES: Final = DOCS / "benchmarks" / "run.json"
"""The run that the document in the repository tells of."""

TEMPLATE: Final = Path(__file__).with_name("report_template.md")


def write_report(document: Document, output: Path) -> list[Path]:
    """Write the document, its plots and its figures; give the paths.

    Plots and figures stand in a folder beside it that has its name; plots of an earlier run
    that are not drawn any more are removed.
    """
    folder = output.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = plots(document)
    for stale in folder.glob("*.svg"):
        if stale.name not in drawn:
            stale.unlink()
    written: list[Path] = []
    for name, text in drawn.items():
        written.append(folder / name)
        written[-1].write_text(text, encoding="utf-8")
    written.append(folder / REPORT_FIGURES.name)
    written[-1].write_bytes(encode(document))
    written.append(output)
    output.write_text(markdown(document, folder.name), encoding="utf-8")
    return written


def markdown(document: Document, folder: str) -> str:
    """The text of the document, its plots expected in `folder` beside it."""
    drawn = plots(document)
    text = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        conditions=_conditions(document),
        goals=_goals(document),
        goals_plot=_plot("goals", folder) if "goals.svg" in drawn else "",
        suites="\n".join(
            _suite(report, folder, drawn=f"{report.suite}.svg" in drawn)
            for report in document.reports
        ),
        kind="quick, and therefore rough" if document.quick else "full",
        seed=document.seed,
    )
    return text.rstrip() + "\n"


def _conditions(document: Document) -> str:
    given = document.environment
    versions: dict[str, str] = given.get("versions", {})
    rows = [
        ("machine", f"{given.get('processor')}, {given.get('machine')}"),
        ("cores", f"{given.get('cores')}, of which {given.get('usable_cores')} usable"),
        ("memory", f"{given.get('memory_mib', 0):,} MiB"),
        ("system", f"{given.get('system')} {given.get('release')}"),
        ("load at the start", f"{given.get('load_average')}"),
        ("Python", f"{given.get('implementation')} {given.get('python')}"),
        ("SQLite", given.get("sqlite")),
        ("versions", ", ".join(f"{name} {number}" for name, number in versions.items())),
    ]
    return _table(("", ""), rows)


def _goals(document: Document) -> str:
    rows = [
        (
            verdict.suite,
            verdict.title,
            verdict.must,
            verdict.aim,
            reached(verdict),
            judgement(verdict) if verdict.met else f"**{judgement(verdict)}**",
        )
        for verdict in document.goals
    ]
    return _table(("suite", "figure", "must", "aim", "reached", ""), rows)


def _suite(report: Report, folder: str, *, drawn: bool) -> str:
    columns = measures(report)
    rows: list[tuple[str, ...]] = []
    for row in report.rows:
        if row.void:
            rows.append((row.condition, row.contender, f"void: {row.void}"))
            continue
        cells = (row.values.get(column) for column in columns)
        shown = (short(cell.median) if cell else "" for cell in cells)
        rows.append((row.condition, row.contender, *shown))
    parts = [f"### {report.suite}", "", suites.describe(report.suite), ""]
    parts += [_plot(report.suite, folder), ""] if drawn else []
    parts += [_table(("condition", "contender", *map(heading, columns)), rows), ""]
    for figure in report.figures:
        note = f" ({figure.note})" if figure.note else ""
        parts.append(f"- {figure.title}: {spread(figure.value, figure.unit)}{note}")
    for gone in report.absent:
        parts.append(f"- {gone.contender} was not measured: {gone.why}")
    parts.append(f"- {report.checked:,} answers checked in {report.seconds:.0f} s")
    return "\n".join(parts) + "\n"


def _plot(name: str, folder: str) -> str:
    return f"![{name}]({folder}/{name}.svg)"


def _table(headings: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    for row in rows:
        cells = [*map(_escaped, row), *[""] * (len(headings) - len(row))]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _escaped(cell: object) -> str:
    return str(cell).replace("|", "\\|")
