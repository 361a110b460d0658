"""The two walks of the architecture with real plugins of the SDK: calls and reverse calls."""

import asyncio
from typing import Any

import pytest

from executa_host import Host, InvokeOutcome
from executa_nexus_stub import NexusStub


async def test_200_concurrent_invokes_with_a_sampling_call_each_get_200_right_answers(
    host: Host, nexus: NexusStub
) -> None:
    async with asyncio.timeout(60):
        outcomes = await asyncio.gather(
            *(host.invoke("sampler", "ask", {"number": number}) for number in range(200))
        )
    for number, outcome in enumerate(outcomes):
        assert outcome.success
        assert outcome.data["number"] == number
        words = outcome.data["text"].rstrip(".").split()
        assert words[-1] == str(number)
        assert outcome.ledger.sampling_calls == 1
    await host.close()
    assert nexus.open_invokes == 0


@pytest.mark.parametrize("tool", ["look", "gaze"])
async def test_a_plugin_may_call_its_own_plain_function_through_an_agent_session(
    host: Host, tool: str
) -> None:
    async with asyncio.timeout(30):
        outcome = await host.invoke("mirror", tool, {"text": "stressed"})
    frames: list[dict[str, Any]] = outcome.data["frames"]
    (call,) = [frame for frame in frames if frame["event"] == "tool_call"]
    (result,) = [frame for frame in frames if frame["event"] == "tool_result"]
    assert call["name"] == "mirror.flip"
    assert "executor" not in call
    assert (result["ok"], result["data"]) == (True, "desserts")
    assert "desserts" in frames[-1]["text"]
    assert outcome.ledger.nested_calls == 1
    assert outcome.ledger.frames == len(frames)


async def test_more_calls_of_itself_at_once_than_threads_do_not_deadlock(host: Host) -> None:
    async with asyncio.timeout(60):
        calls = [host.invoke("mirror", "gaze", {"text": f"text {n}"}) for n in range(80)]
        outcomes: list[InvokeOutcome] = await asyncio.gather(*calls)
    for number, outcome in enumerate(outcomes):
        results = [f for f in outcome.data["frames"] if f["event"] == "tool_result"]
        assert [result["data"] for result in results] == [f"text {number}"[::-1]]
