"""Following a log over connections that break: each event once, in order, none left out.

Owns reconnecting: after the cursor of the last event that was given, with pauses, for as long
as somebody is patient. The log's order and its gaplessness are the host's (R-51).
"""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

import msgspec

from executa_host.actions.records import EventRecord
from executa_host.client.errors import Unavailable, Unreachable, stream_error
from executa_host.client.transport import Transport
from executa_protocol import codec
from executa_protocol.errors import ExecutaError
from executa_protocol.sse import SseEvent, SseParser

SILENCE: Final = 45.0
"""Seconds without a byte after which a connection counts as dead: three signs of life."""

PATIENCE: Final = 60.0
"""Seconds without a connection after which following is given up."""

_NO_CONTENT: Final = 204
_EVENT: Final = msgspec.json.Decoder(EventRecord)
_KINDS: Final = frozenset({"state", "chunk", "approval", "session"})


class _Ended(Exception):
    """The log has ended."""


class Following:
    """One follower of one log. `cursor` is where it is: after the last event it gave."""

    def __init__(
        self,
        transport: Transport,
        path: str,
        after: str = "",
        *,
        patience: float = PATIENCE,
        silence: float = SILENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._path = path
        self.cursor = after
        self._patience = patience
        self._silence = silence
        self._clock = clock
        self._given_up = 0.0
        self._failures = 0

    async def events(self) -> AsyncGenerator[EventRecord, None]:
        """Every event after the cursor until the log ends.

        Raises `ApiError` for what the host refuses, and `Unreachable` or `Unavailable` when
        it could not be reached for too long.
        """
        self._progress()
        while True:
            try:
                async with aclosing(self._connection()) as events:
                    async for event in events:
                        yield event
                lost: ExecutaError = Unreachable("the host went away and did not come back")
            except _Ended:
                return
            except (Unreachable, Unavailable) as fault:
                lost = fault
            if self._clock() >= self._given_up:
                raise lost
            self._failures += 1
            await self._transport.pause(self._transport.delay(self._failures))

    async def _connection(self) -> AsyncGenerator[EventRecord, None]:
        headers = {"Accept": "text/event-stream"}
        if self.cursor:
            headers["Last-Event-ID"] = self.cursor
        async with self._transport.stream(self._path, headers, self._silence) as response:
            if response.status == _NO_CONTENT:
                raise _Ended
            parser = SseParser(last_event_id=self.cursor)
            async for piece in response.content.iter_any():
                for event in parser.feed(piece):
                    if event.type == "drain":  # come back later
                        return
                    record = self._take(event)
                    if record is not None:
                        yield record

    def _take(self, event: SseEvent) -> EventRecord | None:
        """The record of an event; None for one that was given before, or means nothing here."""
        if event.type == "end":
            raise _Ended
        if event.type == "error":
            raise stream_error(event.data)
        if event.type not in _KINDS:
            return None
        record = codec.decode(event.data, _EVENT)
        if record.cursor == self.cursor:
            return None
        self.cursor = record.cursor
        self._progress()
        return record

    def _progress(self) -> None:
        self._given_up = self._clock() + self._patience
        self._failures = 0
