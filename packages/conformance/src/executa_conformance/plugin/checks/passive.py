"""Judges what crossed during all other checks: spellings of the field, and broken lines.

The protocol's readers name the requirement of each departure; a check here says whether any
line showed one, and whether there was a line that could have.
"""

from typing import Final

from msgspec import Struct

from executa_conformance.model import NotApplicable, NotMet, NotStrict
from executa_conformance.plugin.scene import Scene
from executa_conformance.registry import check
from executa_conformance.sightings import SCHEMA, VALUE, Sighting
from executa_protocol.faults import as_object
from executa_protocol.limits import PROGRESS_PER_SECOND
from executa_protocol.methods import METHODS
from executa_protocol.methods.progress import METHOD as PROGRESS

SHOWN: Final = 5
"""Lines that are shown of one departure."""

_STORAGE: Final = tuple(name for name, row in METHODS.items() if row.chapter == "storage")
_REVERSE: Final = ("any request",)


class Row(Struct, frozen=True):
    """A requirement that lines show. `answers` and `requests` are methods that could break it.

    `schema` names what breaks it, too, by not meeting its schema.
    """

    requirement: str
    name: str
    level: str = "core"
    answers: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    schema: str = ""


ROWS: Final = (
    Row("WIRE-001", "jsonrpc-is-there"),
    Row("WIRE-002", "ids-are-integers-or-strings", "v2", requests=_REVERSE),
    Row("WIRE-003", "no-error-beside-a-result"),
    Row("WIRE-004", "no-result-beside-an-error"),
    Row("WIRE-005", "pointers-are-spelled-out"),
    Row("WIRE-006", "jsonrpc-is-2.0"),
    Row("WIRE-007", "ids-keep-their-type"),
    Row("WIRE-008", "the-last-line-ends"),
    Row("WIRE-009", "lines-are-objects-in-utf-8"),
    Row("WIRE-010", "stdout-is-for-frames"),
    Row("WIRE-011", "lines-are-within-the-cap"),
    Row("WIRE-012", "numbers-and-texts-are-json"),
    Row("WIRE-013", "nesting-is-within-the-cap"),
    Row("WIRE-014", "no-second-answer"),
    Row("WIRE-015", "open-ids-differ", "v2", requests=_REVERSE),
    Row("WIRE-016", "answers-have-a-request"),
    Row("WIRE-017", "methods-are-strings", "v2", requests=_REVERSE),
    Row("WIRE-018", "answers-have-one-content"),
    Row("WIRE-019", "errors-have-code-and-message"),
    Row("HAND-001", "server_info", "v2", answers=("initialize",)),
    Row("HAND-002", "capabilities", "v2", answers=("initialize",)),
    Row("HAND-003", "capabilities-by-member", "v2", answers=("initialize",)),
    Row("HAND-004", "capabilities-are-an-object", "v2", answers=("initialize",)),
    Row("HAND-005", "server_info-has-name-and-version", "v2", answers=("initialize",)),
    Row("CORE-001", "no-null-for-nothing"),
    Row("CORE-002", "health-words", answers=("health",), schema="result of health"),
    Row("CORE-003", "types-of-what-is-optional", answers=("invoke", "health")),
    Row("CORE-004", "results-are-wrapped", answers=("invoke",)),
    Row("CORE-005", "results-say-success", answers=("invoke",)),
    Row("CORE-006", "errors-are-texts", answers=("invoke",)),
    Row("CORE-007", "types-of-progress", "v2", requests=(PROGRESS,)),
    Row("CORE-008", "progress-has-its-whole-name", "v2", requests=(PROGRESS,)),
    Row("MANI-001", "the-manifest-is-bare", answers=("describe",)),
    Row("MANI-002", "the-manifest-has-a-name", answers=("describe",)),
    Row("MANI-003", "version-and-descriptions", answers=("describe",)),
    Row("MANI-004", "parameters", answers=("describe",)),
    Row("MANI-005", "storage-is-declared-by-kind", answers=("describe",)),
    Row("MANI-007", "credentials-are-upper-snake", answers=("describe",)),
    Row("MANI-008", "host_capabilities", answers=("describe",)),
    Row("MANI-009", "host_capabilities-are-an-array", answers=("describe",)),
    Row("MANI-010", "llm.sample", answers=("describe",)),
    Row("MANI-011", "parameters-are-an-array", answers=("describe",)),
    Row("MANI-012", "defaults-have-their-type", answers=("describe",)),
    Row("MANI-013", "parameters-have-a-type", answers=("describe",)),
    Row("MANI-014", "types-have-their-names", answers=("describe",)),
    Row("MANI-015", "arrays-say-of-what", answers=("describe",)),
    Row("SAMP-001", "content-is-an-object", "sampling", requests=("sampling/createMessage",)),
    Row("SAMP-002", "content-is-one-part", "sampling", requests=("sampling/createMessage",)),
    Row("AGNT-001", "agent_submode", "agent", requests=("agent/session.create",)),
    Row("AGNT-002", "create-says-its-kind", "agent", requests=("agent/session.create",)),
    Row("AGNT-003", "ttl_seconds", "agent", requests=("agent/session.create",)),
    Row("AGNT-004", "content-is-a-text", "agent", requests=("agent/session.run",)),
    Row("AGNT-005", "systemPrompt", "agent", requests=("agent/session.run",)),
    Row("STOR-001", "scope-is-named", "storage", requests=_STORAGE),
    Row("STOR-002", "ttl_seconds", "storage", requests=_STORAGE),
    Row("STOR-003", "size_bytes", "files", requests=("files/upload_begin",)),
    Row("STOR-006", "methods-have-current-names", "storage", requests=_STORAGE),
)


