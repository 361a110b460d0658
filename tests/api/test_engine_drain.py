"""The end of a host with a real engine: what runs may end, the rest is taken up again."""

import asyncio

import pytest

from executa_host.actions.records import ActionState
from executa_host.client import Client, Unavailable
from executa_protocol.actions import ResultStatus
from tests.api.rigs import EngineRig


async def test_a_drain_lets_running_work_end_and_leaves_the_rest(engine: EngineRig) -> None:
    client = engine.client()
    ends = (await client.submit("notebook.recall")).action.action_id
    stays = (await client.submit("bank.send")).action.action_id
    run = await engine.runner.begun(ends)
    await engine.runner.begun(stays)
    draining = asyncio.create_task(engine.server.drain(0.5))
    async with asyncio.timeout(20):
        while not (await client.ready()).draining:
            pass
    with pytest.raises(Unavailable) as refused:
        await client.submit("notebook.recall")
    assert refused.value.code == "DRAINING"
    run.answer("in time")
    await draining
    assert (await client.result(ends)).action.state is ActionState.COMPLETED
    assert (await client.result(stays)).action.state is ActionState.RUNNING
    await engine.restart()
    outcome = await client.result(stays, wait=30)
    assert outcome.result
    assert outcome.result.status is ResultStatus.REQUIRES_HUMAN


async def test_whoever_waits_or_follows_is_answered_when_the_host_drains(
    engine: EngineRig,
) -> None:
    client = engine.client()
    action_id = (await client.submit("bank.send")).action.action_id
    await engine.runner.begun(action_id)
    waiting = asyncio.create_task(client.result(action_id, wait=30))
    following = asyncio.create_task(_states(client, action_id))
    async with asyncio.timeout(20):
        await engine.server.drain(0.0)
        assert (await waiting).action.state is ActionState.RUNNING
        await engine.restart()
        assert (await following)[-1] == "dead_lettered"


async def _states(client: Client, action_id: str) -> list[str]:
    return [event.state async for event in client.follow(action_id) if event.state]
