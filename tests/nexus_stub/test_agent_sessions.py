"""Agent sessions: minted, kept alive, bounded, and gone when they should be (R-30, R-38)."""

import asyncio
from typing import Any, cast

import pytest

from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.clock import ManualClock
from executa_nexus_stub.grants import Plan
from executa_protocol.methods.agent import AgentSessionCreateParams, QuotaCaps
from executa_protocol.nexus import Nexus
from tests.nexus_stub.calls import (
    RECALL,
    opening,
    play,
    refused_as,
    refused_as_busy,
    run,
    session,
    tokens,
    until,
)

WAITING = run("Use notebook.recall.", RECALL)


async def test_a_session_is_minted_with_a_thread_and_its_tools(
    nexus: Nexus, clock: ManualClock
) -> None:
    minted = await session(nexus, label="trace me")

    assert minted.app_session_uuid
    assert minted.thread_id
    assert minted.kind == "agent"
    assert minted.agent_submode == "auto"
    assert minted.granted_tools == ("*",)
    assert minted.label == "trace me"
    assert minted.expires_at == clock.now() + 600
    assert minted.app_session_uuid != (await session(nexus)).app_session_uuid


@pytest.mark.parametrize(
    ("params", "row"),
    [
        ({"kind": "agent"}, "AGENT_INVALID_SUBMODE"),
        ({"kind": "agent", "agent_submode": "fixed"}, "AGENT_INVALID_SUBMODE"),
        ({"kind": "fixed"}, "AGENT_FIXED_REQUIRES_CLIENT_ID"),
        ({"kind": "other"}, "INVALID_PARAMS"),
        ({"kind": "agent", "agent_submode": "auto", "ttl_seconds": 7201}, "INVALID_PARAMS"),
        ({"kind": "fixed", "fixed_client_id": "a.b"}, "AGENT_TOOL_NOT_GRANTED"),
        (
            {
                "kind": "agent",
                "agent_submode": "auto",
                "quota_caps": QuotaCaps(allowed_tools=["a.b"]),
            },
            "AGENT_TOOL_NOT_GRANTED",
        ),
    ],
)
async def test_a_session_that_may_not_be_is_refused(
    nexus: Nexus, stub: NexusStub, params: dict[str, Any], row: str
) -> None:
    stub.directory.change("ada", "brief", granted_tools=["notebook.recall"])
    sampling, _ = await tokens(nexus)

    with refused_as(row):
        await nexus.create_agent_session(sampling, AgentSessionCreateParams(**params))
    assert stub.agent_sessions == 0


async def test_sessions_need_both_declarations_and_the_users_grant(
    nexus: Nexus, stub: NexusStub
) -> None:
    grant = await nexus.open_invoke(opening(("llm.sample",)))
    assert grant.sampling_token is not None
    params = AgentSessionCreateParams(kind="agent", agent_submode="auto")

    with refused_as("AGENT_NOT_GRANTED", 403, match=r"llm\.agent\.auto"):
        await nexus.create_agent_session(grant.sampling_token.value, params)
    minted = await session(nexus)
    stub.directory.change("ada", "brief", agent=False)
    with refused_as("AGENT_NOT_GRANTED", 403, match="user"):
        await nexus.create_agent_session((await tokens(nexus))[0], params)
    with refused_as("AGENT_NOT_GRANTED", 403):
        await play(nexus, minted.token, run("go"))
    with refused_as("AGENT_NOT_GRANTED", 403):
        await nexus.refresh_agent_session(minted.token, minted.app_session_uuid, None)


@pytest.mark.parametrize(
    ("caps", "tools"),
    [
        ({}, ("*",)),
        ({"inherit_host_tools": True}, ("*",)),
        ({"inherit_host_tools": False}, ()),
        ({"allowed_tools": []}, ()),
        ({"allowed_tools": ["a.b"], "inherit_host_tools": False}, ("a.b",)),
    ],
)
async def test_quota_caps_narrow_the_tools(
    nexus: Nexus, caps: dict[str, Any], tools: tuple[str, ...]
) -> None:
    assert (await session(nexus, quota_caps=QuotaCaps(**caps))).granted_tools == tools


async def test_a_session_outlives_the_invoke_that_minted_it(nexus: Nexus) -> None:
    first = opening()
    grant = await nexus.open_invoke(first)
    assert grant.sampling_token is not None
    params = AgentSessionCreateParams(kind="agent", agent_submode="auto")
    minted = await nexus.create_agent_session(grant.sampling_token.value, params)
    await nexus.close_invoke(first.invoke_id)

    assert (await play(nexus, minted.token, run("Hello.")))[-1]["event"] == "final"


async def test_the_token_lives_as_long_as_asked_and_a_refresh_gives_a_new_one(
    nexus: Nexus, clock: ManualClock
) -> None:
    minted = await session(nexus, ttl_seconds=100)
    clock.advance(90)
    again = await nexus.refresh_agent_session(minted.token, minted.app_session_uuid, 200)
    clock.advance(100)

    assert again.app_session_uuid == minted.app_session_uuid
    assert again.thread_id == minted.thread_id
    assert again.expires_at == clock.now() + 100
    with refused_as("APP_SESSION_TOKEN_EXPIRED", 401):
        await play(nexus, minted.token, run("go"))
    await play(nexus, again.token, run("go"))


