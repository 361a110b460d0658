"""Server-sent events: order, reconnects, signs of life, slow clients, and how a stream ends."""

import asyncio
import select
import socket
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

import aiohttp
import msgspec

from executa_host.actions.records import ActionState, EventRecord
from executa_host.api.streams import wants_stream
from executa_host.api.visit import Pace
from executa_protocol.sse import SseEvent, SseParser
from tests.api.conftest import MakeRig
from tests.api.rigs import Rig

STREAM = "text/event-stream"


class Listener:
    """A stream as its bytes come: events one by one, signs of life counted."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self._parser = SseParser()
        self._ready: list[SseEvent] = []
        self.signs = 0
        self.retry: int | None = None

    async def next(self) -> SseEvent | None:
        """The next event; None at the end of the stream."""
        async with asyncio.timeout(20):
            while not self._ready:
                piece = await self.response.content.readany()
                if not piece:
                    return None
                self.signs += piece.count(b": waiting")
                self._ready = self._parser.feed(piece)
                self.retry = self._parser.retry
        return self._ready.pop(0)

    async def sign(self) -> None:
        """Wait for a sign of life."""
        before = self.signs
        async with asyncio.timeout(20):
            while self.signs == before:
                piece = await self.response.content.readany()
                assert piece
                self.signs += piece.count(b": waiting")
                self._ready += self._parser.feed(piece)

    async def rest(self) -> list[SseEvent]:
        """Everything up to the end."""
        found: list[SseEvent] = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found


@asynccontextmanager
async def listening(
    rig: Rig, subject: str, last: str = "", key: str = "", query: str = ""
) -> AsyncGenerator[Listener]:
    """A stream of an action or a session."""
    kind = "sessions" if subject.startswith("ses_") else "actions"
    headers = {"Accept": STREAM, "Authorization": f"Bearer {key or rig.key()}"}
    if last:
        headers["Last-Event-ID"] = last
    url = f"{rig.url}/v1/{kind}/{subject}/events{query}"
    async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as response:
        yield Listener(response)


async def _running(rig: Rig, chunks: int = 0) -> str:
    action_id = (await rig.client().submit("notebook.recall")).action.action_id
    for number in range(chunks):
        rig.actions.chunk(action_id, {"n": number})
    return action_id


async def test_backlog_and_live_tail_join_and_the_end_is_said(rig: Rig) -> None:
    action_id = await _running(rig, chunks=2)
    async with listening(rig, action_id) as stream:
        assert stream.response.status == 200
        assert stream.response.content_type == STREAM
        assert stream.response.headers["Cache-Control"] == "no-store"
        first = [await stream.next() for _ in range(4)]
        rig.actions.chunk(action_id, {"text": "line\nend"})
        rig.actions.finish(action_id, [])
        events = [event for event in [*first, *await stream.rest()] if event is not None]
    kinds = [event.type for event in events]
    assert kinds == ["state", "state", "chunk", "chunk", "chunk", "state", "end"]
    assert [event.id for event in events[:6]] == [f"c{number}" for number in range(1, 7)]
    last = msgspec.json.decode(events[5].data, type=EventRecord)
    assert (last.cursor, last.state) == ("c6", "completed")
    assert stream.retry == 1000


async def test_a_reconnect_goes_on_after_the_last_event_without_gap_or_repeat(rig: Rig) -> None:
    action_id = await _running(rig, chunks=3)
    key = rig.key()
    seen: list[str] = []
    last = ""
    for number in range(3, 9):
        async with listening(rig, action_id, last, key) as stream:
            event = await stream.next()
            assert event is not None
            seen.append(event.id)
            last = event.id
        rig.actions.chunk(action_id, {"n": number})
    rig.actions.finish(action_id)
    async with listening(rig, action_id, last, key) as stream:
        seen += [event.id for event in await stream.rest() if event.type != "end"]
    assert seen == [f"c{number}" for number in range(1, 13)]


async def test_last_event_id_counts_before_the_query(rig: Rig) -> None:
    action_id = await _running(rig, chunks=3)
    rig.actions.finish(action_id)
    async with listening(rig, action_id, "c4", query="?after=c1") as stream:
        assert [event.id for event in await stream.rest()][:-1] == ["c5", "c6"]
    async with listening(rig, action_id, query="?after=c4") as stream:
        assert [event.id for event in await stream.rest()][:-1] == ["c5", "c6"]


async def test_a_reconnect_after_the_end_is_told_not_to_come_again(rig: Rig) -> None:
    action_id = await _running(rig)
    rig.actions.finish(action_id)
    async with listening(rig, action_id, "c3") as stream:
        assert stream.response.status == 204
    async with listening(rig, action_id, query="?after=c3") as stream:
        assert [event.type for event in await stream.rest()] == ["end"]


async def test_silence_shows_signs_of_life(rig: Rig) -> None:
    action_id = await _running(rig)
    async with listening(rig, action_id) as stream:
        await stream.sign()
        await stream.sign()
        rig.actions.finish(action_id)
        assert [event.type for event in await stream.rest()] == ["state", "state", "state", "end"]


async def test_a_sessions_stream_has_the_events_of_all_its_actions(rig: Rig) -> None:
    client = rig.client()
    session_id = (await client.sessions.open("agent")).session.session_id
    one = await client.submit("notebook.recall", session_id=session_id)
    two = await client.submit("notebook.recall", session_id=session_id)
    async with listening(rig, session_id) as stream:
        events = [await stream.next() for _ in range(4)]
        records = [msgspec.json.decode(event.data, type=EventRecord) for event in events if event]
    ids = [record.action_id for record in records]
    assert ids == [one.action.action_id] * 2 + [two.action.action_id] * 2


async def test_a_client_that_goes_away_ends_its_stream_and_cancels_nothing(rig: Rig) -> None:
    action_id = await _running(rig)
    async with listening(rig, action_id) as stream:
        await stream.next()
    async with asyncio.timeout(20):
        await rig.actions.idle.wait()
    assert rig.actions.records[action_id].state is ActionState.RUNNING


async def test_a_client_that_takes_nothing_is_cut_off_and_the_others_are_not(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(Pace(heartbeat=0.05, stall=0.2))
    async with rig.server:
        action_id = await _running(rig)
        for _ in range(30):
            rig.actions.chunk(action_id, "x" * 1_000_000)
        stuck = socket.create_connection(rig.address)
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.sendall(
            f"GET /v1/actions/{action_id}/events HTTP/1.1\r\nHost: x\r\nAccept: {STREAM}\r\n"
            f"Authorization: Bearer {rig.key()}\r\n\r\n".encode()
        )
        rig.actions.finish(action_id)
        async with listening(rig, action_id) as stream:
            assert len(await stream.rest()) == 34
        watch = select.poll()
        watch.register(stuck, 0)  # told of the end alone, while nothing is read
        assert await asyncio.to_thread(watch.poll, 20_000)
        stuck.close()
        await rig.close()


async def test_a_revoked_key_ends_its_streams(rig: Rig) -> None:
    action_id = await _running(rig)
    made = rig.keys.create("ada")
    async with listening(rig, action_id, key=made.text) as stream:
        await stream.sign()
        rig.keys.revoke(made.key.key_id)
        events = await stream.rest()
    assert events[-1].type == "error"
    assert b"UNAUTHENTICATED" in events[-1].data


async def test_a_draining_host_tells_followers_to_come_back(rig: Rig) -> None:
    action_id = await _running(rig)
    async with listening(rig, action_id) as stream:
        await stream.sign()
        await rig.server.drain(1.0)
        events = await stream.rest()
    assert [event.type for event in events] == ["state", "state", "drain"]


async def test_a_closing_server_tells_followers_even_without_a_drain(rig: Rig) -> None:
    action_id = await _running(rig)
    async with listening(rig, action_id) as stream:
        await stream.sign()
        closing = asyncio.create_task(rig.server.close())
        events = await stream.rest()
        await closing
    assert events[-1].type == "drain"


async def test_followers_of_the_client_reconnect_by_themselves(rig: Rig) -> None:
    action_id = await _running(rig, chunks=2)
    client = rig.client()
    seen: list[str] = []
    async with aclosing(client.follow(action_id)) as events:
        async for event in events:
            seen.append(event.cursor)
            if event.cursor == "c4":
                rig.break_connections()
                rig.actions.chunk(action_id, "after the break")
            if event.cursor == "c5":
                rig.actions.finish(action_id)
    assert seen == ["c1", "c2", "c3", "c4", "c5", "c6"]


def test_a_stream_is_given_to_who_prefers_one() -> None:
    assert wants_stream([STREAM])
    assert wants_stream(["text/html, Text/Event-Stream;q=0.5"])
    assert wants_stream([STREAM, "application/json"])
    assert not wants_stream([])
    assert not wants_stream(["*/*"])
    assert not wants_stream([f"{STREAM};q=0"])
    assert not wants_stream([f"{STREAM};q=0.2, application/json"])
    assert not wants_stream([f"{STREAM};q=."])
