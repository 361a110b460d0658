"""Strict and tolerant reading: one decision, taken in one place (R-03).

A reader meets a spelling that the seeds do not have but the field sends. It
calls `Reader.tolerate` with the requirement that the spelling departs from. In
tolerant mode the departure is reported and reading goes on; in strict mode it
is refused by that requirement's id. This module knows no spelling itself; the
ids live in `requirements/*.toml`.
"""

from collections.abc import Callable

from msgspec import Struct

from executa_protocol.errors import StrictRefusal


class Finding(Struct, frozen=True):
    """A departure that was tolerated.

    `requirement` is an id such as ``WIRE-007``; `message` says what was met and
    where, in one sentence.
    """

    requirement: str
    message: str


class Reader:
    """How forgiving to be, and whom to tell.

    `strict` refuses every tolerated spelling (`StrictRefusal`); otherwise each is
    passed to `report`, when there is one.
    """

    __slots__ = ("report", "strict")

    def __init__(
        self, *, strict: bool = False, report: Callable[[Finding], None] | None = None
    ) -> None:
        self.strict = strict
        self.report = report

    def tolerate(self, requirement: str, message: str) -> None:
        """Report the departure, or raise `StrictRefusal` in strict mode."""
        if self.strict:
            raise StrictRefusal(requirement, message)
        if self.report is not None:
            self.report(Finding(requirement, message))


TOLERANT = Reader()
"""Accepts what the field sends and tells nobody."""

STRICT = Reader(strict=True)
"""Accepts the seeds' spelling only."""
