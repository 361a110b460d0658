"""Judges every line that the host wrote: spellings of the field, broken frames, schemas.

The protocol's readers name the requirement of each departure. Each check here first has a
conversation of its own, so that there are lines to judge.
"""

from typing import Final

from executa_conformance.host.asking import ASKED, EVERYTHING, GET, SAMPLE, open_invoke
from executa_conformance.host.scene import HostScene
from executa_conformance.model import NotMet, NotStrict
from executa_conformance.registry import check
from executa_conformance.sightings import SCHEMA, Sighting

ROWS: Final = {
    "CORE-001": "no-null-for-nothing",
    "WIRE-001": "jsonrpc-is-there",
    "WIRE-002": "ids-are-integers-or-strings",
    "WIRE-003": "no-error-beside-a-result",
    "WIRE-004": "no-result-beside-an-error",
    "WIRE-006": "jsonrpc-is-2.0",
    "WIRE-007": "ids-keep-their-type",
    "WIRE-008": "the-last-line-ends",
    "WIRE-009": "lines-are-objects-in-utf-8",
    "WIRE-011": "lines-are-within-the-cap",
    "WIRE-012": "numbers-and-texts-are-json",
    "WIRE-013": "nesting-is-within-the-cap",
    "WIRE-014": "no-second-answer",
    "WIRE-015": "open-ids-differ",
    "WIRE-016": "answers-have-a-request",
    "WIRE-017": "methods-are-strings",
    "WIRE-018": "answers-have-one-content",
    "WIRE-019": "errors-have-code-and-message",
}
"""The requirements that a line by itself can show to be broken."""


async def conversation(scene: HostScene) -> None:
    """A handshake, an invoke, reverse calls that are served and refused, and a stop."""
    asked = await open_invoke(scene, EVERYTHING)
    other = await open_invoke(scene, (), asked.actor)
    life = asked.actor.life
    await life.ask("kit/unknown", wrong=True)
    await life.ask("kit/unknown", identity=17, wrong=True)
    await asked.ask(SAMPLE, ASKED)
    await asked.ask("storage/get", GET)
    life.result(other.request, "second")
    await scene.outcome(other.command)
    await asked.end()
    await scene.stop(asked.actor)
    await life.gone.wait()
    for actor in scene.actors:
        scene.sightings += actor.sightings
        actor.sightings.clear()


def judge(found: list[Sighting]) -> None:
    """Raise `NotMet` or `NotStrict` for what was seen, if anything was."""
    broken = [each for each in found if not each.tolerated]
    if broken:
        raise NotMet(f"{broken[0].message}, in {len(broken)} lines")
    if found:
        raise NotStrict(f"{found[0].message}, in {len(found)} lines")


def _register(requirement: str, name: str) -> None:
    async def lines(scene: HostScene) -> None:
        await conversation(scene)
        judge([each for each in scene.sightings if each.requirement == requirement])

    check(requirement, role="host", passive=True, name=name)(lines)


for _requirement, _name in ROWS.items():
    _register(_requirement, _name)


@check("WIRE-146", role="host", passive=True)
async def what_is_written_meets_the_schemas(scene: HostScene) -> None:
    await conversation(scene)
    judge([each for each in scene.sightings if each.requirement == SCHEMA])
