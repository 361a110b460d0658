"""Cancellation, and invokes that wait while others are served (R-36, R-45)."""

from executa_conformance.model import NotApplicable, NotMet
from executa_conformance.plugin.scene import Scene
from executa_conformance.registry import check

CANCELLATION = "cancellation"


def _took_cancellation(scene: Scene) -> None:
    if CANCELLATION not in scene.facts.negotiated.keys:
        raise NotApplicable("the plugin did not take the cancellation capability")


@check("CALL-036", role="plugin", level="v2")
async def a_cancelled_call_ends_with_an_error(scene: Scene) -> None:
    _took_cancellation(scene)
    tried = scene.facts.waiting()
    async with scene.ready() as session:
        session.services.hold(*tried.methods)
        call = await session.call(tried.case.tool, tried.case.arguments)
        waiting = await session.held(*tried.methods)
        await session.notify("executa/cancel", {"invoke_id": call.invoke_id, "reason": "the kit"})
        answer = await session.answer(call.answer, "a cancelled invoke")
        if not answer.failed:
            msg = f"expected an error, got {answer}"
            raise NotMet(msg)
        await session.alive("a cancelled invoke")
        await session.release(waiting)
        await session.alive("an answer to a call of a cancelled invoke")


@check("CALL-037", role="plugin", level="v2")
async def cancelling_nothing_is_ignored(scene: Scene) -> None:
    case = scene.facts.plain
    async with scene.ready() as session:
        call = await session.call(case.tool, case.arguments)
        await session.answer(call.answer, "an invoke", scene.patience.invoke)
        for invoke_id in (call.invoke_id, "0" * 32):
            await session.notify("executa/cancel", {"invoke_id": invoke_id, "reason": "the kit"})
        await session.quiet("the cancellation of an invoke that is over")
        await session.alive("cancellations of nothing")


@check("NEST-015", role="plugin", level="agent")
async def a_nested_invoke_is_served_meanwhile(scene: Scene) -> None:
    case, nested = scene.facts.calling("agent"), scene.facts.plain
    async with scene.ready() as session:
        session.services.hold("agent/session.run")
        outer = await session.call(case.tool, case.arguments)
        waiting = await session.held("agent/session.run")
        inner = await session.call(nested.tool, nested.arguments, parent=outer.invoke_id)
        await session.answer(inner.answer, "a nested invoke")
        await session.release(waiting)
        await session.answer(outer.answer, "the invoke around it", scene.patience.invoke)
