"""Durable actions and sessions: work that outlives connections, processes and crashes.

`interface` says what callers can do, `records` and `requests` in which shapes, `faults` what
is refused: all that a client needs is here. `engine.Engine` keeps it, over a `store`
(`sqlite.SqliteStore` is the embedded one) and a `runner` (`host_runner` runs on a host);
these are imported by name, because they bring more along.
"""

from executa_host.actions.faults import (
    ActionsError,
    Code,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Unavailable,
)
from executa_host.actions.interface import Actions, Sessions
from executa_host.actions.requests import Caller, Scope, Submission, submission
from executa_host.actions.settings import (
    CallbackSettings,
    CapabilityConfig,
    Delegation,
    EngineSettings,
    Retention,
    Slots,
)
from executa_host.actions.store import (
    StoreBroken,
    StoreError,
    StoreForeign,
    StoreLocked,
    StoreTooNew,
)

__all__ = [
    "Actions",
    "ActionsError",
    "CallbackSettings",
    "Caller",
    "CapabilityConfig",
    "Code",
    "Conflict",
    "Delegation",
    "EngineSettings",
    "Forbidden",
    "Gone",
    "Invalid",
    "NotFound",
    "Retention",
    "Scope",
    "Sessions",
    "Slots",
    "StoreBroken",
    "StoreError",
    "StoreForeign",
    "StoreLocked",
    "StoreTooNew",
    "Submission",
    "Unavailable",
    "submission",
]
