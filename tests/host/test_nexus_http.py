"""One contract over both ways to nexus: in this process, and over the stub's real HTTP server."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, cast

import msgspec
import pytest

from executa_host.nexus.http import HttpNexus
from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.faults import FaultConfig, FaultRule
from executa_nexus_stub.grants import PluginGrant, User
from executa_nexus_stub.http.server import NexusServer
from executa_protocol.nexus import AppContext, Nexus, NexusError
from tests.host.conftest import Rig
from tests.nexus_stub import calls
from tests.support.leaks import SETTLE_DELAYS, LeakCheck


async def _no_pause(seconds: float) -> None:
    del seconds


@contextlib.asynccontextmanager
async def over_http(
    stub: NexusStub, leak_check: LeakCheck, **options: Any
) -> AsyncGenerator[HttpNexus]:
    """A client of the stub's HTTP door. Nothing may be in flight at either end afterwards."""
    leak_check.watch(stub, "stub")
    async with NexusServer(stub) as server:
        nexus = HttpNexus(server.url, pause=_no_pause, **options)
        leak_check.watch(nexus, "client")
        yield nexus
        await nexus.aclose()
    await stub.aclose()


@pytest.fixture
def stub() -> NexusStub:
    """A stub with every default, and one user with a credential."""
    user = User(plugins={"brief": PluginGrant(credentials={"API_KEY": "value"})})
    return NexusStub(StubConfig(users={"ada": user}))


@pytest.fixture(params=["direct", "http"])
async def nexus(
    request: pytest.FixtureRequest, stub: NexusStub, leak_check: LeakCheck
) -> AsyncIterator[Nexus]:
    """The stub, by either way."""
    if request.param == "direct":
        leak_check.watch(stub, "stub")
        yield stub
        await stub.aclose()
        return
    async with over_http(stub, leak_check) as client:
        yield client


async def test_an_invoke_is_opened_renewed_and_closed(nexus: Nexus, stub: NexusStub) -> None:
    opening = calls.opening(credentials=("API_KEY", "OTHER"), app=AppContext("app", "slug"))
    grant = await nexus.open_invoke(opening)
    assert grant.grants.sampling
    assert grant.grants.files
    assert grant.credentials == {"API_KEY": "value"}
    assert grant.granted_tools == ("*",)
    assert grant.storage_token is not None
    assert grant.storage_token.scopes == ("user", "tool", "app")
    again = await nexus.open_invoke(opening)
    assert again.grants == grant.grants
    renewed = await nexus.renew_invoke(opening.invoke_id)
    assert renewed.sampling_token is not None
    for _ in range(2):
        await nexus.close_invoke(opening.invoke_id)
    assert stub.open_invokes == 0
    with calls.refused_as("UNKNOWN_INVOKE_CONTEXT", 410):
        await nexus.renew_invoke(opening.invoke_id)


async def test_a_completion_and_its_refusals(nexus: Nexus) -> None:
    sampling, storage = await calls.tokens(nexus)
    result = await nexus.sample(sampling, calls.ask("Tea is hot. Ice is cold.", 50))
    assert result.content.text
    assert result.usage
    assert result.stop_reason == "endTurn"
    with pytest.raises(NexusError) as refused:
        await nexus.sample(storage, calls.ask("x"))
    assert refused.value.code is not None
    for _ in range(7):
        await nexus.sample(sampling, calls.ask("x", 5))
    with calls.refused_as("SAMPLING_MAX_CALLS_EXCEEDED", 429):
        await nexus.sample(sampling, calls.ask("x", 5))


async def test_key_value_storage_is_the_wires(nexus: Nexus) -> None:
    _, token = await calls.tokens(nexus)
    key = "notes/ä ?#%/x"
    stored = await calls.store(nexus, token, "storage/set", key=key, value={"a": None, "n": 2**70})
    found = await calls.store(nexus, token, "storage/get", key=key)
    assert found["value"] == {"a": None, "n": 2**70}
    assert found["etag"] == stored["etag"]
    page = await calls.store(nexus, token, "storage/list", prefix="notes/")
    assert [item["key"] for item in page["items"]] == [key]
    with calls.refused_as("STORAGE_PRECONDITION_FAILED", 412):
        await calls.store(nexus, token, "storage/set", key=key, value=1, if_match="other")
    assert (await calls.store(nexus, token, "storage/delete", key=key))["deleted"]
    missing = await calls.store(nexus, token, "storage/get", key=key)
    assert (missing["value"], missing["exists"], missing["etag"]) == (None, False, None)
    with calls.refused_as("STORAGE_INVALID_PATH", 422, match="key"):
        await calls.store(nexus, token, "storage/get", key="../x")
    with calls.refused_as("STORAGE_FORBIDDEN_SCOPE", 403):
        await calls.store(nexus, token, "storage/get", key="x", scope="app")
    with pytest.raises(NexusError) as unknown:
        await calls.store(nexus, token, "storage/shred")
    assert unknown.value.status == 404


