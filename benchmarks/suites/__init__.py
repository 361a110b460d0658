"""The suites by name, in the order in which they run.

A suite is a module with a `run(scale)` that gives its report; the first line of that
function's docstring is what `list` says of it.
"""

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Final, cast

from benchmarks.model import Report
from benchmarks.scale import Scale

Suite = Callable[[Scale], Awaitable[Report]]

NAMES: Final = (
    "framing",
    "codec",
    "correlate",
    "sse",
    "frames",
    "roundtrip",
    "reverse",
    "agent",
    "waiting",
    "coldstart",
    "memory",
    "plugins",
    "store",
    "api",
    "soak",
)


def load(name: str) -> Suite:
    """The suite of that name, imported now: one suite's imports are no other one's cost."""
    return cast("Suite", import_module(f"benchmarks.suites.{name}").run)


def describe(name: str) -> str:
    """The suite in a line."""
    return (load(name).__doc__ or "").splitlines()[0]
