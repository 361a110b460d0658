"""Which figures of a run are drawn, and how: one chart a suite, and one of the goals."""

from typing import Final

from benchmarks.goals import GOALS, Goal
from benchmarks.model import Document, Report, Row, Verdict
from benchmarks.svg import Bar, Group, Kind, chart
from benchmarks.tables import short

MEASURES: Final[dict[str, tuple[str, str]]] = {
    "framing": ("rate_mb_per_s", "MB a second"),
    "codec": ("rate_mb_per_s", "MB a second"),
    "correlate": ("each_us", "µs for one"),
    "sse": ("rate_mb_per_s", "MB a second"),
    "frames": ("each_us", "µs for a frame"),
    "roundtrip": ("rate_per_s", "invokes a second"),
    "reverse": ("rate_per_s", "invokes a second"),
    "agent": ("rate_per_s", "runs a second"),
    "waiting": ("wall_ms", "ms for all"),
    "coldstart": ("first_result_ms", "ms"),
    "memory": ("resident_mib", "MiB"),
    "plugins": ("cpu_client_us", "µs of the host's CPU for an invoke"),
    "store": ("rate_per_s", "operations a second"),
    "api": ("rate_per_s", "requests a second"),
}
"""What is drawn of a suite: a measure of its rows, and what the axis is called."""

FLOORS: Final = (
    "uvloop pipe",
    "blocking pipe",
    "memcpy and memchr",
    "dict",
    "no deadline",
    "msgspec, unchecked",
    "bare json loop",
    "fdatasync",
    "aiohttp echo",
)


def plots(document: Document) -> dict[str, str]:
    """The charts of a run: SVG text by file name."""
    found: dict[str, str] = {}
    if any(verdict.figure for verdict in document.goals):
        found["goals.svg"] = _goals(document)
    for report in document.reports:
        drawn = _suite(report)
        if drawn:
            found[f"{report.suite}.svg"] = drawn
    return found


def _suite(report: Report) -> str:
    measure, unit = MEASURES.get(report.suite, ("", ""))
    conditions: dict[str, list[Bar]] = {}
    for row in report.rows:
        value = row.values.get(measure)
        if value is not None and value.least > 0:
            bar = Bar(
                row.contender, value.median, value.least, value.greatest,
                short(value.median), _kind(row),
            )  # fmt: skip
            conditions.setdefault(row.condition, []).append(bar)
    if not conditions:
        return ""
    groups = [Group(name, bars) for name, bars in conditions.items()]
    return chart(f"{report.suite}: {unit}", unit, groups)


def _kind(row: Row) -> Kind:
    if row.contender.startswith("executa"):
        return "ours"
    return "floor" if row.contender.startswith(FLOORS) else "peer"


def _goals(document: Document) -> str:
    """How far beyond its must each goal is: 1 is the must itself, more is better."""
    goals = {(goal.suite, goal.key): goal for goal in GOALS}
    bars: list[Bar] = []
    for verdict in document.goals:
        goal = goals.get((verdict.suite, verdict.key))
        if goal is None or goal.must is None or verdict.figure is None:
            continue
        figure = verdict.figure
        reached = [_share(goal, value) for value in (figure.median, figure.least, figure.greatest)]
        bars.append(
            Bar(
                _named(verdict),
                reached[0], min(reached[1:]), max(reached[1:]),
                f"{reached[0]:.2f}", "ours" if verdict.met else "peer",
            )
        )  # fmt: skip
    title = "goals: the figure over its must, turned so that more is better"
    return chart(title, "times the must", [Group("", bars)], mark=1.0, mark_name="must")


def _named(verdict: Verdict) -> str:
    """Short enough to stand beside a bar."""
    key = verdict.key.replace("anna-app-runtime-local", "the runner")
    return f"{verdict.suite}, {key.replace('_', ' ')}"


def _share(goal: Goal, value: float) -> float:
    assert goal.must is not None
    return goal.must / value if goal.sense == "at most" else value / goal.must
