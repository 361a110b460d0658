"""What the method tests share: a reader that remembers, and encoding in one word."""

from collections.abc import Callable
from typing import Any

import msgspec

from executa_protocol.methods import InvalidParams
from executa_protocol.readings import Finding, Reader


class Listening(Reader):
    """A tolerant reader that keeps its findings."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        super().__init__(report=self.findings.append)

    @property
    def ids(self) -> list[str]:
        """The requirements that were departed from, in order."""
        return [finding.requirement for finding in self.findings]


def encoded(value: Any = None, **members: Any) -> bytes:
    """JSON of a value, or of an object of the given members."""
    return msgspec.json.encode(members if value is None else value)


def without(members: dict[str, Any], *names: str) -> dict[str, Any]:
    """The members but for some."""
    return {name: value for name, value in members.items() if name not in names}


def refusal_code(read: Callable[[], object]) -> int | None:
    """The error code that a reading is refused with, or None when it succeeds."""
    try:
        read()
    except InvalidParams as fault:
        return fault.error.code
    return None
