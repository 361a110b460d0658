"""What people ask of actions that run already: cancel, approve, deny (R-45, R-46).

Each is a compare-and-set that is tried again on what it finds: whoever loses a race
decides anew on the record that won.
"""

import msgspec
from msgspec import UnsetType

from executa_host.actions import access, receipting
from executa_host.actions.board import Board, Item
from executa_host.actions.dispatch import Dispatcher
from executa_host.actions.endings import cancel_unstarted, end, move
from executa_host.actions.faults import Code, Conflict, Invalid
from executa_host.actions.operations import Decided, Move, Stored
from executa_host.actions.outcomes import Verdict
from executa_host.actions.records import (
    ActionError,
    ActionRecord,
    ActionState,
    Approval,
    ApprovalStatus,
    Cancellation,
)
from executa_host.actions.requests import Caller, Scope
from executa_host.actions.validation import check_note
from executa_protocol.actions import TERMINAL
from executa_protocol.errors import UsageError

_S = ActionState
_DECIDED = {ApprovalStatus.APPROVED: "approve", ApprovalStatus.DENIED: "deny"}


class Decisions:
    """Cancels, approves and denies."""

    def __init__(self, board: Board, dispatcher: Dispatcher) -> None:
        self._board = board
        self._dispatcher = dispatcher

    async def cancel(self, caller: Caller, action_id: str, reason: str) -> ActionRecord:
        """See `Actions.cancel`."""
        access.require(caller, Scope.CANCEL)
        check_words("reason", reason)
        while True:
            item = await self._find(caller, action_id)
            record = item.stored.record
            if record.state in TERMINAL or record.state is _S.CANCELLING:
                return record
            asked = Cancellation(
                requested_by=caller.principal, requested_at_ms=self._board.now(), reason=reason
            )
            if await self._ask_to_cancel(item, asked):
                return item.stored.record

    async def _ask_to_cancel(self, item: Item, asked: Cancellation) -> bool:
        stored, now = item.stored, asked.requested_at_ms
        if stored.record.state in (_S.RUNNING, _S.STREAMING):
            made = move(
                stored,
                "cancel_request",
                now,
                _S.CANCELLING,
                why="asked",
                cancellation=asked,
                receipts=(receipting.cancellation(asked),),
            )
            won = await self._board.move(item, made)
            if won and item.run is not None:
                item.run.cancel(asked.reason)
            return won
        # No plugin has heard of it: there is nothing to wait for.
        won = await self._board.move(item, cancel_unstarted(stored, asked, now))
        if won:
            self._dispatcher.drop(item)
        return won

    async def decide(
        self, caller: Caller, action_id: str, status: ApprovalStatus, content: str, note: str
    ) -> ActionRecord:
        """See `Actions.approve` and `Actions.deny`."""
        check_words("note", note)
        while True:
            item = await self._find(caller, action_id)
            record = item.stored.record
            approval = record.approval
            if isinstance(approval, UnsetType):
                msg = f"{action_id} needs no approval"
                raise Conflict(Code.NOT_PENDING_APPROVAL, msg)
            access.require_approver(
                caller,
                approval.approvers,
                record.principal,
                own_approvals=self._board.settings.own_approvals,
            )
            if _decided(record, approval, status):
                return record
            if content and content != approval.content:
                msg = f"{action_id} is about another content than the one that was looked at"
                data = {"content": approval.content}
                raise Conflict(Code.CONTENT_CHANGED, msg, path="$.content", data=data)
            if await self._decide(caller, item, approval, status, note):
                self._dispatcher.admit(item)
                return item.stored.record

    async def _decide(
        self, caller: Caller, item: Item, approval: Approval, status: ApprovalStatus, note: str
    ) -> bool:
        now = self._board.now()
        if 0 < approval.expires_at_ms <= now:
            msg = f"the approval of {item.action_id} has expired"
            raise Conflict(Code.ALREADY_DECIDED, msg, data={"status": ApprovalStatus.EXPIRED})
        decided = msgspec.structs.replace(
            approval, status=status, decided_by=caller.principal, decided_at_ms=now, note=note
        )
        made = _approved(item.stored, decided, now)
        if status is ApprovalStatus.DENIED:
            made = _denied(item.stored, decided, now)
        return await self._board.move(item, made)

    async def _find(self, caller: Caller, action_id: str) -> Item:
        """The action as it is on disk."""
        stored = access.visible(caller, await self._board.store.action(action_id), action_id)
        return self._board.caught_up(stored)


def check_words(name: str, words: str) -> None:
    """Raise `Invalid` for what no record may hold."""
    try:
        check_note(name, words)
    except UsageError as fault:
        raise Invalid(Code.INVALID_REQUEST, str(fault), path=f"$.{name}") from fault


def _decided(record: ActionRecord, approval: Approval, status: ApprovalStatus) -> bool:
    """Whether it was decided this way already. Raises `Conflict` if it cannot be decided."""
    if approval.status is status:
        return True
    if approval.status in (ApprovalStatus.REQUIRED, ApprovalStatus.WITHDRAWN):
        msg = f"{record.action_id} awaits no approval: it is {record.state}"
        raise Conflict(Code.NOT_PENDING_APPROVAL, msg)
    if approval.status is not ApprovalStatus.REQUESTED:
        msg = f"{record.action_id} was decided: it is {approval.status}"
        raise Conflict(Code.ALREADY_DECIDED, msg, data={"status": approval.status})
    return False


def _approved(stored: Stored, decided: Approval, now: int) -> Move:
    return move(
        stored,
        _DECIDED[decided.status],
        now,
        Decided(decided.status),
        approval=decided,
        receipts=(receipting.decision(decided),),
    )


def _denied(stored: Stored, decided: Approval, now: int) -> Move:
    words = f"{decided.decided_by} denied it" + (f": {decided.note}" if decided.note else "")
    verdict = Verdict(state=_S.FAILED, error=ActionError("APPROVAL_DENIED", words))
    made = end(
        stored,
        verdict,
        now,
        before=(Decided(decided.status),),
        step="deny",
        why="denied",
        approval=decided,
        receipts=(receipting.decision(decided),),
    )
    made.reason = "denied"
    return made
