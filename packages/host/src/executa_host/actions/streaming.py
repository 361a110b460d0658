"""Chunks of one attempt on their way to the disk, in order, many at a time.

While some are being written the next ones gather; what is left when the attempt ends goes
into the transaction that ends the action.
"""

import asyncio
import logging
from collections import deque
from typing import Final

from msgspec import Raw

from executa_host.actions.board import Board, Item
from executa_host.actions.endings import move
from executa_host.actions.limits import CHUNKS_AT_ONCE, CHUNKS_WAITING
from executa_host.actions.operations import Piece, Step
from executa_host.actions.records import ActionState, Mode
from executa_protocol.chunks import ChunkKind
from executa_protocol.errors import UsageError

_log = logging.getLogger(__name__)

_LIVE: Final = frozenset({ActionState.RUNNING, ActionState.STREAMING, ActionState.CANCELLING})
_MAY_BE_DROPPED: Final = frozenset({ChunkKind.PROGRESS, ChunkKind.PREVIEW})


class Stream:
    """What one attempt shows. Only the attempt that claimed at `fence` may write."""

    def __init__(self, board: Board, item: Item) -> None:
        self._board = board
        self._item = item
        self._fence = item.stored.fence
        self._waiting: deque[Piece] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._closed = False
        self.dropped = 0

    def emit(self, kind: ChunkKind, data: Raw) -> None:
        """Take a chunk. Too many at a time lose progress and previews; after the end, all."""
        full = len(self._waiting) >= CHUNKS_WAITING
        if self._closed or (full and kind in _MAY_BE_DROPPED):
            self.dropped += 1
            return
        self._waiting.append(Piece(kind, data))
        if self._writing is None:
            self._writing = self._board.spawn(self._write())

    async def close(self) -> tuple[Step, ...]:
        """Take nothing more, and give the steps that are still to be written."""
        self._closed = True
        if self._writing is not None:
            await asyncio.wait((self._writing,))
        return self._steps(len(self._waiting))

    async def _write(self) -> None:
        try:
            while self._waiting and not self._closed and self._mine():
                pieces = list(self._waiting)[:CHUNKS_AT_ONCE]
                steps = self._steps(CHUNKS_AT_ONCE)
                made = move(self._item.stored, "chunk", self._board.now(), *steps)
                try:
                    won = await self._board.move(self._item, made)
                except UsageError as fault:
                    _log.warning("chunks of %s are lost: %s", self._item.action_id, fault)
                    continue
                if not won:
                    # It is being cancelled, or is no longer ours: what is said next sees which.
                    self._waiting.extendleft(reversed(pieces))
        finally:
            self._writing = None

    def _mine(self) -> bool:
        return self._item.stored.fence == self._fence and self._item.state in _LIVE

    def _steps(self, most: int) -> tuple[Step, ...]:
        """The next chunks as steps; the first of a streaming action make it stream (R-41)."""
        count = min(most, len(self._waiting))
        pieces = [self._waiting.popleft() for _ in range(count)]
        streams = self._item.stored.terms.mode is Mode.STREAMING
        if pieces and streams and self._item.state is ActionState.RUNNING:
            return (ActionState.STREAMING, *pieces)
        return tuple(pieces)
