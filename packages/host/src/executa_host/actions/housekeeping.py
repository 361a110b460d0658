"""What is done from time to time: retention, settling of closed sessions, forgotten keys."""

import logging

from executa_host.actions.board import Board
from executa_host.actions.limits import PRUNE_STEP
from executa_host.actions.operations import Prune, Pruned, Settle
from executa_host.actions.store import StoreBroken
from executa_host.clock import sleep
from executa_protocol.errors import ExecutaError

_log = logging.getLogger(__name__)


async def keep_house(board: Board) -> None:
    """Do it again and again."""
    while True:
        await sleep(board.clock, board.settings.housekeeping_every_ms / 1000)
        try:
            await tidy(board)
        except StoreBroken:
            raise
        except ExecutaError:
            _log.exception("housekeeping failed; it is tried again")


async def tidy(board: Board) -> Pruned:
    """Do it once, in steps that let others write in between; what retention removed."""
    settings, retention = board.settings, board.settings.retention
    now = board.now()
    settle = Settle(at_ms=now, closed_before_ms=now - settings.settle_after_ms)
    settled = await board.store.apply(settle)
    while len(settled) >= settle.limit:
        settled = await board.store.apply(settle)
    total = Pruned()
    more = True
    while more:
        removed = await board.store.apply(
            Prune(
                at_ms=now,
                ended_before_ms=now - retention.age_ms,
                keep=retention.count,
                limit=PRUNE_STEP,
                key_outlives_ms=retention.key_outlives_ms,
                marker_age_ms=retention.marker_age_ms,
            )
        )
        total = Pruned(
            total.actions + removed.actions,
            total.sessions + removed.sessions,
            total.keys + removed.keys,
        )
        more = removed.more
    return total
