"""The store as the engine sees it: a promise that any backend can keep.

Owns the interface and the errors of opening. What every backend must do is written down
as tests (`tests/actions/store_contract.py`); what is written is in `operations`. A store
knows nothing of plugins, callers or time: whatever depends on a clock is told it.

::

    ExecutaError
    └── StoreError
        ├── StoreLocked        another engine has the file (R-47)
        ├── StoreTooNew        made by a newer version
        ├── StoreForeign       a file, but not one of ours
        └── StoreBroken        the disk failed; nothing is accepted until it is opened anew
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from executa_host.actions.interface import ActionPage, EventPage, SessionPage
from executa_host.actions.operations import Operation, Stored
from executa_host.actions.records import ChunkRecord, ReceiptRecord, SessionRecord
from executa_host.actions.requests import ActionQuery, SessionQuery
from executa_protocol.errors import ExecutaError

T = TypeVar("T")


CALLBACKS: Final = "callbacks"
"""The subject whose bell rings when a callback is to be delivered."""


def end_of(action_id: str) -> str:
    """The subject whose bell rings when an action has ended, and for nothing before that."""
    return f"{action_id} ended"


class StoreError(ExecutaError):
    """A store cannot be used."""


class StoreLocked(StoreError):
    """Another engine uses this file."""


class StoreTooNew(StoreError):
    """The file was made by a newer version; this one must not touch it."""


class StoreForeign(StoreError):
    """The file is a database of something else, or none."""


class StoreBroken(StoreError):
    """The disk failed in a way after which nobody knows what is on it."""


class Viewer(Struct, frozen=True, kw_only=True):
    """Who looks: None stands for everybody's. `approvals`: also what has an approval."""

    tenant: str | None = None
    principal: str | None = None
    approvals: bool = False


class Marker(Struct, frozen=True, kw_only=True):
    """What is left of an action or a session that retention removed."""

    identity: str
    tenant: str
    principals: tuple[str, ...]
    removed_at_ms: int


class Delivery(Struct, frozen=True, kw_only=True):
    """A callback that is due. `kind` is ``ended`` or ``pending_approval``."""

    delivery: int
    action_id: str
    kind: str
    url: str
    attempts: int
    next_at_ms: int


class Counts(Struct, frozen=True):
    """How much there is."""

    open: int
    ended: int
    sessions: int
    callbacks: int


class Transaction(Protocol):
    """A transaction of one's own: reads see its writes, others see all of it or nothing."""

    async def apply(self, operation: Operation[T]) -> T:
        """Apply one operation. A refusal leaves the transaction as it was."""
        ...

    async def action(self, action_id: str) -> Stored | Marker | None:
        """As `Store.action`, with this transaction's writes."""
        ...

    async def session(self, session_id: str) -> SessionRecord | Marker | None:
        """As `Store.session`, with this transaction's writes."""
        ...


class Store(Protocol):
    """Durable actions, sessions, their logs, receipts, keys and tokens.

    Every method may raise `StoreBroken`.
    """

    async def apply(self, operation: Operation[T]) -> T:
        """Apply one operation, together with others if they come at the same time.

        Returns once it is durable. An operation that fails fails alone: whoever shared a
        commit with it does not notice. Raises `UsageError` for what no store may hold
        (control characters in ids and keys, text that is no JSON), and the operation's own
        refusals.
        """
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Several operations as one. It excludes every other writer: keep it short."""
        ...

    async def action(self, action_id: str, *, input: bool = False) -> Stored | Marker | None:  # noqa: A002
        """One action, with its result; its input only if asked for."""
        ...

    async def actions(self, query: ActionQuery, viewer: Viewer) -> ActionPage:
        """A page of a listing. Raises `Invalid` CURSOR_INVALID."""
        ...

    async def open_actions(self, after: str = "", limit: int = 500) -> Sequence[Stored]:
        """Actions that have not ended, in the order they were accepted, after that id."""
        ...

    async def chunks(self, action_id: str, after: int, limit: int) -> Sequence[ChunkRecord]:
        """Chunks after a sequence, in order."""
        ...

    async def receipts(self, action_id: str) -> Sequence[ReceiptRecord]:
        """All receipts, in order."""
        ...

    async def events(self, subject: str, after: str, limit: int) -> EventPage:
        """A page of the log of an action or a session that exists.

        Raises `Invalid` CURSOR_INVALID or CURSOR_AHEAD, `Gone` CURSOR_GONE, `NotFound`.
        """
        ...

    async def session(self, session_id: str) -> SessionRecord | Marker | None:
        """One session."""
        ...

    async def sessions(self, query: SessionQuery, viewer: Viewer) -> SessionPage:
        """A page of a listing. Raises `Invalid` CURSOR_INVALID."""
        ...

    async def deliveries(self, due_ms: int, limit: int) -> Sequence[Delivery]:
        """Callbacks that are due by then, the longest due first."""
        ...

    async def next_delivery_ms(self) -> int | None:
        """When the next callback is due."""
        ...

    async def counts(self) -> Counts:
        """How much there is."""
        ...

    def watch(self, subject: str) -> AbstractContextManager[asyncio.Event]:
        """A bell that rings after a commit which the log of `subject` grew by (R-51)."""
        ...

    def ring_all(self) -> None:
        """Ring every bell."""
        ...

    async def check(self) -> list[str]:
        """Every invariant that does not hold, one sentence each; empty when all is well."""
        ...

    async def backup(self, target: Path) -> None:
        """A whole copy of this moment, while others go on. Raises `UsageError` if it exists."""
        ...

    async def close(self) -> None:
        """Finish what was asked for and let go of everything. Idempotent."""
        ...
