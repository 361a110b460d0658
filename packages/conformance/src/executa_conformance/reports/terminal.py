"""What a person sees: a line for each check that is not simply passed, then the sum.

Colour only on a terminal, and not where NO_COLOR is set.
"""

import os
import sys
from typing import Final, TextIO

from executa_conformance.model import Event, Result, Word
from executa_conformance.report import Report

_COLOURS: Final = {
    "pass": "32",
    "fail": "31",
    "non-strict": "35",
    "info": "34",
    "not-applicable": "2",
}
SHOWN_LINES: Final = 12
"""Lines of evidence that stand under a failure; the files have all of them."""

SHOWN_CHARS: Final = 160


class Terminal:
    """Writes to one stream."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = stream if stream is not None else sys.stdout
        self._colour = self._stream.isatty() and "NO_COLOR" not in os.environ
        self._quiet = quiet
        self._done = 0

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour else text

    def say(self, text: str) -> None:
        """One line."""
        self._stream.write(text + "\n")
        self._stream.flush()

    def progress(self, done: Result, total: int) -> None:
        """Tell that a check has ended; on a terminal only, in one line that is written over."""
        self._done += 1
        if self._quiet or not self._stream.isatty():
            return
        text = f"{self._done}/{total} {done.check}"[:78]
        self._stream.write(f"\r\x1b[K{text}" if self._done < total else "\r\x1b[K")
        self._stream.flush()

    def report(self, report: Report) -> None:
        """The table and the sum."""
        for note in report.notes:
            self.say(self._paint(_clean(note), "33"))
        for result in report.checks:
            if result.word not in ("pass", "not-applicable"):
                self._result(result)
        width = max((len(level) for level in report.levels), default=0)
        for level, word in report.levels.items():
            shade = {"pass": "32", "fail": "31"}.get(word, "2")
            count = sum(result.level == level for result in report.checks)
            self.say(f"  {level:<{width}}  {count:>3} checks  {self._paint(_clean(word), shade)}")
        for entry in report.stale:
            self.say(self._paint(f"{entry}: expected to fail, and did not; take it off", "31"))
        counts = ", ".join(_count(report, word) for word in report.summary if report.summary[word])
        name = f"{report.name} {report.version}".strip() or report.subject
        verdict = "conforms" if report.exit_code == 0 else "does not conform"
        shade = "32;1" if report.exit_code == 0 else "31;1"
        self.say(
            f"{self._paint(f'{_clean(name)} {verdict}', shade)} "
            f"to executa {report.revision} ({report.role}): {counts} in {report.seconds:.1f} s"
        )

    def _result(self, result: Result) -> None:
        word = f"expected {result.word}" if result.expected else result.word
        if result.word == "fail" and result.requirement.severity != "must":
            word = f"{word} ({result.requirement.severity})"
        painted = self._paint(word, _COLOURS[result.word])
        self.say(f"{painted} {result.check}\n    {result.requirement.rule}")
        self.say(f"    {_clean(result.message)}  [{result.requirement.source}]")
        if result.counts:
            for event in result.evidence[-SHOWN_LINES:]:
                self.say(self._paint(f"      {_shown(event)}", "2"))


def _count(report: Report, word: Word) -> str:
    """How many came to a verdict, and how many of those make the run fail."""
    results = [result for result in report.checks if result.word == word]
    spared = sum(not result.counts for result in results)
    note = f" ({spared} not counted)" if word == "fail" and spared else ""
    return f"{len(results)} {word}{note}"


def _shown(event: Event) -> str:
    text = _clean(event.line)
    cut = "..." if len(text) > SHOWN_CHARS or event.size else ""
    note = f"  ({event.note})" if event.note else ""
    return f"{event.at:7.3f} {event.way} {text[:SHOWN_CHARS]}{cut}{_clean(note)}"


def _clean(text: str) -> str:
    """What a terminal would obey is shown instead (a subject may send anything)."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
