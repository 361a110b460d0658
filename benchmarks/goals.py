"""What the figures must reach, as data, and how a run is held against it.

A goal is missed where its figure is missing: because a contender is not installed, or
because one answered wrongly. Goals of suites that were not run are not judged.
"""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from benchmarks.model import STATED, Document, Figure, Report, Verdict


class Goal(Struct, frozen=True):
    """One line of the table. Without `must` the figure is stated and nothing is asked of it.

    `needs` are the contenders without which there is no figure.
    """

    suite: str
    key: str
    title: str
    sense: Literal["at most", "at least"]
    must: float | None = None
    aim: float | None = None
    unit: str = "x"
    needs: tuple[str, ...] = ()

    def judge(self, report: Report) -> Verdict:
        """Hold this goal against the report of its suite."""
        found = report.figure(self.key)
        return Verdict(
            suite=self.suite,
            key=self.key,
            title=self.title,
            must=self._bound(self.must),
            aim=self._bound(self.aim),
            met=found is not None and self._holds(found, self.must),
            aimed=found is not None and self._holds(found, self.aim),
            figure=found.value if found else None,
            unit=self.unit,
            absent=found is None and bool(self._absent(report)),
            why=found.note if found else self._why_missing(report),
        )

    def _holds(self, found: Figure, bound: float | None) -> bool:
        if bound is None:
            return True
        value = found.value.median
        return value <= bound if self.sense == "at most" else value >= bound

    def _bound(self, bound: float | None) -> str:
        if bound is None:
            return STATED
        sign = "≤" if self.sense == "at most" else "≥"
        unit = "" if self.unit == "x" else f" {self.unit}"
        return f"{sign} {bound:g}{unit}"

    def _absent(self, report: Report) -> list[str]:
        return [gone.contender for gone in report.absent if gone.contender in self.needs]

    def _why_missing(self, report: Report) -> str:
        absent = self._absent(report)
        if absent:
            return f"absent: {', '.join(absent)}"
        voided = [row for row in report.voided if row.void]
        if voided:
            return f"void: {voided[0].contender}: {voided[0].void}"[:120]
        return "not measured"


_ANNA: Final = "anna-app-runtime-local"

GOALS: Final[tuple[Goal, ...]] = (
    Goal("roundtrip", "p50_over_uvloop_floor_apart",
         "1 in flight, a core each: p50 over the uvloop pipe's", "at most", 2.2, 1.5),
    Goal("roundtrip", "p50_over_uvloop_floor", "the same where the system likes to put them",
         "at most"),
    Goal("roundtrip", "p50_over_uvloop_floor_pinned", "the same on one core", "at most"),
    Goal("roundtrip", "rate_over_mcp", "64 in flight: calls a second over mcp's low level",
         "at least", 40, 60, needs=("mcp",)),
    Goal("roundtrip", f"rate_over_{_ANNA}", f"64 in flight: calls a second over {_ANNA}",
         "at least", 2, 3, needs=(_ANNA,)),
    Goal("roundtrip", f"rate_over_{_ANNA}_pinned",
         f"64 in flight, one core: calls a second over {_ANNA}",
         "at least", 3.5, 5, needs=(f"{_ANNA}, one core",)),
    Goal("roundtrip", f"rate_over_{_ANNA}, uvloop", f"64 in flight: over {_ANNA} under uvloop",
         "at least", needs=(f"{_ANNA}, uvloop",)),
    Goal("roundtrip", f"rate_over_{_ANNA}, uvloop_pinned",
         f"64 in flight, one core: over {_ANNA} under uvloop",
         "at least", needs=(f"{_ANNA}, uvloop, one core",)),
    Goal("roundtrip", "cpu_host", "64 in flight: CPU of the host for one invoke",
         "at most", 20, 15, unit="µs"),
    Goal("roundtrip", "cpu_plugin_inline", "64 in flight: CPU of the plugin, inline tool",
         "at most", 10, 8, unit="µs"),
    Goal("roundtrip", "cpu_plugin_async", "64 in flight: CPU of the plugin, async tool",
         "at most", 16, 12, unit="µs"),
    Goal("roundtrip", "cpu_plugin_thread", "64 in flight: CPU of the plugin, tool in a thread",
         "at most", unit="µs"),
    Goal("roundtrip", "cost_of_many", "CPU of one invoke at 10,000 in flight over 64",
         "at most", 1.5, 1.2),
    Goal("reverse", "rate_over_mcp", "64 in flight: invokes with a sampling call over mcp's",
         "at least", 30, 40, needs=("mcp",)),
    Goal("framing", "over_readuntil_1k", "1 KiB frames: over StreamReader.readuntil",
         "at least", 5, 6.5),
    Goal("framing", "over_bound_64k", "64 KiB frames: over the memcpy and memchr bound",
         "at least", 0.5, 0.7),
    Goal("framing", "over_bound_1m", "1 MiB frames: over the memcpy and memchr bound",
         "at least", 0.5, 0.7),
    Goal("codec", "unchecked_over_json",
         "an agent run of 4,096 frames: decoded, events checked, passed on; over json",
         "at least", 6, 8),
    Goal("codec", "over_json", "the same with the line's check (R-14), which json has not",
         "at least"),
    Goal("sse", "over_httpx_sse", "16 KiB chunks: over httpx-sse and json",
         "at least", 5, 6.5, needs=("httpx-sse",)),
    Goal("coldstart", "over_bare", "spawn to first result over a bare json loop's",
         "at most", 3.5, 2.5),
    Goal("coldstart", "over_mcp", "spawn to first result over an mcp server's",
         "at most", round(1 / 6, 4), 1 / 8, needs=("mcp",)),
    Goal("memory", "over_mcp", "an idle plugin's resident memory over mcp's",
         "at most", 0.45, 0.37, needs=("mcp",)),
    Goal("store", "over_a2a", "64 callers, FULL: lifecycles a second over a2a-sdk's",
         "at least", 60, 90, needs=("a2a-sdk",)),
    Goal("store", "over_dbos", "64 callers, FULL: lifecycles a second over dbos's",
         "at least", 50, 100, needs=("dbos",)),
    Goal("store", "over_a2a_wal", "the same over a2a-sdk on a write-ahead log",
         "at least", needs=("a2a-sdk, WAL",)),
    Goal("store", "over_dbos_wal", "the same over dbos on a write-ahead log",
         "at least", needs=("dbos, WAL",)),
    Goal("plugins", "cost_of_200", "CPU of one invoke at 200 plugins x 64 over 1 plugin x 64",
         "at most", 1.3, 1.1),
    Goal("plugins", "cost_of_200_single", "CPU of one invoke at 200 plugins x 1 over 1 x 64",
         "at most"),
    Goal("plugins", "cost_of_200_roaming", "200 plugins x 64, callers that go from one to the next",
         "at most"),
)  # fmt: skip


def judge(document: Document, goals: Sequence[Goal] = GOALS) -> list[Verdict]:
    """The verdicts on all goals whose suites are in the document."""
    verdicts: list[Verdict] = []
    for goal in goals:
        report = document.report(goal.suite)
        if report is not None:
            verdicts.append(goal.judge(report))
    return verdicts


def exit_code(document: Document, *, chosen: bool = False) -> int:
    """1 if an answer was wrong, or if a must is missed in a full run; else 0.

    Of suites that somebody has `chosen`, a contender that is not installed is shown as a
    miss and does not fail the run: whoever asks for one suite wants its figures.
    """
    if any(report.voided for report in document.reports):
        return 1
    missed = any(not verdict.met and not (chosen and verdict.absent) for verdict in document.goals)
    return int(missed and not document.quick)
