"""What becomes of actions that an engine before this one left open (R-47)."""

from executa_host.actions.board import Board, Item
from executa_host.actions.dispatch import Dispatcher
from executa_host.actions.endings import end, move
from executa_host.actions.outcomes import after_crash
from executa_host.actions.records import ActionState

_S = ActionState
_LEFT_RUNNING = frozenset({_S.RUNNING, _S.STREAMING, _S.CANCELLING})
_PAGE = 500


async def recover(board: Board, dispatcher: Dispatcher) -> int:
    """Take over every open action; how many there were.

    Those that were on their way to a plugin, or there, are decided on before any other runs.
    """
    after = ""
    found: list[Item] = []
    while page := await board.store.open_actions(after, _PAGE):
        found += [board.add(stored) for stored in page]
        after = page[-1].record.action_id
    tasks = [board.spawn(_decide(board, item)) for item in found if item.state in _LEFT_RUNNING]
    for task in tasks:
        await task
    for item in found:
        dispatcher.admit(item)
    return len(found)


async def _decide(board: Board, item: Item) -> None:
    stored, now = item.stored, board.now()
    record = stored.record
    verdict = after_crash(record.state, stored.terms, record.attempt)
    if verdict.state is _S.QUEUED:
        made = move(
            stored,
            "recover",
            now,
            _S.QUEUED,
            reason="recovery",
            why="recovery",
            last_error=verdict.error,
        )
    else:
        made = end(stored, verdict, now, step="recover", why="recovery")
    await board.move(item, made)
