"""Events as JSON pages and as server-sent events (R-51).

Owns the stream: what its events are named, that silence shows signs of life, and how it ends:
``end`` (the log has ended), ``drain`` (come back later), ``error`` (it says why), or the
connection of a client that takes nothing. A stream keeps nothing: it reads the store after
the cursor of the last event, as fast as the client takes them.
"""

import asyncio
import re
import socket
import struct
from collections.abc import AsyncIterator
from typing import Final

import msgspec
from aiohttp import web

from executa_host.actions.faults import ActionsError, Code, Unavailable
from executa_host.actions.interface import Actions, EventPage
from executa_host.api.limits import RETRY_MS, STREAM_FLUSH, TOKEN_CHARS
from executa_host.api.refusal import (
    NO_STORE,
    ApiCode,
    ErrorBody,
    answer,
    body_of,
    invalid,
)
from executa_host.api.visit import Closing, Lifeline, Pace, Visit
from executa_host.keys import KeysUnreadable
from executa_protocol.sse import encode_event

_HEADERS: Final = {
    **NO_STORE,
    "Content-Type": "text/event-stream; charset=utf-8",
    "X-Accel-Buffering": "no",
}
_STREAM: Final = "text/event-stream"
_QUALITY: Final = re.compile(r";\s*q\s*=\s*([0-9.]+)")


class Stalled(Exception):
    """The client takes nothing any more."""


class Streams:
    """Answers requests for the events of one action or session."""

    def __init__(self, actions: Actions, lifeline: Lifeline, pace: Pace) -> None:
        self._actions = actions
        self._lifeline = lifeline
        self._pace = pace
        self.open = 0
        """Streams that are being followed."""

    async def answer(self, visit: Visit, subject: str) -> web.StreamResponse:
        """A page, or a stream if that is what the client asks for."""
        if wants_stream(visit.request.headers.getall("Accept", [])):
            return await self._stream(visit, subject)
        return answer(await self._page(visit, subject))

    async def _page(self, visit: Visit, subject: str) -> EventPage:
        given = visit.query
        events = self._actions.events
        try:
            return await self._lifeline.wait(
                events(visit.caller, subject, given.after, limit=given.limit, wait=given.wait)
            )
        except Closing:
            return await events(visit.caller, subject, given.after, limit=given.limit)

    async def _stream(self, visit: Visit, subject: str) -> web.StreamResponse:
        last = visit.request.headers.get("Last-Event-ID", "")
        if len(last) > TOKEN_CHARS:
            raise invalid("no cursor of this log", "Last-Event-ID", Code.CURSOR_INVALID)
        # A refusal before the first event is an ordinary answer.
        page = await self._actions.events(visit.caller, subject, last or visit.query.after)
        if last and page.ended and not page.events:
            # Nothing will ever follow: this is how an EventSource is told not to come again.
            return web.Response(status=204, headers=NO_STORE)
        response = web.StreamResponse(headers=_HEADERS)
        await response.prepare(visit.request)
        self.open += 1
        try:
            await self._send(response, encode_event(retry=RETRY_MS))
            await self._follow(visit, subject, page, response)
            await response.write_eof()
        except Stalled:
            _cut_off(visit.request.transport)
        finally:
            self.open -= 1
        return response

    async def _follow(
        self, visit: Visit, subject: str, page: EventPage, response: web.StreamResponse
    ) -> None:
        await self._send_page(response, page)
        if not page.ended:
            pages = self._actions.follow(
                visit.caller, subject, page.cursor, heartbeat=self._pace.heartbeat
            )
            try:
                closing = await self._tail(visit, pages, response)
            finally:
                if (close := getattr(pages, "aclose", None)) is not None:
                    await close()
            if closing:
                await self._send(response, closing)
                return
        await self._send(response, encode_event(b"{}", event="end"))

    async def _tail(
        self, visit: Visit, pages: AsyncIterator[EventPage], response: web.StreamResponse
    ) -> bytes:
        """Pages until the log ends. Gives the event that ends the stream earlier, if one does."""
        try:
            while (page := await self._lifeline.wait(anext(pages, None))) is not None:
                if not visit.still():
                    told = ErrorBody(ApiCode.UNAUTHENTICATED, "the key has expired or was revoked")
                    return encode_event(msgspec.json.encode(told), event="error")
                await self._send_page(response, page)
        except (Closing, Unavailable):
            return encode_event(b"{}", event="drain", retry=RETRY_MS)
        except ActionsError as fault:
            return encode_event(msgspec.json.encode(body_of(fault)), event="error")
        except KeysUnreadable:
            told = ErrorBody(ApiCode.KEYS_UNREADABLE, "no key can be checked now", retryable=True)
            return encode_event(msgspec.json.encode(told), event="error")
        return b""

    async def _send_page(self, response: web.StreamResponse, page: EventPage) -> None:
        if not page.events:
            await self._send(response, encode_event(comment="waiting"))
        ready = bytearray()
        for event in page.events:
            ready += encode_event(
                msgspec.json.encode(event), event=event.type, event_id=event.cursor
            )
            if len(ready) >= STREAM_FLUSH:
                await self._send(response, bytes(ready))
                ready.clear()
        if ready:
            await self._send(response, bytes(ready))

    async def _send(self, response: web.StreamResponse, data: bytes) -> None:
        try:
            async with asyncio.timeout(self._pace.stall):
                await response.write(data)
        except TimeoutError:
            raise Stalled from None


def _cut_off(transport: asyncio.Transport | None) -> None:
    """End a connection at once: what the kernel still holds for the client goes too."""
    if transport is not None:
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()


def wants_stream(accepts: list[str]) -> bool:
    """Whether a client prefers a stream to JSON; one that says nothing does not."""
    ranges: dict[str, float] = {}
    for part in ",".join(accepts).split(","):
        kind = part.partition(";")[0].strip().lower()
        found = _QUALITY.search(part)
        try:
            ranges[kind] = float(found[1]) if found else 1.0
        except ValueError:
            ranges[kind] = 0.0
    stream = ranges.get(_STREAM, 0.0)
    return stream > 0 and stream >= ranges.get("application/json", 0.0)
