"""Moves: compare-and-set on (state, fence), many actions in one statement (R-42)."""

# ruff: noqa: S608 - what is put together here are constants; values are bound

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from executa_host.actions.crashpoints import point
from executa_host.actions.operations import Move, Moved, Piece
from executa_host.actions.sqlite import values
from executa_host.actions.sqlite.rows import find_actions, text
from executa_host.actions.sqlite.work import Logged, Work
from executa_protocol.actions import TERMINAL, ActionState

_COLUMNS: Final = (
    "op, action_id, state, fence, approval_is, target, claim, again, events, chunks, at_ms,"
    " not_before_ms, approval_status, approval, cancellation, dead_letter, last_error, result"
)
_BEFORE: Final = f"with m ({_COLUMNS}) as (values"
_TERMINAL: Final = ", ".join(f"'{state}'" for state in sorted(TERMINAL))
_AFTER: Final = f""")
update actions set
    op = m.op,
    state = m.target,
    fence = actions.fence + m.claim,
    attempt = actions.attempt + m.again,
    events = actions.events + m.events,
    chunks = actions.chunks + m.chunks,
    updated_ms = m.at_ms,
    started_ms = case when m.claim then coalesce(started_ms, m.at_ms) else started_ms end,
    ended_ms = case when m.target in ({_TERMINAL}) then m.at_ms end,
    not_before_ms = m.not_before_ms,
    approval_status = coalesce(m.approval_status, actions.approval_status),
    approval = coalesce(m.approval, actions.approval),
    cancellation = coalesce(m.cancellation, actions.cancellation),
    dead_letter = coalesce(m.dead_letter, actions.dead_letter),
    last_error = coalesce(m.last_error, actions.last_error),
    result = coalesce(m.result, actions.result)
from m
where actions.action_id = m.action_id and actions.state = m.state and actions.fence = m.fence
    and (m.approval_is is null or actions.approval_status = m.approval_is)
returning op, n, fence, attempt, events, chunks"""


def move(work: Work, moves: Sequence[tuple[int, Move]]) -> None:
    """Apply moves, at most one for each action."""
    work.load_sessions(each.session_id for _, each in moves)
    rows = [_row(op, each) for op, each in moves]
    won = {row[0]: row for row in values.run(work.db, _BEFORE, _AFTER, rows)}
    for op, each in moves:
        row = won.get(op)
        if row is not None:
            _log(work, op, each, row)
    late = [(op, each) for op, each in moves if op not in won]
    if late:
        current = find_actions(work.db, {each.action_id for _, each in late})
        for op, each in late:
            there = current.get(each.action_id)
            work.answers[op] = Moved(current=there, missing=there is None)
    point("batch.moved")


def _row(op: int, move: Move) -> values.Row:
    again = move.reason in ("recovery", "retry")
    approval = move.approval
    return (
        op,
        move.action_id,
        move.state,
        move.fence,
        None if move.approval_is is UNSET else move.approval_is,
        move.target,
        int(move.claim),
        int(again),
        len(move.steps),
        sum(isinstance(step, Piece) for step in move.steps),
        move.at_ms,
        move.not_before_ms,
        None if approval is UNSET else approval.status,
        text(approval),
        text(move.cancellation),
        text(move.dead_letter),
        text(move.last_error),
        None if move.result is UNSET else bytes(move.result).decode(),
    )


def _log(work: Work, op: int, move: Move, row: values.Row) -> None:
    _, n, fence, attempt, events, chunks = row
    added = sum(isinstance(step, Piece) for step in move.steps)
    again = int(move.reason in ("recovery", "retry"))
    logged = Logged(
        n,
        move.action_id,
        move.state,
        attempt - again,
        number=events - len(move.steps),
        sequence=chunks - added,
        session=work.session(move.session_id),
    )
    work.log(logged, move.steps, move.at_ms, move.why)
    work.attest(logged, move.at_ms, move.receipts)
    target = move.target
    if target in TERMINAL:
        work.add("ended", 1)
    if move.callback_url and target is not move.state:
        if target in TERMINAL:
            work.call_back(logged, "ended", move.callback_url, move.at_ms)
        elif target is ActionState.PENDING_APPROVAL:
            work.call_back(logged, "pending_approval", move.callback_url, move.at_ms)
    work.answers[op] = Moved(fence, events, chunks)
