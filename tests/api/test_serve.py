"""`executa serve` as a process: what it says, how it ends, and that nothing is lost with it."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from executa_host.actions.records import ActionState, EventRecord, Mode
from executa_host.actions.requests import ALL_SCOPES
from executa_host.client import Client, Unauthenticated, Unavailable
from executa_protocol.actions import ResultStatus
from tests.api.served import Served, executa

pytestmark = pytest.mark.slow


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    """A host; asynchronous so that it has ended before the test's loop has."""
    with Served(tmp_path) as served:
        yield served


async def _states(client: Client, action_id: str, seen: list[EventRecord]) -> list[EventRecord]:
    async for event in client.follow(action_id, patience=30):
        seen.append(event)  # noqa: PERF401 - others look at it meanwhile
    return seen


async def _until_running(client: Client, action_id: str) -> None:
    """Until its tool runs."""
    cursor = ""
    async with asyncio.timeout(30):
        while True:
            page = await client.events(action_id, cursor, wait=30)
            if any(event.state == "running" for event in page.events):
                return
            cursor = page.cursor


async def test_sigterm_lets_running_work_end_and_exits_with_0(served: Served) -> None:
    async with Client(served.url, served.key()) as client:
        action_id = (await client.submit("raw.hang")).action.action_id
        await _until_running(client, action_id)
        waiting = asyncio.create_task(client.result(action_id, wait=30))
        seen: list[EventRecord] = []
        following = asyncio.create_task(_states(client, action_id, seen))
        await client.events(action_id, wait=0)
        served.signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            while (await client.ready()).ready:
                pass
        # It never ends by itself: a second signal does not wait for it.
        served.signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            assert (await waiting).action.state is ActionState.RUNNING
        assert "for 1 running actions" in served.log
        port = served.port
        assert await asyncio.to_thread(served.ended) == 0
        # Its outcome is unknown, and whoever followed is told when the host is back.
        await asyncio.to_thread(served.start, port=port)
        async with asyncio.timeout(30):
            await following
    assert seen[-1].state or seen[-1].chunk
    assert [event.state for event in seen if event.state][-1] == "dead_lettered"
    cursors = [event.cursor for event in seen]
    assert len(set(cursors)) == len(cursors)


async def test_a_kill_loses_nothing_that_was_accepted(served: Served) -> None:
    async with Client(served.url, served.key(scopes=ALL_SCOPES)) as client:
        opened = await client.sessions.open("agent")
        session_id = opened.session.session_id
        done = await client.submit("raw.echo", {"value": {"n": 1}}, session_id=session_id)
        await client.result(done.action.action_id, wait=30)
        lost = await client.submit("raw.hang", session_id=session_id)
        await _until_running(client, lost.action.action_id)
        seen = await client.events(session_id)
        port = served.port
        served.signal(signal.SIGKILL)
        assert await asyncio.to_thread(served.ended) == -signal.SIGKILL
        await asyncio.to_thread(served.start, port=port)
        resumed = await client.sessions.resume(opened.resume_token, after=seen.cursor)
        assert resumed.replay
        outcome = await client.result(lost.action.action_id, wait=30)
        assert outcome.result
        assert outcome.result.status is ResultStatus.REQUIRES_HUMAN
        page = await client.events(session_id, seen.cursor)
        told = {event.action_id for event in page.events if event.action_id}
        assert told == {lost.action.action_id}
        first = await client.result(done.action.action_id)
        assert first.action.state is ActionState.COMPLETED


async def test_plugins_are_shown_restarted_and_reloaded_from_the_file(served: Served) -> None:
    async with Client(served.url, served.key(scopes=ALL_SCOPES)) as client:
        assert [each.plugin for each in await client.plugins.list()] == ["notebook", "raw"]
        assert (await client.plugins.get("raw")).state == "stopped"
        await client.submit("raw.echo", mode=Mode.SYNC)
        before = await client.plugins.get("raw")
        assert before.state == "ready"
        after = await client.plugins.restart("raw")
        assert after.pid not in (None, before.pid)
        text = served.config.read_text()
        served.config.write_text(text.replace('raw_plugin.py"', 'raw_plugin.py", "--v1"'))
        reloaded = await client.plugins.reload("raw")
        assert reloaded.protocol == "1.1"
        served.config.write_text("nonsense")
        with pytest.raises(Unavailable, match="not TOML"):
            await client.plugins.reload("raw")


async def test_a_key_that_is_revoked_beside_a_running_host_is_refused(served: Served) -> None:
    made = served.keys.create("ada")
    async with Client(served.url, made.text) as client:
        await client.capabilities()
        served.keys.revoke(made.key.key_id)
        with pytest.raises(Unauthenticated):
            await client.capabilities()


def test_no_key_and_no_token_is_in_the_log(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        key = served.key()
        done = executa("sessions", "open", "agent", "--json", env=served.environment(key))
        assert done.returncode == 0
        token = json.loads(done.stdout)["resume_token"]
        served.signal(signal.SIGTERM)
        assert served.ended() == 0
        assert token not in served.log
        assert "exk_" not in served.log


def test_a_second_host_on_one_store_says_so(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        words = ("serve", "--config", str(served.config), "--store", str(served.store))
        done = executa(*words, "--port", "0")
        assert done.returncode == 2
        assert "in use by process" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--config", "/no/such/host.toml"), "no configuration /no/such/host.toml"),
        (("--port", "70000"), "is not from 0 to 65535"),
        (("--port", "many"), "--port"),
        (("--host", "no.such.host.invalid", "--port", "0"), "cannot listen on no.such.host"),
    ],
)
def test_what_cannot_be_served_is_a_sentence(
    tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    served = Served(tmp_path)
    config = () if "--config" in words else ("--config", str(served.config))
    done = executa("serve", *config, "--store", str(served.store), *words)
    assert done.returncode == 2
    assert told in " ".join(done.stderr.split())


def test_a_start_without_keys_says_how_to_make_one(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        served.signal(signal.SIGINT)
        assert served.ended() == 0
        assert "executa keys create" in " ".join(served.log.split())
