"""Moves: compare-and-set on (state, fence), many actions in one statement (R-42)."""

# ruff: noqa: S608 - what is put together here are constants; values are bound

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import UNSET

from executa_host.actions.crashpoints import point
from executa_host.actions.operations import Move, Moved
from executa_host.actions.sqlite import values
from executa_host.actions.sqlite.rows import find_actions, json_text
from executa_host.actions.sqlite.work import Logged, Work
from executa_protocol.actions import TERMINAL, ActionState

_KNOWN: Final = "op, action_id, state, fence, events, chunks, at_ms"
"""What every move has."""

_SETS: Final = {
    "claim": "fence = actions.fence + 1, started_ms = coalesce(started_ms, m.at_ms)",
    "again": "attempt = actions.attempt + 1",
    "ended": "ended_ms = m.at_ms",
    "target": "state = m.target",
    "not_before_ms": "not_before_ms = m.not_before_ms",
    "approval_status": "approval_status = m.approval_status",
    "approval": "approval = m.approval",
    "cancellation": "cancellation = m.cancellation",
    "dead_letter": "dead_letter = m.dead_letter",
    "last_error": "last_error = m.last_error",
    "result": "result = m.result",
}
"""What only some moves do."""

_FLAGS: Final = ("claim", "again", "ended")
"""Those without a value."""

_AGAIN: Final = ("recovery", "retry")


@lru_cache(maxsize=256)
def _statement(does: tuple[str, ...]) -> tuple[str, str]:
    """What stands before and after the rows of a statement for moves that do all this."""
    sets = ", ".join(_SETS[each] for each in does if each in _SETS)
    columns = ", ".join([_KNOWN, *(each for each in does if each not in _FLAGS)])
    after = f""")
update actions set
    op = m.op,
    events = actions.events + m.events,
    chunks = actions.chunks + m.chunks,
    updated_ms = m.at_ms,
    {sets if "not_before_ms" in does else f"{sets}, not_before_ms = 0".lstrip(", ")}
from m
where actions.action_id = m.action_id and actions.state = m.state and actions.fence = m.fence
    {"and actions.approval_status = m.approval_is" if "approval_is" in does else ""}
returning op, n, fence, attempt, events, chunks"""
    return f"with m ({columns}) as (values", after


def move(work: Work, moves: Sequence[tuple[int, Move]]) -> None:
    """Apply moves, at most one for each action."""
    work.load_sessions(each.session_id for _, each in moves)
    rows: defaultdict[tuple[str, ...], list[values.Row]] = defaultdict(list)
    walks: list[tuple[int, Move, ActionState, int]] = []
    for op, each in moves:
        target, chunks = each.walk()
        walks.append((op, each, target, chunks))
        does, row = _row(op, each, target, chunks)
        rows[does].append(row)
    won = {
        row[0]: row
        for does, given in rows.items()
        for row in values.run(work.db, *_statement(does), given)
    }
    late: list[tuple[int, Move]] = []
    for op, each, target, chunks in walks:
        row = won.get(op)
        if row is None:
            late.append((op, each))
        else:
            work.answers[op] = _log(work, each, target, chunks, row)
    if late:
        current = find_actions(work.db, {each.action_id for _, each in late})
        for op, each in late:
            there = current.get(each.action_id)
            work.answers[op] = Moved(current=there, missing=there is None)
    point("batch.moved")


def _row(
    op: int, move: Move, target: ActionState, chunks: int
) -> tuple[tuple[str, ...], values.Row]:
    """What a move does beyond what every move does, and its row."""
    state = str(move.state)
    row: list[Any] = [op, move.action_id, state, move.fence, len(move.steps), chunks, move.at_ms]
    does: list[str] = []
    if move.claim:
        does.append("claim")
    if move.reason in _AGAIN:
        does.append("again")
    if target in TERMINAL:
        does.append("ended")
    if target is not move.state:
        does.append("target")
        row.append(str(target))
    if move.not_before_ms:
        does.append("not_before_ms")
        row.append(move.not_before_ms)
    if move.approval_is is not UNSET:
        does.append("approval_is")
        row.append(str(move.approval_is))
    if move.approval is not UNSET:
        does += ("approval_status", "approval")
        row += (str(move.approval.status), json_text(move.approval))
    if move.cancellation is not UNSET:
        does.append("cancellation")
        row.append(json_text(move.cancellation))
    if move.dead_letter is not UNSET:
        does.append("dead_letter")
        row.append(json_text(move.dead_letter))
    if move.last_error is not UNSET:
        does.append("last_error")
        row.append(json_text(move.last_error))
    if move.result is not UNSET:
        does.append("result")
        row.append(bytes(move.result).decode())
    return tuple(does), tuple(row)


def _log(work: Work, move: Move, target: ActionState, added: int, row: values.Row) -> Moved:
    _, n, fence, attempt, events, chunks = row
    again = int(move.reason in _AGAIN)
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
    if target in TERMINAL:
        work.add("ended", 1)
    if move.callback_url and target is not move.state:
        if target in TERMINAL:
            work.call_back(logged, "ended", move.callback_url, move.at_ms)
        elif target is ActionState.PENDING_APPROVAL:
            work.call_back(logged, "pending_approval", move.callback_url, move.at_ms)
    return Moved(fence, events, chunks)
