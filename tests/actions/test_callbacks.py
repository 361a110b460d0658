"""Callbacks: at least once, signed, retried, and never to where they must not go."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from executa_host.actions.callback_http import (
    DeliveryFailed,
    GuardedResolver,
    HttpPoster,
    sign,
    verify,
)
from executa_host.actions.records import ActionState, Callback
from executa_host.actions.settings import CallbackSettings, EngineSettings
from executa_host.actions.sqlite import SqliteStore
from executa_host.actions.store import Delivery
from tests.actions.rig import ANA, BOSS, SETTINGS, Rig

S = ActionState
HOOK = Callback("https://hook.test/done?x=1")


async def test_an_outcome_is_posted_signed_to_the_callback_target(rig: Rig) -> None:
    action_id, run = await rig.running(callback=HOOK)
    run.answer({"a": 1})
    (posted,) = await rig.poster.count(1)
    body = json.loads(posted.body)
    at = int(rig.clock.now())

    assert posted.url == HOOK.url
    assert posted.headers["Executa-Event"] == body["type"] == "action.ended"
    assert posted.headers["Executa-Delivery"] == str(body["delivery"])
    assert body["action"]["action_id"] == action_id
    assert body["action"]["state"] == "completed"
    assert body["result"] == {"action_id": action_id, "status": "completed", "output": {"a": 1}}
    assert verify(b"secret", posted.headers["Executa-Signature"], posted.body, now=at)
    await _no_more_due(rig)


async def _no_more_due(rig: Rig) -> None:
    async with asyncio.timeout(20):
        while (await rig.store.counts()).callbacks:  # noqa: ASYNC110 - nobody rings for this
            await asyncio.sleep(0)


async def test_what_is_not_taken_is_tried_again_with_growing_pauses(rig: Rig) -> None:
    rig.poster.failing = 3
    _, run = await rig.running(callback=HOOK)
    run.answer()
    for number, pause in ((1, 2), (2, 4), (3, 8)):
        await rig.poster.count(number)
        before = await _due_again(rig)
        assert before - int(rig.clock.now() * 1000) == pause * 1000
        rig.clock.advance(pause - 0.01)
        assert len(rig.poster.posted) == number
        rig.clock.advance(0.01)
    await rig.poster.count(4)
    assert len({posted.body for posted in rig.poster.posted}) == 1
    await _no_more_due(rig)


async def _due_again(rig: Rig) -> int:
    """When the next delivery is due, once the last attempt has been written down."""
    async with asyncio.timeout(20):
        while True:
            due = await rig.store.next_delivery_ms()
            if due is not None and due > int(rig.clock.now() * 1000):
                for _ in range(20):
                    await asyncio.sleep(0)
                return due


async def test_after_its_last_attempt_a_delivery_is_given_up(tmp_path: Path) -> None:
    callbacks = CallbackSettings(secrets={"*": b"s"}, allow=("hook.test",), attempts=2)
    async with Rig(tmp_path / "a.db", EngineSettings(callbacks=callbacks)) as rig:
        rig.poster.failing = 99
        _, run = await rig.running(callback=HOOK)
        run.answer()
        await rig.poster.count(1)
        await _due_again(rig)
        rig.clock.advance(2)
        await rig.poster.count(2)
        await _no_more_due(rig)


async def test_a_delivery_survives_a_restart_and_keeps_its_number(rig: Rig) -> None:
    rig.poster.failing = 1
    _, run = await rig.running(callback=HOOK)
    run.answer()
    await rig.poster.count(1)
    await _due_again(rig)
    await rig.reopen()
    rig.clock.advance(2)
    first, second = await rig.poster.count(2)
    assert first.headers["Executa-Delivery"] == second.headers["Executa-Delivery"]


async def test_a_pending_approval_is_posted_if_that_was_asked_for(rig: Rig) -> None:
    quiet = await rig.submit("p.wire", callback=HOOK)
    asked = await rig.submit("p.wire", callback=Callback(HOOK.url, approvals=True))
    (posted,) = await rig.poster.count(1)
    body = json.loads(posted.body)
    for record in (quiet, asked):
        await rig.until(record.action_id, S.PENDING_APPROVAL)
        await rig.engine.deny(BOSS, record.action_id)
    await rig.poster.count(3)

    assert body["type"] == "action.pending_approval"
    assert body["action"]["action_id"] == asked.action_id
    assert body["result"]["status"] == "pending_approval"


async def test_many_deliveries_are_all_made_a_few_at_a_time(rig: Rig) -> None:
    rig.runner.auto["read"] = lambda run: run.answer()
    ids = {(await rig.submit(callback=HOOK)).action_id for _ in range(60)}
    posted = await rig.poster.count(60)
    assert {json.loads(each.body)["action"]["action_id"] for each in posted} == ids


class LateStore(SqliteStore):
    """Its answer about due deliveries comes when those under way have ended meanwhile."""

    async def deliveries(self, due_ms: int, limit: int) -> Sequence[Delivery]:
        due = await super().deliveries(due_ms, limit)
        for _ in range(20):
            await self.counts()
        return due


async def test_a_delivery_that_ends_while_others_are_looked_for_is_made_once(
    tmp_path: Path,
) -> None:
    async with Rig(tmp_path / "late.db", store_class=LateStore) as rig:
        rig.runner.auto["read"] = lambda run: run.answer()
        ids = [(await rig.submit(callback=HOOK)).action_id for _ in range(12)]
        posted = await rig.poster.count(12)
        async with asyncio.timeout(30):
            while await rig.store.next_delivery_ms() is not None:
                await rig.store.counts()
        told = sorted(json.loads(each.body)["action"]["action_id"] for each in posted)
        assert told == sorted(ids)


async def test_a_tenant_without_a_secret_has_no_callbacks(rig: Rig) -> None:
    other = ANA.__class__(principal="ana", tenant="poor")
    with pytest.raises(Exception, match="cannot be signed"):
        await rig.submit(caller=other, callback=HOOK)
    assert SETTINGS.callbacks.secrets.keys() == {"default"}
    assert "secret" not in repr(SETTINGS.callbacks)


# --- Signatures. ----------------------------------------------------------------------------------


def test_a_signature_covers_time_and_body() -> None:
    good = sign(b"k", 1000, b"body")
    assert verify(b"k", good, b"body", now=1300)
    assert not verify(b"k", good, b"body", now=1301)
    assert not verify(b"k", good, b"other", now=1000)
    assert not verify(b"l", good, b"body", now=1000)
    assert not verify(b"k", good.replace("t=1000", "t=1001"), b"body", now=1000)
    for wrong in ("", "t=", "t=x,v1=", "v1=" + "0" * 64, "t=\u0661,v1=0"):
        assert not verify(b"k", wrong, b"body", now=1000)


# --- Over real sockets. ---------------------------------------------------------------------------


class Receiver:
    """An HTTP server on loopback that notes what it gets."""

    def __init__(self) -> None:
        self.got: list[tuple[str, bytes]] = []
        self.status = 204
        self.headers: dict[str, str] = {}
        self.hang = asyncio.Event()
        self.hangs = False
        self.port = 0

    async def handle(self, request: web.Request) -> web.Response:
        self.got.append((request.path, await request.read()))
        if self.hangs:
            await self.hang.wait()
        return web.Response(status=self.status, headers=self.headers)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", receiver.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.port = runner.addresses[0][1]
    yield receiver
    receiver.hang.set()
    await runner.cleanup()


async def test_a_loopback_target_is_called_only_if_it_is_allowed(receiver: Receiver) -> None:
    url = f"http://127.0.0.1:{receiver.port}/x"
    shut, open_ = HttpPoster(), HttpPoster((f"127.0.0.1:{receiver.port}",))
    with pytest.raises(DeliveryFailed):
        await shut.post(url, b"{}", {}, 5)
    await open_.post(url, b"{}", {}, 5)
    assert receiver.got == [("/x", b"{}")]
    await shut.close()
    await open_.close()


@pytest.mark.parametrize("status", [199 + 101, 301, 400, 404, 410, 500, 503])
async def test_only_a_2xx_answer_takes_a_callback_and_redirects_are_not_followed(
    receiver: Receiver, status: int
) -> None:
    receiver.status = status
    receiver.headers = {"Location": f"http://127.0.0.1:{receiver.port}/elsewhere"}
    poster = HttpPoster(("127.0.0.0/8",))
    with pytest.raises(DeliveryFailed, match=f"answered {status}"):
        await poster.post(f"http://127.0.0.1:{receiver.port}/x", b"{}", {}, 5)
    assert [path for path, _ in receiver.got] == ["/x"]
    await poster.close()


async def test_a_target_that_does_not_answer_is_given_up_in_time(receiver: Receiver) -> None:
    receiver.hangs = True
    poster = HttpPoster(("127.0.0.1",))
    with pytest.raises(DeliveryFailed):
        await poster.post(f"http://127.0.0.1:{receiver.port}/x", b"{}", {}, 0.2)
    await poster.close()


async def test_nobody_listening_is_a_failure_like_any_other() -> None:
    poster = HttpPoster(("127.0.0.1",))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(DeliveryFailed):
            await poster.post(f"http://127.0.0.1:{port}/x", b"{}", {}, 5)
    await poster.close()


async def test_a_name_that_resolves_to_a_private_address_is_not_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(*_: Any, **__: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", receiver.port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    poster = HttpPoster()
    with pytest.raises(DeliveryFailed, match="Cannot connect"):
        await poster.post(f"https://rebinding.example:{receiver.port}/x", b"{}", {}, 5)
    assert receiver.got == []
    await poster.close()


async def test_of_several_addresses_only_those_that_may_be_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def resolve(*_: Any, **__: Any) -> Any:
        addresses = ["10.0.0.1", "93.184.216.34", "169.254.169.254", "192.168.7.7"]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 443)) for each in addresses]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    resolver = GuardedResolver(("192.168.7.0/24",))
    found = await resolver.resolve("many.example", 443)
    assert [each["host"] for each in found] == ["93.184.216.34", "192.168.7.7"]
