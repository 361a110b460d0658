"""Names for every durable step, at which a test can have the process die.

A step has two points: ``STEP.written``, inside its transaction, and ``STEP.committed``,
after the commit and before anybody is told. Between them and on the way to the plugin lie
the points of `BETWEEN`. In production nothing is armed and a point costs one look.
"""

from collections.abc import Callable, Iterable
from typing import Final

STEPS: Final = (
    "accept",
    "queue",
    "claim",
    "request_approval",
    "void_approval",
    "approve",
    "deny",
    "chunk",
    "complete",
    "fail",
    "retry",
    "expire",
    "dead_letter",
    "cancel",
    "cancel_request",
    "cancel_outcome",
    "recover",
    "redrive",
    "open_session",
    "attach",
    "resume",
    "close_session",
    "settle",
    "callback",
    "prune",
)
"""What an operation can be called."""

BETWEEN: Final = (
    "batch.begun",
    "batch.accepted",
    "batch.moved",
    "batch.logged",
    "invoke.begun",
    "invoke.answered",
    "callback.sent",
)
"""Points after each group of statements in a transaction, and around what leaves the process."""

POINTS: Final = (
    *(f"{step}.{part}" for step in STEPS for part in ("written", "committed")),
    *BETWEEN,
)
"""Every point."""

_armed: Callable[[str], None] | None = None


def arm(reached: Callable[[str], None] | None) -> None:
    """Call `reached` with each point's name from now on, on whatever thread reaches it."""
    global _armed  # noqa: PLW0603 - the process has one end
    _armed = reached


def point(name: str) -> None:
    """The process is at `name`."""
    if _armed is not None:
        _armed(name)


def points(steps: Iterable[str], part: str) -> None:
    """The process is at this part of each step, each named once."""
    if _armed is not None:
        for step in dict.fromkeys(steps):
            _armed(f"{step}.{part}")
