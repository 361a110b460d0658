"""Callbacks until they are taken: at least once, with growing pauses, for about a day.

A delivery is on disk from the transaction that ended its action; what is tried, and when
again, is written down after each attempt. So a crash may repeat a delivery and never loses
one; its number, the same each time, lets the receiver tell.
"""

import logging
from typing import Any, Final

import msgspec

from executa_host.actions.board import Board
from executa_host.actions.callback_http import (
    DELIVERY,
    EVENT,
    SIGNATURE,
    DeliveryFailed,
    Poster,
    sign,
)
from executa_host.actions.crashpoints import point
from executa_host.actions.endings import result_of
from executa_host.actions.limits import CALLBACKS_AT_ONCE, DAY
from executa_host.actions.operations import CallbackTried, Stored
from executa_host.actions.outcomes import backoff
from executa_host.actions.records import Retry
from executa_host.actions.store import CALLBACKS, Delivery
from executa_host.actions.timing import wait_for

_log = logging.getLogger(__name__)
_ENCODER = msgspec.json.Encoder()
_NOTHING_DUE: Final = DAY


class Callbacks:
    """Delivers what is due."""

    def __init__(self, board: Board, poster: Poster) -> None:
        self._board = board
        self._poster = poster
        self._under_way: set[int] = set()

    @property
    def pending_count(self) -> int:
        """Deliveries under way; for the leak check."""
        return len(self._under_way)

    async def run(self) -> None:
        """Deliver, for ever."""
        store, clock = self._board.store, self._board.clock
        with store.watch(CALLBACKS) as bell:
            while True:
                bell.clear()
                room = CALLBACKS_AT_ONCE - len(self._under_way)
                if room > 0:
                    # Those under way are still due: more are asked for than there is room for.
                    # One that ends while we ask may be in the answer all the same.
                    under_way = frozenset(self._under_way)
                    due = await store.deliveries(self._board.now(), CALLBACKS_AT_ONCE + room)
                    fresh = [each for each in due if each.delivery not in under_way]
                    for delivery in fresh[:room]:
                        self._under_way.add(delivery.delivery)
                        self._board.spawn(self._deliver(delivery, bell.set))
                await wait_for(clock, bell, await self._pause() / 1000)

    async def _pause(self) -> int:
        if self._under_way:
            return _NOTHING_DUE  # each of them rings when it is over
        due = await self._board.store.next_delivery_ms()
        return _NOTHING_DUE if due is None else max(0, due - self._board.now())

    async def _deliver(self, delivery: Delivery, over: Any) -> None:
        try:
            error = await self._try(delivery)
            point("callback.sent")
            settings = self._board.settings.callbacks
            now, tried = self._board.now(), delivery.attempts + 1
            again = 0
            if error and tried < settings.attempts:
                pace = Retry(settings.attempts, settings.base_ms, settings.max_ms)
                again = now + max(1, backoff(pace, tried, self._board.jitter()))
            elif error:
                _log.warning("callback %d is given up: %s", delivery.delivery, error)
            await self._board.store.apply(
                CallbackTried(at_ms=now, delivery=delivery.delivery, next_at_ms=again, error=error)
            )
        finally:
            self._under_way.discard(delivery.delivery)
            over()

    async def _try(self, delivery: Delivery) -> str:
        """What went wrong; empty if it was taken."""
        found = await self._board.store.action(delivery.action_id)
        if not isinstance(found, Stored):
            return ""  # retention took it: there is nothing left to tell
        settings = self._board.settings.callbacks
        secret = settings.secrets.get(found.record.tenant, settings.secrets.get("*"))
        if secret is None:
            return f"tenant {found.record.tenant} has no secret to sign with"
        kind = f"action.{delivery.kind}"
        body = _ENCODER.encode(
            {
                "type": kind,
                "delivery": delivery.delivery,
                "action": msgspec.structs.replace(found.record, result=msgspec.UNSET),
                "result": result_of(found),
            }
        )
        at = self._board.now() // 1000
        headers = {
            "Content-Type": "application/json",
            SIGNATURE: sign(secret, at, body),
            DELIVERY: str(delivery.delivery),
            EVENT: kind,
        }
        try:
            await self._poster.post(delivery.url, body, headers, settings.timeout_ms / 1000)
        except DeliveryFailed as fault:
            return str(fault) or "it was not taken"
        return ""
