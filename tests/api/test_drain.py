"""The end of a server, and clients that end before it: nothing that was begun is cut."""

import asyncio
from typing import Any

import aiohttp
import pytest

from executa_host.actions.records import ActionState, Mode
from executa_host.api import ApiServer
from executa_host.api.visit import Closing, Lifeline, Pace
from executa_host.client import Client, Unavailable, Unreachable
from executa_host.keys import KeyFile
from executa_protocol.errors import UsageError
from tests.api.conftest import MakeRig
from tests.api.rigs import Rig, no_pause


async def test_a_draining_host_is_alive_not_ready_and_takes_no_new_work(rig: Rig) -> None:
    client = rig.client()
    action_id = (await client.submit("notebook.recall")).action.action_id
    assert (await client.ready()).ready
    await rig.server.drain(1.0)
    ready = await client.ready()
    assert (ready.ready, ready.draining) == (False, True)
    async with aiohttp.ClientSession() as http:
        for ask in (http.get, http.head):
            for base in (rig.url, f"{rig.url}/v1"):
                async with ask(f"{base}/readyz") as response:
                    assert response.status == 503
                async with ask(f"{base}/healthz") as response:
                    assert response.status == 200
    with pytest.raises(Unavailable) as refused:
        await client.submit("notebook.recall")
    assert (refused.value.code, refused.value.retryable) == ("DRAINING", True)
    assert await client.get(action_id) is not None


async def test_a_drain_answers_who_waits_with_the_record(make_rig: MakeRig) -> None:
    rig = make_rig(Pace(sync=30.0))
    async with rig.server:
        client = rig.client()
        action_id = (await client.submit("notebook.recall")).action.action_id
        page = await client.events(action_id)
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            result = group.create_task(client.result(action_id, wait=30))
            events = group.create_task(client.events(action_id, page.cursor, wait=30))
            sync = group.create_task(client.submit("notebook.recall", mode=Mode.SYNC))
            await rig.actions.until_waiting(3)
            await rig.server.drain(1.0)
        assert result.result().action.state is ActionState.RUNNING
        assert result.result().result is None
        assert events.result().events == ()
        assert events.result().cursor == page.cursor
        assert sync.result().action.state is ActionState.RUNNING
        await rig.close()


async def test_a_change_that_was_begun_is_finished_before_the_server_has_gone(rig: Rig) -> None:
    rig.actions.hold = asyncio.Event()
    client = rig.client()
    submitting = asyncio.create_task(client.submit("notebook.recall"))
    async with asyncio.timeout(20):
        await rig.actions.submitting.wait()
        closing = asyncio.create_task(rig.server.close())
        rig.actions.hold.set()
        assert (await submitting).action.state is ActionState.RUNNING
        await closing
    assert len(rig.actions.records) == 1


async def test_a_client_that_goes_away_leaves_its_submission_to_be_accepted(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.actions.hold = asyncio.Event()
    server = rig.web_server
    gone, lost = asyncio.Event(), server.connection_lost

    def connection_lost(*told: Any) -> None:
        lost(*told)
        gone.set()

    monkeypatch.setattr(server, "connection_lost", connection_lost)
    host, port = rig.address
    _, writer = await asyncio.open_connection(host, port)
    body = b'{"capability": "notebook.recall"}'
    writer.write(
        f"POST /v1/actions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {rig.key()}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    async with asyncio.timeout(20):
        await rig.actions.submitting.wait()
        writer.close()
        await writer.wait_closed()
        await gone.wait()
        assert rig.server.in_flight == 1
        rig.actions.hold.set()
        await rig.server.close()
    (record,) = rig.actions.records.values()
    assert record.state is ActionState.RUNNING


async def test_a_client_that_stops_waiting_cancels_nothing(rig: Rig) -> None:
    client = rig.client()
    action_id = (await client.submit("notebook.recall")).action.action_id
    waiting = asyncio.create_task(client.result(action_id, wait=30))
    async with asyncio.timeout(20):
        await rig.actions.until_waiting(1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await rig.actions.idle.wait()
    assert rig.actions.records[action_id].state is ActionState.RUNNING


async def test_an_address_beyond_loopback_must_be_allowed(rig: Rig) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.7", "example.org"):  # noqa: S104 - refused
        with pytest.raises(UsageError, match="other machines"):
            ApiServer(rig.actions, rig.keys, host=host)
    ApiServer(rig.actions, rig.keys, host="0.0.0.0", remote=True)  # noqa: S104 - not started


async def test_an_address_in_use_is_a_sentence(rig: Rig) -> None:
    with pytest.raises(UsageError, match="cannot listen on 127"):
        async with ApiServer(rig.actions, KeyFile(rig.keys.path), port=rig.address[1]):
            pass


async def test_a_server_that_is_gone_is_unreachable_and_nothing_was_sent(rig: Rig) -> None:
    url, key = rig.url, rig.key()
    await rig.server.close()
    async with Client(url, key, pause=no_pause) as client:
        with pytest.raises(Unreachable, match="nothing answers at") as lost:
            await client.sessions.open("agent")
    assert lost.value.written is False
    assert key not in str(lost.value)


async def test_whoever_waits_is_woken_when_the_server_goes_away() -> None:
    lifeline = Lifeline()
    never = asyncio.Event()
    waiting = asyncio.create_task(lifeline.wait(never.wait()))
    await asyncio.sleep(0)
    lifeline.close()
    with pytest.raises(Closing):
        await waiting
    with pytest.raises(Closing):
        await lifeline.wait(never.wait())


async def test_a_change_that_never_ends_is_given_up() -> None:
    lifeline = Lifeline()
    stuck = asyncio.create_task(lifeline.change(asyncio.Event().wait()))
    await asyncio.sleep(0)
    assert lifeline.in_flight == 1
    async with asyncio.timeout(20):
        await lifeline.finish(0.01)
    assert lifeline.in_flight == 0
    with pytest.raises(asyncio.CancelledError):
        await stuck
