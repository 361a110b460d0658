"""The life of a plugin's process (seed lifecycle)."""

from executa_conformance.model import NotMet
from executa_conformance.plugin.scene import Scene
from executa_conformance.registry import check


@check("LIFE-001", role="plugin")
async def serves_on_after_an_answer(scene: Scene) -> None:
    async with scene.ready() as session:
        case = scene.facts.plain
        for _ in range(3):
            await session.invoke(case.tool, case.arguments)
        await session.quiet("the last answer")
        if session.child.exit_code is not None:
            msg = f"the plugin ended after an answer{session.child.epitaph()}"
            raise NotMet(msg)
        await session.alive("several answers")
