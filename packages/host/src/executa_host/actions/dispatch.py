"""Who waits for what, and the slots that those who run hold.

Owns the queue and the timers: a slot, the time of a retry, a decision, an expiry. How an
action is claimed is `claims`', how it is run `attempts`'.
"""

import asyncio

from msgspec import UnsetType

from executa_host.actions import attempts
from executa_host.actions.board import Board, Item
from executa_host.actions.claims import WAITING, claim
from executa_host.actions.endings import end, move, withdrawn
from executa_host.actions.outcomes import Verdict
from executa_host.actions.records import ActionRecord, ActionState, Approval, ApprovalStatus
from executa_host.actions.scheduler import Entry, FairQueue
from executa_host.actions.store import StoreBroken
from executa_protocol.actions import EXPIRED_ERROR

_S = ActionState


class Dispatcher:
    """Runs what may run."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._queue = FairQueue(board.settings.slots)
        self.idle = asyncio.Event()
        """Set while nothing runs."""
        self.idle.set()

    @property
    def queued(self) -> int:
        """Actions that wait for a slot."""
        return self._queue.queued

    @property
    def running(self) -> int:
        """Actions that hold one."""
        return self._queue.running

    def admit(self, item: Item) -> None:
        """Let an action wait for whatever it waits for."""
        record = item.stored.record
        if record.state not in WAITING or self._board.draining:
            return
        now = self._board.now()
        undecided = _undecided(record)
        due = [record.expires_at_ms, 0 if undecided is None else undecided.expires_at_ms]
        if record.not_before_ms > now:
            due.append(record.not_before_ms)
        elif undecided is None:
            self._queue.push(item.entry)
        if any(due):
            first = min(when for when in due if when)
            self._board.arm(item, first, lambda: self._fell_due(item))
        self.pump()
        if record.state is _S.ACCEPTED and item.moving is None and item.entry in self._queue:
            made = move(item.stored, "queue", now, _S.QUEUED)
            item.moving = self._board.spawn(self._board.move(item, made))

    def drop(self, item: Item) -> None:
        """An action has ended while it waited."""
        self._queue.drop(item.action_id)

    # --- Time --------------------------------------------------------------------------------

    def _fell_due(self, item: Item) -> None:
        self._board.spawn(self._due(item))

    async def _due(self, item: Item) -> None:
        """Its time has come: it expires, or its retry is due."""
        if item.moving is not None:
            await asyncio.wait((item.moving,))
        record, now = item.stored.record, self._board.now()
        if record.state not in WAITING:
            return
        undecided = _undecided(record)
        late = 0 < record.expires_at_ms <= now
        if undecided is not None:
            late = late or 0 < undecided.expires_at_ms <= now
        if not late:
            self.admit(item)
            return
        before, changed = withdrawn(item.stored, ApprovalStatus.EXPIRED)
        verdict = Verdict(state=_S.EXPIRED, error=EXPIRED_ERROR)
        made = end(item.stored, verdict, now, before=before, approval=changed)
        if await self._board.move(item, made):
            self.drop(item)
        else:
            self.admit(item)  # something else came first: a decision, a claim, a cancellation

    # --- Slots -------------------------------------------------------------------------------

    def pump(self) -> None:
        """Start whatever may run now."""
        while not self._board.draining:
            entry = self._queue.take()
            if entry is None:
                return
            item = self._board.items.get(entry.action_id)
            if item is None:
                self._queue.release(entry)
                continue
            self.idle.clear()
            self._board.spawn(self._work(item, entry))

    async def _work(self, item: Item, entry: Entry) -> None:
        try:
            if item.moving is not None:
                await asyncio.wait((item.moving,))
            if item.state in WAITING:
                claimed = await claim(self._board, item)
                if claimed is not None:
                    await attempts.run(self._board, item, claimed.ended)
        except StoreBroken:
            self._board.draining = True  # nothing can be written down any more
            raise
        finally:
            self._queue.release(entry)
            if not self._queue.running:
                self.idle.set()
            self.pump()
        # Not after a failure of our own: that would come again, at once and for ever.
        self.admit(item)


def _undecided(record: ActionRecord) -> Approval | None:
    """The approval that an action waits for, if it does."""
    approval = record.approval
    if record.state is not _S.PENDING_APPROVAL or isinstance(approval, UnsetType):
        return None
    return approval if approval.status is ApprovalStatus.REQUESTED else None
