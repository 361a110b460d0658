"""From a target and the options to reports and an exit code: the same for every command."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime

from msgspec import Struct, field

from executa_conformance.catalogue import requirements
from executa_conformance.cli.options import Options
from executa_conformance.model import Check, Event, Result, Role
from executa_conformance.patience import Patience
from executa_conformance.registry import checks, select
from executa_conformance.report import Report, judge
from executa_conformance.reports import FORMS
from executa_conformance.reports.terminal import Terminal
from executa_conformance.runner import Told
from executa_protocol.errors import UsageError


class Ran(Struct):
    """What a command's own part gives back: the results, who was checked, and what to tell.

    `tour` are the lines of what came before the checks.
    """

    results: list[Result]
    name: str = ""
    version: str = ""
    notes: list[str] = field(default_factory=list[str])
    tour: list[Event] = field(default_factory=list[Event])


Work = Callable[[tuple[Check, ...], Patience, int, Told | None], Awaitable[Ran]]
"""Runs these checks with this patience, so many at a time, and tells each result."""


def run(role: Role, subject: str, options: Options, work: Work) -> int:
    """Select, run, judge, write the reports, print. Returns the exit code.

    0: no must failed. 1: one failed, or an expected failure did not. Raises `UsageError` for
    options that cannot be met.
    """
    found = _selected(role, options.only)
    if options.list:
        return _list(role, found)
    if options.jobs < 1:
        raise UsageError("--jobs must be at least 1")
    expected, patience = options.expected(), options.waits()
    terminal = Terminal(quiet=options.quiet)
    began = datetime.now(UTC).isoformat(timespec="seconds")
    start = time.monotonic()

    def told(result: Result) -> None:
        terminal.progress(result, len(found))

    async def whole() -> Ran:
        return await work(found, patience, options.jobs, told)

    ran = asyncio.run(whole())
    report = Report(
        role=role,
        subject=subject,
        name=ran.name,
        version=ran.version,
        began=began,
        seconds=round(time.monotonic() - start, 3),
        strict=options.strict,
        notes=ran.notes,
        tour=ran.tour,
        checks=ran.results,
    )
    judge(report, expected, only=bool(options.only))
    if not options.quiet or report.exit_code:
        terminal.report(report)
    write(report, options)
    return report.exit_code


def write(report: Report, options: Options) -> None:
    """Write every file that was asked for. Raises `UsageError` for one that cannot be written."""
    for name, path in options.files().items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(FORMS[name](report), encoding="utf-8")
        except OSError as fault:
            msg = f"{path} cannot be written: {fault.strerror}"
            raise UsageError(msg) from None


def _selected(role: Role, patterns: Iterable[str]) -> tuple[Check, ...]:
    try:
        return select(checks(role), patterns)
    except ValueError as fault:
        raise UsageError(str(fault)) from None


def _list(role: Role, found: Iterable[Check]) -> int:
    """Every check with its requirement, then what no check can see."""
    rows = requirements()
    out: list[str] = []
    for check in found:
        row = rows[check.requirement]
        out.append(f"{check.name}  [{check.level}, {row.severity}; {row.source}]\n    {row.rule}")
    out += [
        f"{row.id}  [no check, {row.severity}; {row.source}]\n    {row.rule}\n    {row.unchecked}"
        for row in rows.values()
        if row.unchecked and role in row.roles
    ]
    sys.stdout.write("\n".join(out) + "\n")
    return 0
