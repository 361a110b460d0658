"""Tools that a run's model calls and the host executes (R-36)."""

import asyncio
from functools import partial
from typing import Any

from executa_conformance.host.actor import Actor
from executa_conformance.host.asking import (
    AGENT,
    ASKED,
    RUN,
    SAMPLE,
    Open,
    frames_in,
    open_invoke,
    run_of,
    with_book,
)
from executa_conformance.host.life import Request
from executa_conformance.host.parts import TOOL, manifest_of
from executa_conformance.host.scene import HostScene
from executa_conformance.host.toolrun import ToolRun
from executa_conformance.reading import expect, items, members
from executa_conformance.registry import check

host = partial(check, role="host", level="nested")


async def running(scene: HostScene, asked: Open, uuid: str = "") -> Any:
    """Begin a run under an open invoke; the id of the call."""
    params = run_of(uuid or await asked.create(), run_id="kit-run")
    return asked.actor.life.call(RUN, params, under=asked.request)


async def helper(scene: HostScene) -> Actor:
    """Another plugin of the host, whose tool is called."""
    return await scene.plugin()


async def called(actor: Actor) -> Request:
    """The nested invoke, as the plugin gets it."""
    return await actor.life.next("invoke")


@host("NEST-001")
async def runs_offer_the_hosts_tools(scene: HostScene) -> None:
    other = await helper(scene)
    asked = await with_book(scene, AGENT, granted_tools=[f"{other.name}.echo"])
    made = await running(scene, asked)
    body = members((await scene.heard(asked.actor, "run")).body)
    tools = [members(tool) for tool in items(body.get("tools"))]
    names = [tool.get("name") for tool in tools]
    expect(names == [f"{other.name}.echo"], f"the run offers {names}")
    tool = tools[0]
    expect(tool.get("description") == TOOL["description"], f"described as {tool!r:.120}")
    schema = members(tool.get("parameters"))
    fits = schema.get("type") == "object" and "text" in members(schema.get("properties"))
    expect(fits, f"parameters is no JSON Schema: {schema!r:.160}")
    await asked.actor.life.reply(made)
    await asked.end()


@host("NEST-002")
async def a_tool_of_the_host_is_executed(scene: HostScene) -> None:
    other = await helper(scene)
    asked = await open_invoke(scene, AGENT)
    run = ToolRun(asked, f"{other.name}.echo")
    made = await running(scene, asked)
    request = await called(other)
    expect(request.params.get("arguments") == {"text": "call-0"}, "the arguments are others")
    other.life.result(request, {"said": 7})
    await asked.actor.life.reply(made)
    posted = run.posted[0]
    wanted = {"run_id": "kit-run", "call_id": "call-0", "ok": True, "data": {"said": 7}}
    expect(posted == wanted, f"nexus was told {posted!r:.200}")
    await asked.end()


@host("NEST-003")
async def the_mark_is_taken_off(scene: HostScene) -> None:
    other = await helper(scene)
    asked = await open_invoke(scene, AGENT)
    ToolRun(asked, f"{other.name}.echo")
    made = await running(scene, asked)
    other.life.result(await called(other), 1)
    frames = frames_in((await asked.actor.life.reply(made)).get("result"))
    calls = [frame for frame in frames if frame.get("event") == "tool_call"]
    expect(len(calls) == 1, f"of one tool_call came {len(calls)}")
    expect("executor" not in calls[0], f"the plugin sees {calls[0]!r:.160}")
    await asked.end()


@host("NEST-004")
async def each_call_is_answered_once(scene: HostScene) -> None:
    other = await helper(scene)
    asked = await open_invoke(scene, AGENT)
    run = ToolRun(asked, f"{other.name}.echo", repeat=True)
    made = await running(scene, asked)
    other.life.result(await called(other), 1)
    await asked.actor.life.reply(made)
    await scene.pause()
    expect(len(run.posted) == 1, f"nexus was told {len(run.posted)} outcomes of one call")
    invokes = [one for one in other.life.requests if one.method == "invoke"]
    expect(len(invokes) == 1, f"the tool was called {len(invokes)} times")
    await asked.end()


