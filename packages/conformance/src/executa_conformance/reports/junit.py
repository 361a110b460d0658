"""JUnit XML, as CI systems read it: one suite a level, one case a check."""

import re
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from executa_conformance.model import Event, Result
from executa_conformance.report import Report

_NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report) -> str:
    """The report as JUnit XML.

    What counts is a failure; what does not count (expected, a should) is skipped with its
    words, as are checks that do not apply.
    """
    levels = list(dict.fromkeys(result.level for result in report.checks))
    suites = "".join(_suite(report, level) for level in levels)
    stale = "".join(_stale(entry) for entry in report.stale)
    if stale:
        count = len(report.stale)
        suites += f'<testsuite name="expected failures" tests="{count}" failures="{count}">'
        suites += f"{stale}</testsuite>\n"
    name = _attribute(f"executa {report.role}")
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name={name}>\n{suites}</testsuites>\n'
    )


def _suite(report: Report, level: str) -> str:
    results = [result for result in report.checks if result.level == level]
    failures = sum(result.counts for result in results)
    skipped = sum(not result.counts and result.word != "pass" for result in results)
    seconds = sum(result.seconds for result in results)
    cases = "".join(map(_case, results))
    return (
        f"<testsuite name={_attribute(level)} tests={_attribute(len(results))} "
        f'failures={_attribute(failures)} errors="0" skipped={_attribute(skipped)} '
        f"time={_attribute(f'{seconds:.3f}')}>\n{cases}</testsuite>\n"
    )


def _case(result: Result) -> str:
    head = (
        f"<testcase classname={_attribute(result.requirement.id)} name={_attribute(result.check)} "
        f"time={_attribute(f'{result.seconds:.3f}')}>"
    )
    message = _attribute(f"{result.requirement.rule} {result.message}")
    inner = ""
    if result.counts:
        lines = "\n".join(map(_line, result.evidence))
        inner = f"<failure message={message}>{escape(_clean(lines))}</failure>"
    elif result.word != "pass":
        word = "expected " + result.word if result.expected else result.word
        inner = f"<skipped message={_attribute(f'{word}: {result.message}')}/>"
    return f"{head}{inner}</testcase>\n"


def _stale(entry: str) -> str:
    return (
        f'<testcase classname="expected" name={_attribute(entry)}>'
        '<failure message="expected to fail, and did not"/></testcase>\n'
    )


def _line(event: Event) -> str:
    return f"{event.at:8.3f} {event.way} {event.line}"


def _clean(text: str) -> str:
    """What XML has no form for is shown, not sent."""
    return _NOT_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _attribute(value: object) -> str:
    return quoteattr(_clean(str(value)))
