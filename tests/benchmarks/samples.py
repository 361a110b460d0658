"""Documents of runs, as small as they can be."""

from typing import Any

from benchmarks.model import VERSION, Document, Figure, Report, Row, Spread


def spread(median: float, least: float | None = None, greatest: float | None = None) -> Spread:
    """A spread of three rounds."""
    low = median if least is None else least
    return Spread(median, low, median if greatest is None else greatest, 3)


def report(suite: str = "roundtrip", **figures: float) -> Report:
    """A report with one row and these figures."""
    values = {"rate_per_s": spread(1_000, 900, 1_100), "p50_us": spread(12, 11, 14)}
    return Report(
        suite,
        rows=[Row("1 in flight", "executa", values), Row("1 in flight", "mcp", values)],
        figures=[Figure(key, f"the figure {key}", spread(value)) for key, value in figures.items()],
        checked=3_000,
        seconds=2.0,
    )


def document(*reports: Report, quick: bool = False, **environment: Any) -> Document:
    """A document of reports."""
    known: dict[str, Any] = {
        "python": "3.11.0",
        "implementation": "CPython",
        "system": "Linux",
        "release": "6",
        "machine": "x86_64",
        "processor": "a processor",
        "cores": 2,
        "usable_cores": 2,
        "memory_mib": 1_024,
        "load_average": 0.5,
        "sqlite": "3.40.0",
        "versions": {"msgspec": "0.19"},
    }
    return Document(VERSION, quick, 1, known | environment, list(reports))