@host("NEST-005")
async def an_unknown_tool(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    run = ToolRun(asked, "nobody.nothing")
    made = await running(scene, asked)
    await asked.actor.life.reply(made)
    expect(run.posted[0].get("ok") is False, f"nexus was told {run.posted!r:.160}")
    await asked.end()


@host("NEST-006")
async def a_tool_that_needs_approval(scene: HostScene) -> None:
    other = await scene.plugin(manifest=manifest_of(tools=[{**TOOL, "approval": True}]))
    asked = await open_invoke(scene, AGENT)
    run = ToolRun(asked, f"{other.name}.echo")
    made = await running(scene, asked)
    await asked.actor.life.reply(made)
    posted = run.posted[0]
    told = posted.get("ok") is False and "APPROVAL_REQUIRED" in str(posted.get("data"))
    expect(told, f"nexus was told {posted!r:.160}")
    await asked.end()


@host("NEST-007")
async def a_nested_invoke_names_its_parent(scene: HostScene) -> None:
    other = await helper(scene)
    asked = await open_invoke(scene, AGENT)
    ToolRun(asked, f"{other.name}.echo")
    made = await running(scene, asked)
    request = await called(other)
    parent = request.context.get("parent_invoke_id")
    expect(parent == asked.request.invoke_id, f"parent_invoke_id is {parent!r}")
    expect(request.invoke_id != asked.request.invoke_id, "it has its parent's invoke id")
    other.life.result(request, 1)
    await asked.actor.life.reply(made)
    await asked.end()


@host("NEST-008")
async def a_plugin_calls_itself(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    run = ToolRun(asked, f"{asked.actor.name}.echo")
    made = await running(scene, asked)
    asked.actor.life.result(await called(asked.actor), "myself")
    await asked.actor.life.reply(made)
    expect(run.posted[0].get("data") == "myself", f"nexus was told {run.posted!r:.160}")
    await asked.end()


@host("NEST-009")
async def a_nested_invoke_ends_with_its_run(scene: HostScene) -> None:
    other = await scene.plugin(taken={"cancellation": {}})
    asked = await open_invoke(scene, AGENT)
    ToolRun(asked, f"{other.name}.echo")
    uuid = await asked.create()
    made = await running(scene, asked, uuid)
    request = await called(other)
    await asked.get("agent/session.cancel", {"app_session_uuid": uuid, "run_id": "kit-run"})
    told = await other.life.next("executa/cancel")
    same = told.params.get("invoke_id") == request.invoke_id
    expect(same, f"the plugin was told of {told.params!r:.120}")
    other.life.fail(request, -32000, "cancelled", {"errorCode": "INVOKE_CANCELLED"})
    await asked.actor.life.reply(made)
    await asked.end()


@host("NEST-010")
async def a_nested_invoke_that_fails(scene: HostScene) -> None:
    other = await helper(scene)
    asked = await open_invoke(scene, AGENT)
    run = ToolRun(asked, *[f"{other.name}.echo"] * 2)
    made = await running(scene, asked)
    other.life.fail(await called(other), -32603, "went wrong")
    request = await called(other)
    result = {"success": False, "error": "no such note"}
    other.life.say({"jsonrpc": "2.0", "id": request.id, "result": result})
    answer = await asked.actor.life.reply(made)
    verdicts = [posted.get("ok") for posted in run.posted]
    expect(verdicts == [False, False], f"nexus was told ok={verdicts}")
    expect("result" in answer, f"the run itself failed: {answer!r:.160}")
    await asked.end()


@host("NEST-011", patience=2)
async def invokes_nest_at_most_eight_deep(scene: HostScene) -> None:
    asked = await with_book(scene, AGENT, caps={"sampling_calls": 100, "tokens": 10**9})
    made: list[tuple[Open, Any]] = []
    depth = 0
    while depth < 10:
        tag = f"level{depth}"
        run = ToolRun(asked, f"{asked.actor.name}.echo", tag=tag)
        made.append((asked, await running(scene, asked)))
        nested = asyncio.ensure_future(called(asked.actor))
        refused = asyncio.ensure_future(run.outcome(f"{tag}-0"))
        await asyncio.wait({nested, refused}, return_when=asyncio.FIRST_COMPLETED)
        if not nested.done():
            nested.cancel()
            expect(refused.result().get("ok") is False, "the call got an outcome without an invoke")
            break
        refused.cancel()
        depth += 1
        asked = Open(scene, asked.actor, asked.command, nested.result())
    expect(depth == 8, f"invokes nest {depth} deep")
    for asked, identity in reversed(made):
        await asked.actor.life.reply(identity)
        if asked.request.context.get("parent_invoke_id"):
            asked.actor.life.result(asked.request, 1)
    await made[0][0].end()


@host("NEST-012")
async def a_tool_that_is_not_granted(scene: HostScene) -> None:
    other = await helper(scene)
    asked = await with_book(scene, AGENT, granted_tools=["notes.read"])
    ToolRun(asked, f"{other.name}.echo")
    made = await running(scene, asked)
    answer = await asked.actor.life.reply(made)
    code = members(answer.get("error")).get("code")
    expect(code == -32048, f"the run was answered with {answer!r:.160}")
    invokes = [one for one in other.life.requests if one.method == "invoke"]
    expect(not invokes, "the tool was called all the same")
    await asked.end()


@host("NEST-013")
async def a_nested_invoke_ends_in_its_parents_time(scene: HostScene) -> None:
    other = await helper(scene)
    asked = await open_invoke(scene, AGENT, timeout=20.0)
    ToolRun(asked, f"{other.name}.echo")
    made = await running(scene, asked)
    request = await called(other)
    deadline, bound = (float(one.context.get("deadline_ms", 0)) for one in (request, asked.request))
    expect(deadline <= bound, f"its deadline is {deadline - bound:.0f} ms after its parent's")
    other.life.result(request, 1)
    await asked.actor.life.reply(made)
    await asked.end()


@host("NEST-014")
async def outcomes_of_an_ended_run_are_dropped(scene: HostScene) -> None:
    other = await helper(scene)
    asked = await open_invoke(scene, AGENT)
    run = ToolRun(asked, f"{other.name}.echo")
    uuid = await asked.create()
    made = await running(scene, asked, uuid)
    request = await called(other)
    await asked.get("agent/session.delete", {"app_session_uuid": uuid})
    await asked.actor.life.reply(made)
    other.life.result(request, "too late")
    await scene.pause()
    late = [posted for posted in run.posted if posted.get("ok")]
    expect(not late, f"nexus was told {late!r:.120} of a run that had ended")
    await asked.end()


@host("BUDG-009")
async def nested_invokes_spend_the_roots_budget(scene: HostScene) -> None:
    asked = await with_book(scene, AGENT, caps={"sampling_calls": 3})
    ToolRun(asked, f"{asked.actor.name}.echo")
    made = await running(scene, asked)
    request = await called(asked.actor)
    nested = Open(scene, asked.actor, asked.command, request)
    await nested.get(SAMPLE, ASKED)
    await nested.get(SAMPLE, ASKED)
    await nested.refused(SAMPLE, ASKED, -32006)
    asked.actor.life.result(request, 1)
    await asked.actor.life.reply(made)
    await asked.refused(SAMPLE, ASKED, -32006)
    await asked.end()
