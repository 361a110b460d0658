"""An engine in memory, for tests of what stands before one.

Keeps the promises of `actions.interface` that HTTP can show: who sees what, codes, cursors,
waits and drain. Nothing runs by itself: a test moves an action. What the rules of durable
work are is tested over the real engine.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec
from msgspec import UNSET, structs

from executa_host.actions import faults
from executa_host.actions.faults import Code
from executa_host.actions.interface import (
    ActionPage,
    EventPage,
    Outcome,
    Status,
    Submitted,
)
from executa_host.actions.records import (
    ActionRecord,
    ActionState,
    ActionView,
    ApprovalStatus,
    Cancellation,
    Contract,
    ReceiptRecord,
)
from executa_host.actions.requests import (
    EVERY_ACTION,
    NOTHING,
    ActionQuery,
    Caller,
    Include,
    Scope,
    Submission,
)
from executa_protocol.actions import TERMINAL
from executa_protocol.canonical import digest
from executa_protocol.ids import IdSource
from executa_protocol.limits import QUERY_DEFAULT, QUERY_MAX, WAIT_MAX
from tests.api.fake_log import Log, need
from tests.api.fake_moves import Moves
from tests.api.fake_records import CONTRACTS, record_of
from tests.api.fake_sessions import FakeSessions


class FakeActions(Moves):
    """Implements `executa_host.actions.interface.Actions`."""

    def __init__(self) -> None:
        super().__init__()
        self.ids = IdSource()
        self.keys: dict[tuple[str, str, str, str], tuple[str, str]] = {}
        self.sessions = FakeSessions(self)
        self.draining = False
        self.drained = asyncio.Event()
        self.waiting = 0
        self.more = asyncio.Event()
        self.idle = asyncio.Event()
        """Set while nobody waits."""
        self.hold: asyncio.Event | None = None
        """Submissions wait for this before they are accepted, if it is there."""
        self.submitting = asyncio.Event()

    async def until_waiting(self, count: int) -> None:
        """Until so many wait here for something to happen."""
        async with asyncio.timeout(20):
            while self.waiting < count:
                self.more.clear()
                await self.more.wait()

    def _seen(self, caller: Caller, action_id: str) -> ActionRecord:
        record = self.records.get(action_id)
        if record is None or not self.sees(caller, record):
            raise faults.NotFound(Code.UNKNOWN_ACTION, "no such action")
        return record

    def sees(self, caller: Caller, record: ActionRecord) -> bool:
        if Scope.ADMIN in caller.scopes:
            return True
        if record.tenant != caller.tenant:
            return False
        mine = record.principal == caller.principal or Scope.TENANT in caller.scopes
        return mine or (Scope.APPROVE in caller.scopes and record.approval is not UNSET)

    # --- The facade ------------------------------------------------------------------------

    async def capabilities(self, caller: Caller) -> tuple[Contract, ...]:
        need(caller, Scope.READ)
        return tuple(CONTRACTS[name] for name in sorted(CONTRACTS))

    async def capability(self, caller: Caller, name: str) -> Contract | None:
        need(caller, Scope.READ)
        return CONTRACTS.get(name)

    async def submit(self, caller: Caller, submission: Submission) -> Submitted:
        need(caller, Scope.SUBMIT)
        self.submitting.set()
        if self.hold is not None:
            await self.hold.wait()
        if self.draining:
            raise faults.Unavailable(Code.DRAINING, "no new work")
        contract = CONTRACTS.get(submission.capability)
        if contract is None:
            raise faults.Invalid(Code.UNKNOWN_CAPABILITY, "no such thing", path="$.capability")
        if submission.mode not in contract.modes:
            raise faults.Invalid(Code.MODE_NOT_OFFERED, "not offered", path="$.mode")
        if submission.session_id:
            self.sessions.seen(caller, submission.session_id)
        key = (caller.tenant, caller.principal, submission.capability, submission.idempotency_key)
        content = digest(submission.input)
        if submission.idempotency_key and key in self.keys:
            first, was = self.keys[key]
            if was != content:
                raise faults.Conflict(Code.IDEMPOTENCY_CONFLICT, "another input")
            return Submitted(self.records[first], replayed=True)
        record = self._accept(caller, submission, contract, content)
        if submission.idempotency_key:
            self.keys[key] = (record.action_id, content)
        return Submitted(record)

    def _accept(
        self, caller: Caller, submission: Submission, contract: Contract, content: str
    ) -> ActionRecord:
        record = record_of(self.ids.action_id(), caller, submission, contract, content)
        action_id = record.action_id
        self.logs[action_id] = Log()
        self.records[action_id] = record
        state = ActionState.PENDING_APPROVAL if contract.approval else ActionState.RUNNING
        self.move(action_id, ActionState.ACCEPTED)
        return self.move(action_id, state)

    async def get(
        self, caller: Caller, action_id: str, include: frozenset[Include] = NOTHING
    ) -> ActionView | None:
        need(caller, Scope.READ)
        try:
            record = self._seen(caller, action_id)
        except faults.NotFound:
            return None
        if Include.INPUT not in include:
            record = structs.replace(record, input=UNSET)
        if Include.RESULT in include:
            record = structs.replace(record, result=self.results.get(action_id, UNSET))
        chunks = tuple(
            event.chunk for event in self.logs[action_id].events if event.chunk is not UNSET
        )
        receipts: tuple[ReceiptRecord, ...] = ()
        return ActionView(
            record,
            chunks if Include.CHUNKS in include else UNSET,
            receipts if Include.RECEIPTS in include else UNSET,
        )

    async def list(self, caller: Caller, query: ActionQuery = EVERY_ACTION) -> ActionPage:
        need(caller, Scope.READ)
        if query.cursor and query.cursor not in self.records:
            raise faults.Invalid(Code.CURSOR_INVALID, "no cursor of this", path="query.cursor")
        found = [
            structs.replace(record, input=UNSET)
            for record in self.records.values()
            if self.sees(caller, record)
            and (not query.states or record.state in query.states)
            and query.capability in ("", record.capability)
            and query.session_id in ("", record.session_id)
            and record.action_id > query.cursor
        ]
        page = tuple(found[: query.limit])
        more = len(found) > query.limit
        return ActionPage(page, page[-1].action_id if more else "")

    async def result(self, caller: Caller, action_id: str, wait: float = 0.0) -> Outcome:
        need(caller, Scope.READ)
        self._seen(caller, action_id)
        if not 0 <= wait <= WAIT_MAX:
            raise faults.Invalid(Code.OUT_OF_RANGE, "0 to 30 s", path="wait")
        await self._until(lambda: self.records[action_id].state in TERMINAL, action_id, wait)
        return Outcome(self.records[action_id], self.results.get(action_id))

    async def events(
        self,
        caller: Caller,
        subject: str,
        after: str = "",
        *,
        limit: int = QUERY_DEFAULT,
        wait: float = 0.0,
    ) -> EventPage:
        need(caller, Scope.READ)
        if subject.startswith("ses_"):
            self.sessions.seen(caller, subject)
        else:
            self._seen(caller, subject)
        if not 1 <= limit <= QUERY_MAX or not 0 <= wait <= WAIT_MAX:
            raise faults.Invalid(Code.OUT_OF_RANGE, "outside")
        log = self.logs[subject]
        await self._until(lambda: bool(log.after(after, 1).events) or log.ended, subject, wait)
        return log.after(after, limit)

    async def follow(
        self, caller: Caller, subject: str, after: str = "", *, heartbeat: float = 15.0
    ) -> AsyncIterator[EventPage]:
        while True:
            if self.drained.is_set():
                raise faults.Unavailable(Code.DRAINING, "the engine stops")
            page = await self.events(caller, subject, after, wait=min(heartbeat, WAIT_MAX))
            yield page
            after = page.cursor
            if page.ended:
                return

    async def cancel(self, caller: Caller, action_id: str, reason: str = "") -> ActionRecord:
        need(caller, Scope.CANCEL)
        record = self._seen(caller, action_id)
        if record.state in TERMINAL:
            return record
        asked = Cancellation(requested_by=caller.principal, requested_at_ms=1, reason=reason)
        return self.move(action_id, ActionState.CANCELLING, cancellation=asked)

    async def approve(
        self, caller: Caller, action_id: str, *, content: str = "", note: str = ""
    ) -> ActionRecord:
        return self._decide(caller, action_id, content, ApprovalStatus.APPROVED, note)

    async def deny(
        self, caller: Caller, action_id: str, *, content: str = "", note: str = ""
    ) -> ActionRecord:
        return self._decide(caller, action_id, content, ApprovalStatus.DENIED, note)

    def _decide(
        self, caller: Caller, action_id: str, content: str, status: ApprovalStatus, note: str
    ) -> ActionRecord:
        need(caller, Scope.APPROVE)
        record = self._seen(caller, action_id)
        if isinstance(record.approval, msgspec.UnsetType):
            raise faults.Conflict(Code.NOT_PENDING_APPROVAL, "nothing to decide")
        if content and content != record.approval.content:
            raise faults.Conflict(Code.CONTENT_CHANGED, "something else was looked at")
        if record.approval.status is status:
            return record
        if record.approval.status is not ApprovalStatus.REQUESTED:
            raise faults.Conflict(Code.ALREADY_DECIDED, "decided the other way")
        approval = structs.replace(
            record.approval, status=status, decided_by=caller.principal, note=note
        )
        denied = status is ApprovalStatus.DENIED
        state = ActionState.FAILED if denied else ActionState.RUNNING
        return self.move(action_id, state, approval=approval)

    async def redrive(
        self, caller: Caller, action_id: str, *, idempotency_key: str = ""
    ) -> Submitted:
        need(caller, Scope.REDRIVE)
        record = self._seen(caller, action_id)
        if record.state is not ActionState.DEAD_LETTERED:
            raise faults.Conflict(Code.NOT_DEAD_LETTERED, "it is no dead letter")
        new = Submission(capability=record.capability, idempotency_key=f"redrive {action_id}")
        return await self.submit(
            structs.replace(caller, scopes=caller.scopes | {Scope.SUBMIT}), new
        )

    async def status(self) -> Status:
        return Status(
            ready=not self.draining,
            draining=self.draining,
            open=len(self.records),
            queued=0,
            running=0,
            callbacks=0,
        )

    async def drain(self, grace: float) -> None:
        self.draining = True
        self.drained.set()
        for log in self.logs.values():
            log.grown.set()

    async def _until(self, holds: Callable[[], bool], subject: str, wait: float) -> None:
        self.waiting += 1
        self.more.set()
        self.idle.clear()
        try:
            async with asyncio.timeout(wait):
                while not holds() and wait and not self.drained.is_set():
                    await self.logs[subject].grown.wait()
        except TimeoutError:
            pass
        finally:
            self.waiting -= 1
            if not self.waiting:
                self.idle.set()
