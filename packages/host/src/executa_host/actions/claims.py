"""Taking an action to run it: the move to `running`, or the request for an approval.

An action runs only after a claim that this engine won (R-42), and one that needs an approval
only if what was approved is still what would run (R-46).
"""

from typing import Final

import msgspec
from msgspec import Raw, Struct, UnsetType

from executa_host.actions.board import Board, Item
from executa_host.actions.contracts import content_of
from executa_host.actions.endings import callback_url, move
from executa_host.actions.faults import ActionsError, Code, Invalid, Unavailable
from executa_host.actions.operations import Decided, Piece, Step
from executa_host.actions.records import ActionState, Approval, ApprovalStatus
from executa_host.actions.runner import Ended
from executa_protocol.chunks import ChunkKind

_S = ActionState
WAITING: Final = frozenset({_S.ACCEPTED, _S.QUEUED, _S.PENDING_APPROVAL})
"""States that can be claimed."""

_ENCODER = msgspec.json.Encoder()


class Claim(Struct, frozen=True):
    """An action is ours. `ended` if it cannot be run: what was approved cannot be checked."""

    ended: Ended | None = None


async def claim(board: Board, item: Item) -> Claim | None:
    """Claim an action; None if somebody else changed it, or it awaits an approval now."""
    record = item.stored.record
    approval = record.approval
    steps: tuple[Step, ...] = (_S.QUEUED,) if record.state is _S.ACCEPTED else ()
    ended: Ended | None = None
    if not isinstance(approval, UnsetType):
        content = approval.content
        try:
            content = await _content(board, item)
        except Unavailable as fault:
            ended = Ended(kind="lost", error=fault.as_error(), written=False)
        except ActionsError as fault:
            ended = Ended(kind="refused", error=fault.as_error(), written=False)
        decided = approval.status is ApprovalStatus.APPROVED
        if not decided or content != approval.content:
            await _ask(board, item, approval, content, steps)
            return None
    board.disarm(item)
    made = move(item.stored, "claim", board.now(), *steps, _S.RUNNING, claim=True)
    return Claim(ended) if await board.move(item, made) else None


async def _content(board: Board, item: Item) -> str:
    """What an approval of the action binds to now."""
    stored = item.stored
    name = stored.record.capability
    found = await board.catalog.find(name, stored.terms.user_id)
    if found is None:
        raise Invalid(Code.UNKNOWN_CAPABILITY, f"there is no capability {name} any more")
    return content_of(found.contract, stored.record.input_digest)


async def _ask(
    board: Board, item: Item, approval: Approval, content: str, steps: tuple[Step, ...]
) -> None:
    """Ask for a decision, or for another one because the content has changed."""
    stored, now = item.stored, board.now()
    asked = Approval(
        status=ApprovalStatus.REQUESTED,
        content=content,
        expires_at_ms=now + stored.terms.approval_ttl_ms,
        approvers=approval.approvers,
    )
    shown = {"content": content, "expires_at_ms": asked.expires_at_ms}
    said = (
        Decided(ApprovalStatus.REQUESTED),
        Piece(ChunkKind.PENDING_APPROVAL, Raw(_ENCODER.encode(shown))),
    )
    if stored.record.state is _S.PENDING_APPROVAL:
        made = move(stored, "void_approval", now, *said, approval=asked)
    else:
        callback = stored.terms.callback
        told = not isinstance(callback, UnsetType) and callback.approvals
        made = move(
            stored,
            "request_approval",
            now,
            *steps,
            _S.RUNNING,
            _S.PENDING_APPROVAL,
            *said,
            claim=True,
            approval=asked,
            callback_url=callback_url(stored) if told else "",
        )
    await board.move(item, made)
