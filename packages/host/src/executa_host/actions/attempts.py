"""One attempt of an action that was claimed, from its begin to what it makes of the action.

Owns the way to the runner and back. What an end means is `outcomes`', what is written
`endings`'.
"""

import asyncio

from msgspec import UNSET, UnsetType

from executa_host.actions.board import Board, Item
from executa_host.actions.crashpoints import point
from executa_host.actions.endings import end, move
from executa_host.actions.faults import Code
from executa_host.actions.operations import Step
from executa_host.actions.outcomes import Verdict, judge
from executa_host.actions.records import ActionError, ActionState
from executa_host.actions.runner import Attempt, Ended
from executa_host.actions.streaming import Stream
from executa_protocol.actions import TERMINAL
from executa_protocol.errors import UsageError

_S = ActionState


async def run(board: Board, item: Item, ended: Ended | None = None) -> None:
    """Run a claimed action, and write down what became of it; `ended` if it cannot be run."""
    fence = item.stored.fence
    stream = Stream(board, item)
    if ended is None:
        ended = await _attempt(board, item, stream)
    steps = await stream.close()
    while item.action_id in board.items and item.stored.fence == fence:
        # Who loses was overtaken by a cancellation, and looks at the state that it left.
        if item.state in TERMINAL or await _finish(board, item, ended, steps):
            return


async def _attempt(board: Board, item: Item, stream: Stream) -> Ended:
    stored = item.stored
    record, terms = stored.record, stored.terms
    timeout = terms.timeout_ms
    if record.expires_at_ms:
        timeout = min(timeout, record.expires_at_ms - board.now())
    raw = await board.input_of(item)
    if item.state is not _S.RUNNING:  # it was cancelled before it could begin
        return Ended(kind="cancelled", written=False)
    if timeout <= 0:
        return Ended(kind="timed_out", written=False)
    context = terms.context
    attempt = Attempt(
        action_id=record.action_id,
        attempt=record.attempt,
        plugin=item.entry.plugin,
        tool=item.tool,
        input=raw,
        timeout_ms=timeout,
        user_id=terms.user_id,
        app=terms.app,
        observability=UNSET if isinstance(context, UnsetType) else context.observability,
    )
    point("invoke.begun")
    begun = item.run = board.runner.begin(attempt, stream.emit)
    try:
        ended = await begun.ended()
    except asyncio.CancelledError:
        begun.abandon()
        raise
    finally:
        item.run = None
    point("invoke.answered")
    return ended


async def _finish(board: Board, item: Item, ended: Ended, steps: tuple[Step, ...]) -> bool:
    """Write down what the end means; whether that won."""
    stored, now = item.stored, board.now()
    record = stored.record
    verdict = judge(
        ended,
        stored.terms,
        record.attempt,
        cancelling=record.state is _S.CANCELLING,
        now_ms=now,
        expires_at_ms=record.expires_at_ms,
        jitter=board.jitter(),
    )
    if record.state is not _S.RUNNING:
        steps = tuple(step for step in steps if step is not _S.STREAMING)
    if verdict.state is _S.QUEUED:
        made = move(
            stored,
            "retry",
            now,
            *steps,
            _S.QUEUED,
            reason="retry",
            why="retry",
            last_error=verdict.error,
            not_before_ms=now + verdict.delay_ms,
        )
    else:
        made = end(stored, verdict, now, output=ended.output, before=steps)
    try:
        return await board.move(item, made)
    except UsageError as fault:
        # Nothing that a tool says may keep its action from ending: neither what it showed on
        # the way, nor its answer.
        if steps:
            return await _finish(board, item, ended, ())
        error = ActionError(Code.INVALID_REQUEST, f"the outcome cannot be kept: {fault}")
        failed = Verdict(state=_S.FAILED, error=error)
        return await board.move(item, end(stored, failed, now))
