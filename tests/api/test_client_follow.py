"""Following with the client over every kind of break: each event once, in order, none left out."""

import asyncio
import json

import pytest

from executa_host.client import Client, Gone, Unreachable
from tests.api.flaky import KEY, Flaky, refusal
from tests.api.rigs import Rig

ACTION = "act_00000000000000000000000000"


def event(cursor: str, state: str) -> bytes:
    """One event of a stream."""
    data = json.dumps({"cursor": cursor, "type": "state", "at_ms": 1, "state": state})
    return f"id: {cursor}\nevent: state\ndata: {data}\n\n".encode()


async def test_following_goes_on_over_every_kind_of_break(flaky: Flaky, client: Client) -> None:
    flaky.script = [
        (503, refusal("DRAINING", retryable=True)),
        (200, event("c1", "accepted") + event("c2", "queued")[:-10]),  # cut in an event
        None,
        (200, event("c2", "queued") + b"event: drain\ndata: {}\n\n" + event("c9", "never")),
        (200, event("c2", "queued") + event("c3", "running")),  # what was seen comes again
        (200, b": waiting\n\nevent: something-new\ndata: 1\n\n"),
        (200, event("c4", "completed") + b"event: end\ndata: {}\n\n"),
    ]
    seen = [record.cursor async for record in client.follow(ACTION)]
    assert seen == ["c1", "c2", "c3", "c4"]
    asked = [headers.get("Last-Event-ID", "") for headers in flaky.headers]
    assert asked == ["", "", "c1", "c1", "c2", "c3", "c3"]


async def test_following_after_the_end_ends(flaky: Flaky, client: Client) -> None:
    flaky.script = [(204, b"")]
    assert [record async for record in client.follow(ACTION, "c4")] == []
    assert flaky.headers[0]["Last-Event-ID"] == "c4"


async def test_an_error_in_a_stream_is_an_exception(flaky: Flaky, client: Client) -> None:
    told = b'event: error\ndata: {"code": "CURSOR_GONE", "message": "too old"}\n\n'
    flaky.script = [(200, event("c1", "accepted") + told)]
    events = client.follow(ACTION)
    assert (await anext(events)).cursor == "c1"
    with pytest.raises(Gone) as refused:
        await anext(events)
    assert refused.value.code == "CURSOR_GONE"


async def test_patience_with_a_host_that_does_not_come_back_ends(
    flaky: Flaky, client: Client
) -> None:
    flaky.script = [(200, event("c1", "accepted"))]
    with pytest.raises(Unreachable, match="did not come back"):
        async for _ in client.follow(ACTION, patience=0.0):
            pass


async def test_a_connection_without_a_sign_of_life_is_given_up(rig: Rig) -> None:
    silent = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await silent.wait()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = rig.client_of(KEY, f"http://127.0.0.1:{port}")
    with pytest.raises(Unreachable, match=r"in time|broke"):
        async for _ in client.follow(ACTION, patience=0.0, silence=0.05):
            pass
    await client.close()
    silent.set()
    server.close()
    await server.wait_closed()
