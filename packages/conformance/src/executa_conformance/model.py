"""The words of the kit: requirements, levels, verdicts, and how a check says what it found.

Owns no check and runs none. A check is a coroutine function that returns when the subject
does what the requirement says, and raises one of the exceptions below when it does not.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, field

Severity = Literal["must", "should", "may"]
Role = Literal["plugin", "host", "nexus", "actions", "parser"]
Word = Literal["pass", "fail", "non-strict", "info", "not-applicable"]

ROLES: Final[tuple[Role, ...]] = ("plugin", "host", "nexus", "actions", "parser")
WORDS: Final[tuple[Word, ...]] = ("pass", "fail", "non-strict", "info", "not-applicable")


class Requirement(Struct, frozen=True, rename={"severity": "level"}, forbid_unknown_fields=True):
    """One rule of the protocol.

    `source` names the seed section or the ruling. `role` is who has to keep it; ``both``
    means plugin and host. `unchecked` says why no check can see it, where that is so.
    """

    id: str
    source: str
    severity: Severity
    role: Literal["plugin", "host", "nexus", "actions", "parser", "both"]
    rule: str
    unchecked: str = ""

    @property
    def roles(self) -> tuple[Role, ...]:
        """Everyone who has to keep it."""
        return ("plugin", "host") if self.role == "both" else (self.role,)


class NotMet(Exception):
    """The subject breaks the requirement. The text says what was seen and what was expected."""


class NotStrict(Exception):
    """The subject does what tolerant mode accepts and strict mode refuses (R-03)."""


class NotApplicable(Exception):
    """The requirement does not concern this subject. The text says why."""


class Remark(Exception):
    """Neither good nor bad, but worth telling."""


CheckFunction: TypeAlias = Callable[[Any], Awaitable[None]]


class Check(Struct, frozen=True):
    """One check.

    `name` is the requirement's id, a colon and the function's name in words. `level` is the
    level of conformance that it belongs to (for plugins: core, v2, sampling, agent, storage,
    files). A `passive` check runs after the others and judges what crossed during them.
    `patience` multiplies the time that the check may take.
    """

    name: str
    requirement: str
    role: Role
    level: str
    function: CheckFunction
    passive: bool = False
    patience: float = 1.0

    @property
    def title(self) -> str:
        """The name in words."""
        return self.name.partition(":")[2].replace("-", " ")


class Event(Struct, frozen=True, omit_defaults=True):
    """One line of evidence.

    `at` is seconds since the check began. `way` is ``>`` for what the kit sent, ``<`` for
    what the subject sent, ``2`` for its stderr and ``*`` for what the kit did or saw. `line`
    is the line without its LF; of a long one it is the head, and `size` its length in bytes.
    Bytes that are no UTF-8 stand as ``\\xNN``. `note` is what is remarkable about it.
    """

    at: float
    way: Literal[">", "<", "2", "*"]
    line: str
    size: int = 0
    note: str = ""


class Result(Struct):
    """What came of one check. `seconds` is how long it took.

    `expected` says that the failure was listed beforehand. `counts` says that it makes the
    run fail.
    """

    check: str
    requirement: Requirement
    level: str
    word: Word
    message: str = ""
    seconds: float = 0.0
    expected: bool = False
    counts: bool = False
    evidence: list[Event] = field(default_factory=list[Event])
