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

_TERMINAL: Final = ", ".join(f"'{state}'" for state in sorted(TERMINAL))


def _statement(columns: str, more: str, condition: str) -> tuple[str, str]:
    """What stands before and after the rows of a statement that moves actions."""
    after = f""")
update actions set
    op = m.op,
    state = m.target,
    fence = actions.fence + m.claim,
    events = actions.events + m.events,
    chunks = actions.chunks + m.chunks,
    updated_ms = m.at_ms,
    started_ms = case when m.claim then coalesce(started_ms, m.at_ms) else started_ms end,
    {more}
from m
where actions.action_id = m.action_id and actions.state = m.state and actions.fence = m.fence
    {condition}
returning op, n, fence, attempt, events, chunks"""
    return f"with m ({columns}) as (values", after


_PLAIN: Final = "op, action_id, state, fence, target, claim, events, chunks, at_ms"
_MORE: Final = (
    "again, not_before_ms, approval_is, approval_status, approval, cancellation, dead_letter,"
    " last_error, result"
)
_ONWARD: Final = _statement(_PLAIN, "not_before_ms = 0", "")
"""Most moves: an action goes on, and nothing about it is decided."""
_WHOLE: Final = _statement(
    f"{_PLAIN}, {_MORE}",
    f"""attempt = actions.attempt + m.again,
    ended_ms = case when m.target in ({_TERMINAL}) then m.at_ms end,
    not_before_ms = m.not_before_ms,
    approval_status = coalesce(m.approval_status, actions.approval_status),
    approval = coalesce(m.approval, actions.approval),
    cancellation = coalesce(m.cancellation, actions.cancellation),
    dead_letter = coalesce(m.dead_letter, actions.dead_letter),
    last_error = coalesce(m.last_error, actions.last_error),
    result = coalesce(m.result, actions.result)""",
    "and (m.approval_is is null or actions.approval_status = m.approval_is)",
)


def move(work: Work, moves: Sequence[tuple[int, Move]]) -> None:
    """Apply moves, at most one for each action."""
    work.load_sessions(each.session_id for _, each in moves)
    onward: list[values.Row] = []
    whole: list[values.Row] = []
    for op, each in moves:
        plain = _plain(op, each)
        more = _more(each)
        if any(value is not None for value in more):
            again, not_before_ms, *rest = more
            whole.append((*plain, again or 0, not_before_ms or 0, *rest))
        else:
            onward.append(plain)
    won = {
        row[0]: row
        for statement, rows in ((_ONWARD, onward), (_WHOLE, whole))
        for row in values.run(work.db, *statement, rows)
    }
    late: list[tuple[int, Move]] = []
    for op, each in moves:
        row = won.get(op)
        if row is None:
            late.append((op, each))
        else:
            _log(work, op, each, row)
    if late:
        current = find_actions(work.db, {each.action_id for _, each in late})
        for op, each in late:
            there = current.get(each.action_id)
            work.answers[op] = Moved(current=there, missing=there is None)
    point("batch.moved")


def _plain(op: int, move: Move) -> values.Row:
    return (
        op,
        move.action_id,
        move.state,
        move.fence,
        move.target,
        int(move.claim),
        len(move.steps),
        sum(isinstance(step, Piece) for step in move.steps),
        move.at_ms,
    )


def _more(move: Move) -> values.Row:
    """What only some moves have; None for each member that this one has not."""
    approval = move.approval
    return (
        1 if move.reason in ("recovery", "retry") else None,
        move.not_before_ms or None,
        None if move.approval_is is UNSET else move.approval_is,
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
