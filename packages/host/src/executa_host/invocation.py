"""An invoke while it runs, and what comes out of it.

Owns the record that reverse calls are matched to. Knows nothing of processes or of
nexus beyond the grant that it was given.
"""

import asyncio
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from executa_host.rate import RateLimit
from executa_host.reverse.budget import Budget, Ledger
from executa_protocol import codec
from executa_protocol.aio.calls import Call
from executa_protocol.errors import CallFailed, RpcError
from executa_protocol.nexus import AppContext, InvokeGrant

if TYPE_CHECKING:
    from executa_host.connection import Connection

NO_GRANT = InvokeGrant()


class CancelOutcome(StrEnum):
    """What became of a cancelled invoke (R-45).

    ``unanswered`` says that nobody knows: the request had been written, and neither an
    acknowledgement nor an answer came in time. Durable work stores that as
    `needs_reconciliation`, unless the tool only reads.
    """

    CONFIRMED = "confirmed"
    COMPLETED_FIRST = "completed_first"
    UNANSWERED = "unanswered"


class ActiveInvoke(Struct, kw_only=True, eq=False):
    """One invoke in flight.

    `deadline` is an instant of the host's monotonic clock. `parent` is the invoke that it
    is nested in, None for a root. `opened` says that nexus knows of it. `tasks` are the
    reverse calls that serve it: they end with it. `nested` counts invokes that run inside
    it now. `cancelling` is the reason once somebody has asked for its end, `verdict` what
    became of that, and `finished` tells them.
    """

    invoke_id: str
    user_id: str
    plugin: str
    tool: str
    deadline: float = 0.0
    parent: "ActiveInvoke | None" = None
    app: AppContext | None = None
    on_progress: Callable[[Raw], None] | None = None
    ledger: Ledger = field(default_factory=Ledger)
    grant: InvokeGrant = NO_GRANT
    own_budget: Budget | None = None
    connection: "Connection | None" = None
    call: Call | None = None
    tasks: "set[asyncio.Task[None]] | None" = None
    renewing: "asyncio.Task[None] | None" = None
    progress_limit: RateLimit | None = None
    opened: bool = False
    reverse_count: int = 0
    nested: int = 0
    ended: bool = False
    cancelling: str | None = None
    verdict: CancelOutcome | None = None
    finished: "asyncio.Future[None] | None" = None

    @property
    def budget(self) -> Budget:
        """The root's purse."""
        invoke = self
        while invoke.parent is not None:
            invoke = invoke.parent
        if invoke.own_budget is None:
            invoke.own_budget = Budget(invoke.grant.caps)
        return invoke.own_budget

    @property
    def depth(self) -> int:
        """How deep it is nested: 0 for a root."""
        return len(self.lineage()) - 1

    @property
    def answered(self) -> bool:
        """Whether the plugin's answer has come, or what stands for it."""
        return self.call is not None and self.call.future.done()

    @property
    def written(self) -> bool:
        """Whether the plugin may have seen the request."""
        call, connection = self.call, self.connection
        return call is not None and connection is not None and connection.peer.was_written(call)

    def lineage(self) -> "list[ActiveInvoke]":
        """This invoke and all that it is nested in, the root last."""
        chain: list[ActiveInvoke] = []
        invoke: ActiveInvoke | None = self
        while invoke is not None:
            chain.append(invoke)
            invoke = invoke.parent
        return chain

    def ledgers(self) -> Sequence[Ledger]:
        """Where to enter what it uses: its own ledger and those of all that it is nested in.

        Entered as it happens, so that totals add up whatever ends first. An invoke that has
        ended is over: its record changes no more.
        """
        if self.parent is None:
            return () if self.ended else (self.ledger,)
        return [invoke.ledger for invoke in self.lineage() if not invoke.ended]

    def transferred(self, to_plugin: int, from_plugin: int) -> None:
        """Count bytes that went over the wire for it."""
        if self.parent is None:
            self.ledger.bytes_out += to_plugin
            self.ledger.bytes_in += from_plugin
            return
        for ledger in self.ledgers():
            ledger.bytes_out += to_plugin
            ledger.bytes_in += from_plugin

    def serve(self, task: "asyncio.Task[None]") -> None:
        """Let a reverse call end with this invoke."""
        if self.tasks is None:
            self.tasks = set()
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def end_tasks(self) -> None:
        """Cancel what serves it."""
        for task in list(self.tasks or ()):
            task.cancel()


class InvokeOutcome(Struct, frozen=True, gc=False):
    """What a tool returned.

    `success` is the tool's own verdict and `error` its words when it is false.
    `raw` is the data as JSON text; `data` decodes it. `duration_ms` is what the
    host measured. `ledger` says what the invoke used, nested invokes included. `text` is
    the data if it is a string and has been decoded already; `data` gives it too.
    """

    invoke_id: str
    plugin: str
    tool: str
    success: bool
    raw: Raw | UnsetType
    error: str
    duration_ms: float
    ledger: Ledger
    text: str | None = None

    @property
    def data(self) -> Any:
        """The data decoded; None when the tool sent none."""
        if self.text is not None:
            return self.text
        return None if self.raw is UNSET else codec.decode_any(self.raw)


class InvokeTimeout(CallFailed, TimeoutError):
    """The tool took longer than its limit; its plugin and other invokes go on (R-24)."""


class InvokeRefused(RpcError):
    """The host refused the invoke before the plugin heard of it."""