async def test_files_are_the_wires(nexus: Nexus) -> None:
    _, token = await calls.tokens(nexus)
    begun = await calls.store(
        nexus, token, "files/upload_begin", path="a.txt", size_bytes=1, content_type="text/plain"
    )
    assert begun["put_url"] == begun["presigned_url"]
    with calls.refused_as("STORAGE_PENDING_UPLOAD", 409):
        await calls.store(nexus, token, "files/upload_complete", path="a.txt")
    with calls.refused_as("STORAGE_NOT_FOUND", 404):
        await calls.store(nexus, token, "files/download_url", path="a.txt")
    assert (await calls.store(nexus, token, "files/list"))["items"] == []
    assert not (await calls.store(nexus, token, "files/delete", path="a.txt"))["deleted"]


async def test_a_run_streams_frames_and_takes_results_of_tools(nexus: Nexus) -> None:
    minted = await calls.session(nexus, label="trace me")
    assert minted.label == "trace me"

    def recall(frame: dict[str, Any]) -> tuple[bool, Any]:
        assert frame["name"] == "notebook.recall"
        return True, ["The briefing is for readers who have two minutes."]

    wanted = calls.run("Who is the briefing for? Recall it.", calls.RECALL)
    frames = await calls.play(nexus, minted.token, wanted, recall)
    assert {"tool_call", "tool_result", "final"} <= set(calls.events(frames))
    refreshed = await nexus.refresh_agent_session(minted.token, minted.app_session_uuid, 700)
    assert refreshed.app_session_uuid == minted.app_session_uuid
    assert not await nexus.cancel_run(minted.token, "no-such-run")
    for _ in range(2):
        await nexus.delete_agent_session(minted.token, minted.app_session_uuid)
    with pytest.raises(NexusError) as gone:
        await calls.play(nexus, minted.token, calls.run("x"))
    assert gone.value.status in (401, 404, 410)


async def test_a_run_that_waits_for_its_tool_is_cancelled(nexus: Nexus) -> None:
    minted = await calls.session(nexus)
    wanted = calls.run("Recall who the briefing is for.", calls.RECALL)
    frames: list[dict[str, Any]] = []
    async for raw in nexus.run_agent(minted.token, wanted):
        frames.append(msgspec.json.decode(raw))
        if frames[-1]["event"] == "tool_call":
            assert await nexus.cancel_run(minted.token, wanted.run_id)
    assert any(frame.get("cancelled") for frame in frames)


async def test_a_closed_stream_ends_the_run_upstream(nexus: Nexus, stub: NexusStub) -> None:
    minted = await calls.session(nexus)
    stream: Any = nexus.run_agent(minted.token, calls.run("Recall the briefing.", calls.RECALL))
    await anext(stream)
    await stream.aclose()
    for delay in SETTLE_DELAYS:  # the server notices a moment later
        if not stub.in_flight:
            break
        await asyncio.sleep(delay)
    assert stub.in_flight == 0


# --- Over HTTP alone ----------------------------------------------------------------------------


def _stub_with(*rules: FaultRule) -> NexusStub:
    return NexusStub(StubConfig(faults=FaultConfig(rules=rules, seed=7)))


async def test_a_stream_that_nexus_cuts_is_an_error(leak_check: LeakCheck) -> None:
    stub = _stub_with(FaultRule(kind="cut", endpoint="run_agent", after=1))
    async with over_http(stub, leak_check) as nexus:
        minted = await calls.session(nexus)
        with pytest.raises(NexusError, match="was cut"):
            await calls.play(nexus, minted.token, calls.run("Tea is hot. Ice is cold."))


async def test_a_busy_nexus_is_asked_again_when_it_says(leak_check: LeakCheck) -> None:
    stub = _stub_with(FaultRule(kind="rate_limit", endpoint="sample", times=1, retry_after=2))
    async with over_http(stub, leak_check) as nexus:
        sampling, _ = await calls.tokens(nexus)
        assert (await nexus.sample(sampling, calls.ask("Tea is hot.", 50))).content.text


async def test_a_host_shows_the_key_that_nexus_wants(
    leak_check: LeakCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_HOST_KEY", "the-key")
    config = StubConfig(host_key_env="STUB_HOST_KEY")
    async with over_http(NexusStub(config), leak_check, key="the-key") as nexus:
        await calls.tokens(nexus)
    async with over_http(NexusStub(config), leak_check, key="another") as nexus:
        with pytest.raises(NexusError, match="EXECUTA_NEXUS_KEY"):
            await calls.tokens(nexus)


async def test_a_plugins_reverse_calls_reach_nexus_over_http(
    stub: NexusStub, leak_check: LeakCheck
) -> None:
    async with over_http(stub, leak_check) as nexus:
        rig = Rig(cast("NexusStub", nexus))  # all it does with it here is to pass it on
        async with rig.host:
            rig.add()
            text = {"role": "user", "content": {"type": "text", "text": "Tea is hot. Ice is cold."}}
            sampled = await rig.reverse(
                "sampling/createMessage", {"messages": [text], "maxTokens": 50}
            )
            assert sampled["result"]["content"]["text"]
            refused = await rig.reverse("storage/get", {"key": "k", "scope": "app"})
            assert refused["error"]["data"]["errorCode"] == "forbidden_scope"
            created = await rig.reverse(
                "agent/session.create", {"kind": "agent", "agent_submode": "auto"}
            )
            uuid = created["result"]["app_session_uuid"]
            assert "token" not in created["result"]
            ran = await rig.reverse(
                "agent/session.run", {"app_session_uuid": uuid, "content": "Tea is hot."}
            )
            assert ran["result"]["final"]["text"]
        assert stub.open_invokes == 0
