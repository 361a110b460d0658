"""Completions: sampling/createMessage and agent/complete (R-03, R-22, R-35)."""

from executa_conformance.model import NotMet
from executa_conformance.plugin.checks.passive import schema_of
from executa_conformance.plugin.facts import CALLS
from executa_conformance.plugin.scene import Scene
from executa_conformance.registry import check

METHODS = CALLS["sampling"]
REFUSALS = (
    "SAMPLING_NOT_GRANTED",
    "SAMPLING_NOT_NEGOTIATED",
    "SAMPLING_PROVIDER_ERROR",
    "SAMPLING_TIMEOUT",
)


@check("SAMP-107", role="plugin", level="sampling", passive=True)
async def calls_have_the_chapters_shape(scene: Scene) -> None:
    scene.facts.calling("sampling")
    schema_of(scene, *(f"params of {method}" for method in METHODS))


@check("SAMP-108", role="plugin", level="sampling")
async def a_refusal_ends_in_an_answer(scene: Scene) -> None:
    case = scene.facts.calling("sampling")
    async with scene.ready() as session:
        for row in REFUSALS:
            for method in METHODS:
                session.services.refuse(method, row)
            await session.invoke(case.tool, case.arguments)
            await session.alive(f"a completion that is refused as {row}")


@check("SAMP-110", role="plugin", level="sampling")
async def what_is_over_budget_is_not_repeated(scene: Scene) -> None:
    case = scene.facts.calling("sampling")
    async with scene.ready() as session:
        for method in METHODS:
            session.services.refuse(method, "SAMPLING_MAX_CALLS_EXCEEDED")
        await session.invoke(case.tool, case.arguments)
        made = len(session.services.made(*METHODS))
        if made > 1:
            msg = f"after a refusal for the whole invoke there were {made - 1} calls more"
            raise NotMet(msg)
