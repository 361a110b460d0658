"""Tools that a run's model calls and the host executes, as nested invokes (R-34, R-36)."""

import asyncio
import json
from typing import Any

import pytest

from executa_host import InvokeTimeout, Patience
from executa_nexus_stub import NexusStub
from executa_protocol import transcript
from executa_protocol.limits import NESTED_MAX_CALLS, NESTED_MAX_DEPTH
from executa_protocol.nexus import ToolOutcome
from tests.host.conftest import MakeRig, Rig, soon
from tests.host.scripted_model import ScriptedModel, program

CREATE: dict[str, Any] = {"kind": "agent", "agent_submode": "auto"}


class Agent:
    """A rig with the plugins raw and other, both running, and a scripted model."""

    def __init__(self, make_rig: MakeRig, *options: str, granted: list[str] | None = None) -> None:
        self.model = ScriptedModel()
        self.nexus = NexusStub(models=[self.model])
        if granted is not None:
            self.nexus.directory.change("local", "raw", granted_tools=granted)
        self.rig: Rig = make_rig(self.nexus, patience=Patience(health=0.3, stop=0.2, cancel=0.2))
        self.rig.add(*options)
        self.rig.add(*options, name="other")
        self.posted: list[ToolOutcome] = []
        post = self.nexus.post_tool_result

        async def noted(token: str, outcome: ToolOutcome) -> None:
            self.posted.append(outcome)
            await post(token, outcome)

        self.nexus.post_tool_result = noted

    async def start(self) -> None:
        await asyncio.gather(self.rig.host.start("raw"), self.rig.host.start("other"))

    async def create(self, **params: Any) -> str:
        (answer,) = await self.rig.calls(("agent/session.create", CREATE | params))
        return answer["result"]["app_session_uuid"]

    async def run(self, content: str, uuid: str = "", **params: Any) -> dict[str, Any]:
        asked = {"app_session_uuid": uuid or await self.create(), "content": content} | params
        return await self.rig.reverse("agent/session.run", asked)

    async def tool_results(self, content: str, **params: Any) -> list[dict[str, Any]]:
        answer = await self.run(content, **params)
        frames = answer["result"]["frames"]
        return [frame for frame in frames if frame["event"] == "tool_result"]


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"call": name, "args": args}


def _code(answer: dict[str, Any]) -> int:
    return answer["error"]["code"] if "error" in answer else 0


