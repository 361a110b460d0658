"""One check's verdict."""

from typing import Literal

from msgspec import Struct

Status = Literal["ok", "warning", "failed", "skipped"]


class Check(Struct, frozen=True, omit_defaults=True):
    """A check of the examination: what was found, and what to do if it is not as it should be."""

    name: str
    status: Status
    found: str
    advice: str = ""


class Finding(Struct, frozen=True):
    """Something known to go wrong: what it is, and what to do about it."""

    found: str
    advice: str
    fatal: bool = True


def verdict(name: str, finding: Finding | None, otherwise: str) -> Check:
    """The check's verdict: the finding, or that all is well."""
    if finding is None:
        return Check(name, "ok", otherwise)
    return Check(name, "failed" if finding.fatal else "warning", finding.found, finding.advice)
