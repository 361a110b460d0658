"""The life of a plugin's process (seed lifecycle, Five phases, Health probe, Shutdown contract)."""

from executa_conformance.model import NotApplicable, NotMet, Remark
from executa_conformance.plugin.scene import Scene
from executa_conformance.registry import check
from executa_protocol.codes import METHOD_NOT_FOUND

HEALTH_WORDS = ("ready", "error", "initializing", "healthy", "ok")


@check("LIFE-001", role="plugin")
async def serves_on_after_an_answer(scene: Scene) -> None:
    async with scene.ready() as session:
        case = scene.facts.plain
        for _ in range(3):
            await session.invoke(case.tool, case.arguments)
        await session.quiet("the last answer")
        if session.child.ended.is_set():
            await session.child.exit(scene.patience.grace)
            msg = f"the plugin ended after an answer{session.child.epitaph()}"
            raise NotMet(msg)
        await session.alive("several answers")


@check("LIFE-009", role="plugin")
async def describe_is_answered_in_time(scene: Scene) -> None:
    async with scene.start() as session:
        await session.initialize()
        await session.request("describe", within=scene.patience.describe)


@check("LIFE-016", role="plugin")
async def health_is_answered_as_the_seed_says(scene: Scene) -> None:
    async with scene.ready() as session:
        answer = await session.request("health")
        if answer.code == METHOD_NOT_FOUND:
            raise Remark("there is no health probe, so hosts take the plugin for healthy")
        if answer.error is not None:
            msg = f"expected a status or {METHOD_NOT_FOUND}, got {answer}"
            raise NotMet(msg)
        status = answer.members.get("status")
        word = status.casefold() if isinstance(status, str) else None
        if answer.error is None and word not in HEALTH_WORDS:
            msg = f"expected a status that is ready, error or initializing, got {answer}"
            raise NotMet(msg)


@check("LIFE-017", role="plugin")
async def the_end_of_stdin_ends_the_plugin_with_0(scene: Scene) -> None:
    async with scene.ready() as session:
        code = await session.leave()
        if code != 0:
            msg = f"stdin ended and the exit status was {code}, not 0"
            raise NotMet(msg)


@check("LIFE-018", role="plugin")
async def sigterm_ends_the_plugin(scene: Scene) -> None:
    async with scene.ready() as session:
        session.terminate()
        await session.gone("SIGTERM")


@check("LIFE-019", role="plugin")
async def errors_that_were_answered_are_no_crash(scene: Scene) -> None:
    async with scene.ready() as session:
        await session.request("kit/unknown")
        await session.invoke("kit-unknown-tool", {})
        code = await session.leave()
        if code != 0:
            msg = f"only misuse was answered, and the exit status was {code}, not 0"
            raise NotMet(msg)


@check("LIFE-027", role="plugin")
async def shutdown_is_answered_and_the_end_of_stdin_still_ends_it(scene: Scene) -> None:
    async with scene.ready() as session:
        answer = await session.request("shutdown")
        if answer.code == METHOD_NOT_FOUND:
            raise NotApplicable("the plugin does not know shutdown, which no host has to send")
        if answer.error is not None or not isinstance(answer.result, dict):
            msg = f"expected an object, got {answer}"
            raise NotMet(msg)
        code = await session.leave()
        if code != 0:
            msg = f"after shutdown and the end of stdin the exit status was {code}, not 0"
            raise NotMet(msg)


@check("LIFE-038", role="plugin")
async def what_was_read_before_the_end_of_stdin_is_answered(scene: Scene) -> None:
    async with scene.ready() as session:
        case = scene.facts.plain
        described = await session.post("describe")
        # A tool that waits for the host waits for ever then: it cannot be answered any more.
        alone = not scene.facts.methods_of(case)
        invoked = await session.call(case.tool, case.arguments) if alone else None
        session.child.close_stdin()
        await session.answer(described, "describe before the end of stdin")
        if invoked is not None:
            await session.answer(invoked.answer, "an invoke before the end of stdin")
        await session.gone("the end of its stdin")