async def test_a_tool_that_the_model_calls_runs_as_a_nested_invoke(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    await agent.start()
    answer = await agent.run(program([call("other.echo", value={"a": 1})], [{"say": "done"}]))
    called, result = answer["result"]["frames"][:2]
    assert called == {
        "event": "tool_call",
        "name": "other.echo",
        "args": {"value": {"a": 1}},
        "call_id": "call_1",
    }
    assert result == {
        "event": "tool_result",
        "call_id": "call_1",
        "ok": True,
        "data": {"value": {"a": 1}},
    }
    root, nested = agent.rig.seen(transcript.InvokeStarted)[1:]
    assert nested.parent == root.invoke_id
    (executed,) = agent.rig.seen(transcript.ToolExecuted)
    assert (executed.name, executed.ok, executed.invoke_id) == ("other.echo", True, root.invoke_id)


async def test_a_plugin_may_call_itself_and_is_told_who_calls(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    (result,) = await agent.tool_results(program([call("raw.whoami")]))
    root, nested = agent.rig.seen(transcript.InvokeStarted)[1:]
    context = result["data"]["params"]["context"]
    assert context["parent_invoke_id"] == root.invoke_id
    assert context["invoke_id"] == nested.invoke_id
    assert context["deadline_ms"] > 0


async def test_each_run_offers_the_granted_tools_with_their_schemas(make_rig: MakeRig) -> None:
    agent = Agent(make_rig, granted=["other.echo", "raw.fail", "no.such"])
    await agent.rig.host.start("raw")
    await agent.run(program([]))
    # The other plugin had not been started; a tool of it is granted by name, so it was.
    assert agent.model.offered == [["other.echo", "raw.fail"]]


async def test_a_grant_of_everything_starts_nothing(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    await agent.run(program([]))
    assert all(name.startswith("raw.") for name in agent.model.offered[0])


async def test_a_granted_plugin_that_does_not_come_up_offers_nothing(make_rig: MakeRig) -> None:
    agent = Agent(make_rig, granted=["ghost.tool", "raw.echo"])
    agent.rig.add("--die-in", "describe", name="ghost")
    answer = await agent.run(program([{"say": "x"}]))
    assert answer["result"]["final"]["text"] == "x"
    assert agent.model.offered == [["raw.echo"]]


async def test_a_run_may_narrow_the_granted_tools(make_rig: MakeRig) -> None:
    agent = Agent(make_rig, granted=["raw.echo", "raw.fail"])
    await agent.run(program([]), allowed_tools=["raw.echo"])
    await agent.run(program([]), allowed_tools=[])
    assert agent.model.offered == [["raw.echo"], []]
    refused = await agent.run(program([]), allowed_tools=["raw.whoami"])
    assert _code(refused) == -32048
    assert "raw.whoami" in refused["error"]["message"]


async def test_a_fixed_agent_session_offers_its_one_tool(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create(kind="fixed", fixed_client_id="other.echo")
    answer = await agent.run(program([call("other.echo", value={})]), uuid)
    assert _code(answer) == 0
    assert agent.model.offered[0] == ["other.echo"]
    refused = await agent.run(program([]), uuid, allowed_tools=["raw.echo"])
    assert _code(refused) == -32048


async def test_a_tool_call_outside_the_grant_ends_the_run(make_rig: MakeRig) -> None:
    agent = Agent(make_rig, granted=["raw.echo"])
    frame: dict[str, Any] = {
        "event": "tool_call",
        "name": "raw.whoami",
        "args": {},
        "call_id": "c",
        "executor": "host",
    }
    answer = await agent.run(program([{"raw": frame}, {"say": "never", "times": 50}]))
    assert _code(answer) == -32048
    assert not agent.rig.seen(transcript.ToolExecuted)
    assert agent.posted == []


@pytest.mark.parametrize(
    ("tool", "args", "reason"),
    [
        ("raw.fail", {}, "TOOL_FAILED"),
        ("other.no_such_tool", {}, "UNKNOWN_TOOL"),
        ("no_such_plugin.echo", {}, "UNKNOWN_TOOL"),
        ("raw.raw", {"line": '{"jsonrpc":"2.0","id":$ID,"error":{"code":-1,"message":"m"}}'}, "m"),
        ("other.die", {}, "ConnectionLost"),
        ("raw.careful", {}, "APPROVAL_REQUIRED"),
    ],
)
async def test_a_tool_that_does_not_work_is_answered_with_the_reason(
    make_rig: MakeRig, tool: str, args: dict[str, Any], reason: str
) -> None:
    careful: dict[str, Any] = {
        "name": "careful",
        "description": "c",
        "parameters": [],
        "approval": True,
    }
    parameters = [{"name": "line", "type": "string", "required": False}]
    tools = [
        {"name": name, "description": name, "parameters": parameters}
        for name in ("reverse", "calls", "echo", "fail", "die", "raw")
    ]
    agent = Agent(make_rig, "--manifest", json.dumps({"tools": [*tools, careful]}))
    await agent.start()
    # A model may call what was never offered; nexus waits for the host's answer all the same.
    frame: dict[str, Any] = {
        "event": "tool_call",
        "name": tool,
        "args": args,
        "call_id": "c",
        "executor": "host",
    }
    content = program([{"raw": frame}, {"hold": "x"}])
    running = asyncio.ensure_future(agent.run(content))
    await agent.rig.until(lambda event: isinstance(event, transcript.ToolExecuted))
    agent.model.release("x")
    await soon(running)
    (executed,) = agent.rig.seen(transcript.ToolExecuted)
    assert not executed.ok
    assert executed.reason == reason
    (posted,) = agent.posted
    assert not posted.ok
    assert json.loads(bytes(posted.data))["errorCode"] == reason


async def test_a_call_id_that_comes_twice_is_executed_and_answered_once(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    frame: dict[str, Any] = {
        "event": "tool_call",
        "name": "raw.echo",
        "args": {},
        "call_id": "c",
        "executor": "host",
    }
    content = program([{"raw": frame}, {"raw": frame}, {"hold": "x"}])
    running = asyncio.ensure_future(agent.run(content))
    await agent.rig.until(lambda event: isinstance(event, transcript.ToolExecuted))
    agent.model.release("x")
    answer = await soon(running)
    assert [f["event"] for f in answer["result"]["frames"]] == ["tool_call", "tool_call", "final"]
    assert "executor" not in json.dumps(answer)
    assert len(agent.posted) == 1


async def test_a_tool_that_nexus_executes_is_none_of_the_hosts_business(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    frame: dict[str, Any] = {"event": "tool_call", "name": "search_web", "args": {}, "call_id": "c"}
    answer = await agent.run(program([{"raw": frame}]))
    assert answer["result"]["frames"][0] == frame
    assert not agent.rig.seen(transcript.ToolExecuted)


async def test_results_for_a_run_that_has_ended_are_dropped_and_their_invokes_end(
    make_rig: MakeRig,
) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    running = asyncio.ensure_future(agent.run(program([call("raw.hang")]), uuid, run_id="r"))
    await agent.rig.until(lambda _: len(agent.rig.seen(transcript.InvokeStarted)) == 3)
    params = {"app_session_uuid": uuid, "run_id": "r"}
    await agent.rig.reverse("agent/session.cancel", params)
    assert (await soon(running))["result"]["final"]["cancelled"] is True
    nested = agent.rig.seen(transcript.InvokeStarted)[2].invoke_id
    ended = {event.invoke_id: event.outcome for event in agent.rig.seen(transcript.InvokeEnded)}
    assert ended[nested] == "CancelledError"
    assert agent.posted == []


async def test_a_nested_invoke_lives_no_longer_than_its_parent(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    asked = {"app_session_uuid": uuid, "content": program([call("raw.hang")])}
    arguments = {"method": "agent/session.run", "params": asked}
    with pytest.raises(InvokeTimeout):
        await agent.rig.host.invoke("raw", "reverse", arguments, timeout=0.4)
    await agent.rig.until(lambda _: len(agent.rig.seen(transcript.InvokeEnded)) == 3)
    await agent.rig.host.close()
    assert agent.nexus.pending_count == 0


async def test_a_run_on_an_agent_session_that_an_ancestor_runs_is_refused_at_once(
    make_rig: MakeRig,
) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    again = {"app_session_uuid": uuid, "content": program([])}
    inner = call("raw.reverse", method="agent/session.run", params=again)
    async with asyncio.timeout(5):
        answer = await agent.run(program([inner]), uuid)
    (result,) = [f for f in answer["result"]["frames"] if f["event"] == "tool_result"]
    assert result["data"]["error"]["data"]["errorCode"] == "AGENT_RUN_RECURSION"


async def test_another_agent_session_may_be_run_inside_a_run(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    outer, inner = await agent.create(), await agent.create()
    asked = {"app_session_uuid": inner, "content": program([{"say": "deep"}])}
    content = program([call("raw.reverse", method="agent/session.run", params=asked)])
    answer = await agent.run(content, outer)
    (result,) = [f for f in answer["result"]["frames"] if f["event"] == "tool_result"]
    assert result["data"]["result"]["final"]["text"] == "deep"


async def test_invokes_nest_eight_deep_and_not_nine(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    content = program([call("raw.echo", value={})])
    caps = {"sampling_calls": 20, "tokens_per_call": 8192, "tokens": 300_000, "storage_calls": 1}
    agent.nexus.directory.change("local", "raw", caps=caps)
    for _ in range(NESTED_MAX_DEPTH):
        asked = {"app_session_uuid": await agent.create(), "content": content}
        content = program([call("raw.reverse", method="agent/session.run", params=asked)])
    await agent.run(content)
    reasons = [event.reason for event in agent.rig.seen(transcript.ToolExecuted)]
    # Told from the inside out: the ninth was refused, the eight around it worked.
    assert reasons == ["NESTED_TOO_DEEP"] + [""] * NESTED_MAX_DEPTH


async def test_a_root_has_64_nested_invokes_and_not_65(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    calls = [call("raw.echo", value={}) for _ in range(NESTED_MAX_CALLS + 1)]
    results = await agent.tool_results(program(calls))
    assert [result["ok"] for result in results].count(True) == NESTED_MAX_CALLS
    (refused,) = [result for result in results if not result["ok"]]
    assert refused["data"]["errorCode"] == "NESTED_TOO_MANY"


async def test_several_tools_of_one_turn_run_side_by_side(make_rig: MakeRig) -> None:
    agent = Agent(make_rig, "--take", "cancellation")
    content = program([call("raw.hang"), call("raw.echo", value={"a": 1})])
    uuid = await agent.create()
    running = asyncio.ensure_future(agent.run(content, uuid, run_id="r"))
    await agent.rig.until(lambda event: isinstance(event, transcript.ToolExecuted))
    assert agent.rig.seen(transcript.ToolExecuted)[0].name == "raw.echo"
    await agent.rig.reverse("agent/session.cancel", {"app_session_uuid": uuid, "run_id": "r"})
    await soon(running)


async def test_a_plugin_of_one_thread_that_waits_for_a_nested_invoke_is_not_replaced(
    make_rig: MakeRig,
) -> None:
    """Its silence is explained: it waits for its run, and that for a tool of another (R-24)."""
    agent = Agent(make_rig)
    agent.rig.add("--single", name="single")
    await agent.start()
    create = {"method": "agent/session.create", "params": CREATE}
    created = (await agent.rig.host.invoke("single", "reverse", create)).data
    content = program([call("other.hang")])
    asked = {"app_session_uuid": created["result"]["app_session_uuid"], "content": content}
    handle = agent.rig.host.begin(
        "single", "reverse", {"method": "agent/session.run", "params": asked}
    )
    await agent.rig.until(
        lambda event: isinstance(event, transcript.InvokeStarted) and event.tool == "hang"
    )
    hang = agent.rig.seen(transcript.InvokeStarted)[-1].invoke_id
    with pytest.raises(InvokeTimeout):
        await agent.rig.host.invoke("single", "echo", {"value": {}}, timeout=0.1)
    await agent.rig.until(
        lambda event: isinstance(event, transcript.StateChanged) and event.state == "unhealthy"
    )
    # It goes on, and once the tool has ended it answers the next probe.
    assert not handle.done
    await agent.rig.host.cancel(hang, "the test is over")
    assert (await soon(handle.result())).success
    await agent.rig.until(
        lambda event: isinstance(event, transcript.StateChanged) and event.reason == "answers again"
    )
    assert agent.rig.host.status("single").launches == 1


async def test_a_nested_call_gets_through_to_a_plugin_that_is_being_reloaded(
    make_rig: MakeRig,
) -> None:
    """Else the invoke that the reload waits for would wait for the reload."""
    agent = Agent(make_rig)
    uuid = await agent.create()
    content = program([{"hold": "x"}, call("raw.echo", value={"a": 1})])
    running = asyncio.ensure_future(agent.run(content, uuid))
    await agent.model.reached("x")
    reloading = asyncio.ensure_future(agent.rig.host.reload(agent.rig.host.plugins()[0]))
    await asyncio.sleep(0)
    agent.model.release("x")
    answer = await soon(running)
    assert answer["result"]["frames"][1]["data"] == {"value": {"a": 1}}
    await soon(reloading)
