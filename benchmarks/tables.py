"""Reports as tables for a person."""

from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.harness import Report, Spread

_NUMBERS: Final = ("calls/s", "p50 µs", "p99 µs", "CPU µs here", "there")


def show(console: Console, report: Report) -> None:
    """Print a report: the medians of each contender and condition, then the ratios.

    The least and the greatest round of every figure are in the JSON.
    """
    table = Table(title=f"{report.suite}: medians; {report.checked:,} answers checked")
    table.add_column("condition")
    table.add_column("contender")
    for heading in _NUMBERS:
        table.add_column(heading, justify="right")
    for row in report.rows:
        spreads = (row.calls_a_second, row.p50_us, row.p99_us, row.cpu_here_us, row.cpu_there_us)
        table.add_row(row.condition, row.contender, *(_short(spread.median) for spread in spreads))
    console.print(table)
    for ratio in report.ratios:
        line = f"{ratio.condition}: {ratio.name}: {_range(ratio.value)}"
        console.print(line, highlight=False, soft_wrap=True)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def _range(spread: Spread) -> str:
    return f"{spread.median:.2f} ({spread.least:.2f} to {spread.greatest:.2f})"