async def test_a_sampling_token_of_the_owner_refreshes_and_one_of_another_does_not(
    nexus: Nexus,
) -> None:
    minted = await session(nexus)
    ours, _ = await tokens(nexus)
    others, _ = await tokens(nexus, plugin="other")
    bobs, _ = await tokens(nexus, user="bob")

    for wrong in (others, bobs):
        with refused_as("AGENT_INVALID_UUID", 403):
            await nexus.refresh_agent_session(wrong, minted.app_session_uuid, None)
        with refused_as("AGENT_INVALID_UUID", 403):
            await nexus.delete_agent_session(wrong, minted.app_session_uuid)
    again = await nexus.refresh_agent_session(ours, minted.app_session_uuid, None)
    await play(nexus, again.token, run("go"))


async def test_an_idle_session_expires_and_a_run_keeps_it(
    nexus: Nexus, stub: NexusStub, clock: ManualClock
) -> None:
    kept, idle = await session(nexus, ttl_seconds=7200), await session(nexus, ttl_seconds=60)
    clock.advance(1799)
    sampling, _ = await tokens(nexus)
    await nexus.refresh_agent_session(sampling, idle.app_session_uuid, 7200)
    await play(nexus, kept.token, run("go"))
    clock.advance(7200)

    sampling, _ = await tokens(nexus)
    for minted in (kept, idle):
        with refused_as("APP_SESSION_EXPIRED", 410):
            await nexus.refresh_agent_session(sampling, minted.app_session_uuid, None)
        with refused_as("AGENT_UNKNOWN_SESSION", 404):
            await nexus.refresh_agent_session(sampling, minted.app_session_uuid, None)
    assert stub.agent_sessions == 0


async def test_no_session_lives_longer_than_a_day(stub: NexusStub, clock: ManualClock) -> None:
    minted = await session(stub)
    for _ in range(47):
        clock.advance(1790)
        sampling, _ = await tokens(stub)
        minted = await stub.refresh_agent_session(sampling, minted.app_session_uuid, None)
    clock.advance(1790)
    sampling, _ = await tokens(stub)
    minted = await stub.refresh_agent_session(sampling, minted.app_session_uuid, None)

    assert minted.expires_at == 1_700_000_000.0 + 86_400
    clock.advance(86_400 - 48 * 1790)
    with refused_as("APP_SESSION_EXPIRED", 410):
        await stub.refresh_agent_session((await tokens(stub))[0], minted.app_session_uuid, None)


async def test_expired_sessions_are_swept_with_their_tokens(
    stub: NexusStub, clock: ManualClock
) -> None:
    for _ in range(5):
        await session(stub)
    clock.advance(1800)
    await session(stub)

    assert stub.agent_sessions == 1
    assert stub.tokens.live_count == 3


async def test_deleting_is_idempotent_and_ends_the_token(nexus: Nexus, stub: NexusStub) -> None:
    minted = await session(nexus)
    for _ in range(2):
        await nexus.delete_agent_session(minted.token, minted.app_session_uuid)
    await nexus.delete_agent_session(minted.token, "no-such-session")

    with refused_as("APP_SESSION_REVOKED", 410):
        await play(nexus, minted.token, run("go"))
    assert stub.agent_sessions == 0


async def test_deleting_cancels_what_runs(nexus: Nexus) -> None:
    minted = await session(nexus)
    stream = cast("Any", nexus.run_agent(minted.token, WAITING))
    await anext(stream)

    await nexus.delete_agent_session(minted.token, minted.app_session_uuid)

    async with asyncio.timeout(10):
        assert b'"cancelled":true' in await anext(stream)
    await stream.aclose()


async def test_ten_runs_a_user_and_not_one_more(nexus: Nexus, stub: NexusStub) -> None:
    one, other = await session(nexus), await session(nexus)
    streams: list[Any] = []
    for number in range(10):
        token = (one, other)[number % 2].token
        stream = cast(
            "Any", nexus.run_agent(token, run(WAITING.content, RECALL, run_id=str(number)))
        )
        await anext(stream)
        streams.append(stream)

    with refused_as_busy():
        await play(nexus, one.token, run("go", run_id="11"))
    assert await nexus.cancel_run(other.token, "9") is True
    await anext(streams[9])
    await streams[9].aclose()
    with refused_as("INVALID_PARAMS", 409, match="run_id"):
        await play(nexus, one.token, run("go", run_id="0"))
    await play(nexus, one.token, run("go", run_id="11"))
    for stream in streams:
        await stream.aclose()
    await until(lambda: stub.in_flight == 0)


async def test_caps_of_a_session_bound_its_runs(nexus: Nexus, stub: NexusStub) -> None:
    minted = await session(
        nexus,
        ttl_seconds=7200,
        quota_caps=QuotaCaps(max_runs_per_day=2, max_tokens_per_call=3, max_concurrent_runs=1),
    )
    frames = await play(nexus, minted.token, run("Boats float on water and are long."))
    assert frames[-1]["usage"]["outputTokens"] == 3
    stream = cast("Any", nexus.run_agent(minted.token, WAITING))
    await anext(stream)

    with refused_as_busy():
        await play(nexus, minted.token, run("go", run_id="other"))
    await stream.aclose()
    await until(lambda: stub.in_flight == 0)
    with refused_as("SAMPLING_QUOTA_EXCEEDED", 429):
        await play(nexus, minted.token, run("go", run_id="other"))


async def test_agent_sessions_of_a_user_are_bounded(clock: ManualClock) -> None:
    stub = NexusStub(StubConfig(plans={"": Plan(agent_sessions=2)}), clock=clock)
    for _ in range(2):
        await session(stub)

    with refused_as("AGENT_NEXUS_ERROR", 429):
        await session(stub)
