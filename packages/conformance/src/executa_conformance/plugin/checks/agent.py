"""Agent sessions and their runs (seed agent-sessions; R-31, R-32)."""

from typing import Any

from executa_conformance.model import NotApplicable, NotMet
from executa_conformance.plugin.answer import Answer
from executa_conformance.plugin.checks.passive import schema_of
from executa_conformance.plugin.scene import Scene
from executa_conformance.plugin.speech import frames
from executa_conformance.registry import check
from executa_protocol.codec import encode
from executa_protocol.faults import as_object

CREATE = "agent/session.create"
RUN = "agent/session.run"
UNKNOWN = {"event": "kit_future", "of": ["tests"]}


async def _with_frames(scene: Scene, answer: Any, what: str) -> Answer:
    """Invoke with this answer to the run, and want the invoke to work as it did before."""
    case = scene.facts.calling("agent")
    async with scene.ready() as session:
        before = await session.invoke(case.tool, case.arguments)
        session.services.script(RUN, lambda _: answer)
        after = await session.invoke(case.tool, case.arguments)
        if after.failed and not before.failed:
            msg = f"{what}: the invoke came to {after}"
            raise NotMet(msg)
        return after


@check("AGNT-134", role="plugin", level="agent", passive=True)
async def create_says_what_it_wants(scene: Scene) -> None:
    scene.facts.calling("agent")
    schema_of(scene, f"params of {CREATE}", f"params of {RUN}")
    requests = [each for one in scene.world.sessions for each in one.lookout.requests]
    for method, params in requests:
        members = as_object(params) or {}
        if method != CREATE:
            continue
        scene.evidence.add("<", encode(params), f"params of {CREATE}")
        if members.get("kind") == "fixed" and not members.get("fixed_client_id"):
            raise NotMet("kind is fixed, and fixed_client_id is absent")
        submode = members.get("agent_submode", members.get("submode"))
        if members.get("kind", "agent") == "agent" and submode != "auto":
            msg = f'kind is agent, and agent_submode is {submode!r}, not "auto"'
            raise NotMet(msg)


@check("AGNT-135", role="plugin", level="agent")
async def an_unknown_session_is_not_tried_again(scene: Scene) -> None:
    case = scene.facts.calling("agent")
    async with scene.ready() as session:
        session.services.refuse(RUN, "AGENT_UNKNOWN_SESSION")
        await session.invoke(case.tool, case.arguments)
        uuids = [call.params.get("app_session_uuid") for call in session.services.made(RUN)]
        if len(set(uuids)) < len(uuids):
            raise NotMet("a run on an agent session that was answered -32044 came a second time")
        await session.alive("a run that is refused")


@check("AGNT-136", role="plugin", level="agent")
async def a_run_that_is_too_large_is_not_repeated(scene: Scene) -> None:
    case = scene.facts.calling("agent")
    async with scene.ready() as session:
        session.services.refuse(RUN, "AGENT_RUN_TOO_LARGE")
        await session.invoke(case.tool, case.arguments)
        contents = [str(call.params.get("content")) for call in session.services.made(RUN)]
        if len(set(contents)) < len(contents):
            raise NotMet("a run that was answered -32047 came a second time")
        await session.alive("a run that is too large")


@check("AGNT-137", role="plugin", level="agent")
async def both_answers_to_run_are_read(scene: Scene) -> None:
    await _with_frames(scene, frames(), "the run is answered with an array")
    made = frames()
    answer = {"run_id": "kit-run", "frames": made, "final": made[-1]}
    await _with_frames(scene, answer, "the run is answered with an object")


@check("AGNT-138", role="plugin", level="agent")
async def unknown_frames_are_skipped(scene: Scene) -> None:
    made = [UNKNOWN, *frames()[:-1], UNKNOWN, frames()[-1]]
    answer = {"run_id": "kit-run", "frames": made, "final": made[-1]}
    await _with_frames(scene, answer, "frames of unknown events are among the others")


@check("AGNT-139", role="plugin", level="agent")
async def requests_are_served_during_a_run(scene: Scene) -> None:
    case = scene.facts.calling("agent")
    async with scene.ready() as session:
        session.services.hold(RUN)
        call = await session.call(case.tool, case.arguments)
        waiting = await session.held(RUN)
        await session.alive("a run that has not ended")
        await session.release(waiting)
        await session.answer(call.answer, "the invoke of the run", scene.patience.invoke)


@check("AGNT-140", role="plugin", level="agent", passive=True)
async def runs_carry_an_id_of_the_plugins_choice(scene: Scene) -> None:
    scene.facts.calling("agent")
    scene.evidence.tell(scene.world.judged())
    requests = [each for one in scene.world.sessions for each in one.lookout.requests]
    for method, params in requests:
        if method == RUN and not (as_object(params) or {}).get("run_id"):
            scene.evidence.add("<", encode(params), "params of a run")
            raise NotMet("a run has no run_id, so it cannot be cancelled")


@check("AGNT-141", role="plugin", level="agent")
async def sessions_are_deleted(scene: Scene) -> None:
    case = scene.facts.calling("agent")
    async with scene.ready() as session:
        await session.invoke(case.tool, case.arguments)
        if not session.services.made(CREATE):
            raise NotApplicable("the plugin created no agent session")
        left = len(session.services.memory.agent_sessions)
        if left:
            msg = f"{left} agent session was not deleted by the end of its invoke"
            raise NotMet(msg)