def raise_for(scene: Scene, found: list[Sighting]) -> None:
    """Raise `NotMet` or `NotStrict` for what was seen, if anything was."""
    scene.evidence.tell(f"{scene.world.judged()}; {len(found)} broke this rule")
    if not found:
        return
    for each in found[:SHOWN]:
        scene.evidence.add("<", each.line, each.message)
    broken = [each for each in found if not each.tolerated]
    first = (broken or found)[0].message
    more = f", and {len(found) - 1} more like it" if len(found) > 1 else ""
    raise (NotMet if broken else NotStrict)(f"{first}{more}")


def schema_of(scene: Scene, *what: str, values: bool = True) -> None:
    """Raise `NotMet` if one of these ("params of invoke") broke its schema in any session.

    Without `values` only types count: a value may be one that the kit itself has given.
    """
    kinds = (SCHEMA, VALUE) if values else (SCHEMA,)
    found = [
        each
        for each in scene.world.sightings()
        if each.requirement in kinds and each.message.partition(":")[0] in what
    ]
    raise_for(scene, found)


def _register(row: Row) -> None:
    async def judge(scene: Scene) -> None:
        sightings = scene.world.sightings()
        raise_for(scene, [each for each in sightings if each.requirement == row.requirement])
        if row.schema:
            schema_of(scene, row.schema)
        for session in scene.world.sessions:
            lookout = session.lookout
            called = {method for method, _ in lookout.requests}
            if row.requests == _REVERSE and called:
                return
            answered = {method for method, _ in lookout.answers}
            if called & set(row.requests) or answered & set(row.answers):
                return
        if row.answers or row.requests:
            wanted = " or ".join((*row.answers, *row.requests))
            msg = f"no line could have shown it ({wanted})"
            raise NotApplicable(msg)

    check(row.requirement, role="plugin", level=row.level, passive=True, name=row.name)(judge)


for _row in ROWS:
    _register(_row)


@check("CALL-011", role="plugin", passive=True)
async def results_have_their_members(scene: Scene) -> None:
    schema_of(scene, "result of invoke")
    answers = [each for session in scene.world.sessions for each in session.lookout.answers]
    for method, result in answers:
        members = as_object(result) or {}
        if method == "invoke" and members.get("success") is False and not members.get("error"):
            scene.evidence.tell(f"{result!r}")
            raise NotMet("a result says success false, and not why")


@check("CALL-039", role="plugin", level="v2", passive=True)
async def progress_has_the_chapters_shape(scene: Scene) -> None:
    schema_of(scene, f"params of {PROGRESS}")
    events = [method for one in scene.world.sessions for method, _ in one.lookout.requests].count(
        PROGRESS
    )
    if not events:
        raise NotApplicable("the plugin told no progress")


@check("CALL-039", role="plugin", level="v2", passive=True)
async def progress_is_within_its_rate(scene: Scene) -> None:
    events = [each for session in scene.world.sessions for each in session.progress]
    if not events:
        raise NotApplicable("the plugin told no progress")
    times: dict[str, list[float]] = {}
    for at, invoke in events:
        times.setdefault(invoke, []).append(at)
    most = max(map(_most_within_a_second, times.values()))
    scene.evidence.tell(f"{len(events)} events, at most {most} of one invoke in a second")
    if most > PROGRESS_PER_SECOND:
        msg = (
            f"{most} events of one invoke came within a second; {PROGRESS_PER_SECOND} are passed on"
        )
        raise NotMet(msg)


def _most_within_a_second(times: list[float]) -> int:
    most = begin = 0
    for end, at in enumerate(times):
        while at - times[begin] >= 1:
            begin += 1
        most = max(most, end - begin + 1)
    return most
