"""What a run found, and what it means: which failures count, and the exit code."""

from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from executa_conformance.catalogue import REVISION, requirements
from executa_conformance.model import WORDS, Event, Requirement, Result, Role, Word

FORMAT: Final = 1
"""Version of the JSON report's shape."""


_ORDER: Final = {
    level: number
    for number, level in enumerate(("core", "v2", "sampling", "agent", "storage", "files"))
}


class Report(Struct, kw_only=True):
    """One run of the kit.

    `subject` is what was checked, in words; `name` and `version` what it calls itself.
    `began` is UTC in ISO 8601, `seconds` how long the run took. `levels` says of each level
    of conformance ``pass``, ``fail``, or why it does not apply. `stale` are expected failures
    that did not fail. `notes` are for the subject's author, `tour` the lines by which the
    kit got to know it. `unchecked` are the requirements of the role that no check can see.
    """

    format: int = FORMAT
    kit: str = field(default_factory=lambda: version("executa-conformance"))
    revision: str = REVISION
    role: Role
    subject: str
    name: str = ""
    version: str = ""
    began: str
    seconds: float
    strict: bool = False
    levels: dict[str, str] = field(default_factory=dict[str, str])
    summary: dict[Word, int] = field(default_factory=dict[Word, int])
    failed_musts: int = 0
    exit_code: int = 0
    stale: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    tour: list[Event] = field(default_factory=list[Event])
    checks: list[Result]
    unchecked: list[Requirement] = field(default_factory=list[Requirement])


class Expected:
    """The failures that are expected: one check name, requirement id or pattern a line.

    Blank lines and what follows ``#`` is ignored.
    """

    def __init__(self, text: str = "") -> None:
        lines = (line.partition("#")[0].strip() for line in text.splitlines())
        self.patterns = [line for line in lines if line]

    @classmethod
    def read(cls, path: Path | None) -> "Expected":
        """The list in a file; nothing is expected without one. Raises OSError."""
        return cls("" if path is None else path.read_text(encoding="utf-8"))

    def names(self, result: Result) -> list[str]:
        """The entries that mean this check."""
        words = (result.check, result.requirement.id)
        return [line for line in self.patterns if any(fnmatchcase(word, line) for word in words)]


def judge(report: Report, expected: Expected, *, only: bool = False) -> Report:
    """Fill in what the results mean. With `only` some checks did not run, so no entry is stale.

    A failure counts if its requirement is a must, or if it is a departure that `strict`
    refuses; and if it is not expected. The run also fails for an expected failure that is
    none any more.
    """
    used: set[str] = set()
    for result in report.checks:
        broken = result.word == "fail" or (report.strict and result.word == "non-strict")
        matters = result.requirement.severity == "must" or result.word == "non-strict"
        entries = expected.names(result)
        if broken:
            used.update(entries)
        result.expected = broken and bool(entries)
        result.counts = broken and matters and not entries
    met = {entry for result in report.checks for entry in expected.names(result)}
    report.stale = [
        entry for entry in expected.patterns if entry not in used and (entry in met or not only)
    ]
    report.summary = {word: sum(result.word == word for result in report.checks) for word in WORDS}
    report.failed_musts = sum(result.counts for result in report.checks)
    report.exit_code = 1 if report.failed_musts or report.stale else 0
    report.levels = {level: _level(report, level) for level in _levels(report)}
    report.unchecked = [
        row for row in requirements().values() if row.unchecked and report.role in row.roles
    ]
    return report


def _levels(report: Report) -> list[str]:
    """The levels of the run: what others build on comes first."""
    found = list(dict.fromkeys(result.level for result in report.checks))
    return sorted(found, key=lambda level: _ORDER.get(level, len(_ORDER)))


def _level(report: Report, level: str) -> str:
    """What is said of one level: the reason where none of its checks applies."""
    results = [result for result in report.checks if result.level == level]
    if any(result.counts for result in results):
        return "fail"
    told = [result for result in results if result.word != "not-applicable"]
    return "pass" if told else results[0].message
