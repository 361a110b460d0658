"""The handshake, as v2 and as 1.1 (seed lifecycle, v2 capability handshake; R-20, R-21)."""

from typing import Any, cast

from executa_conformance.model import NotApplicable, NotMet, NotStrict
from executa_conformance.plugin.answer import Answer
from executa_conformance.plugin.scene import Scene
from executa_conformance.plugin.session import Session
from executa_conformance.plugin.tools import Case
from executa_conformance.registry import check
from executa_conformance.sightings import SCHEMA
from executa_protocol.capabilities import BARE_APS, hint, is_allowed
from executa_protocol.codec import decode_any, encode
from executa_protocol.faults import as_object
from executa_protocol.handshake import V2, V2_1, host_offer

UNKNOWN = ("teleport", "kit.future")


def taken(answer: Answer) -> set[str]:
    """The capability keys of an answer to initialize, however they are spelled."""
    found: set[str] = set()
    for name in ("capabilities", "client_capabilities"):
        value = answer.members.get(name)
        if isinstance(value, dict | list):
            found.update(cast("list[str]", value))
    return found


async def _serves(session: Session, case: Case, after: str) -> None:
    answer = await session.invoke(case.tool, case.arguments)
    await session.alive(after)
    if answer.error is not None:
        msg = f"{after} an invoke is answered with {answer}"
        raise NotMet(msg)


@check("HAND-006", role="plugin")
async def the_version_is_one_of_two(scene: Scene) -> None:
    async with scene.start() as session:
        answer = await session.initialize()
        if answer.error is not None:
            raise NotApplicable("the plugin speaks protocol 1.1")
        version = answer.members.get("protocolVersion")
        if version not in (V2, V2_1):
            msg = f"protocolVersion is {version!r}, not {V2!r} or {V2_1!r}"
            raise NotMet(msg)


@check("HAND-007", role="plugin", level="v2")
async def only_what_is_offered_is_taken(scene: Scene) -> None:
    async with scene.start() as session:
        offer = host_offer(agent=False, storage=False, files=False)
        answer = await session.initialize(offer)
        more = taken(answer) - set(session.offered)
        if more:
            msg = f"{', '.join(sorted(more))} is taken and was not offered"
            raise NotStrict(msg)


@check("HAND-008", role="plugin")
async def initialize_is_answered_in_time(scene: Scene) -> None:
    async with scene.start() as session:
        params = decode_any(encode(host_offer()))
        await session.request("initialize", params, within=scene.patience.initialize)


@check("HAND-118", role="plugin", level="v2")
async def the_answer_has_version_server_and_capabilities(scene: Scene) -> None:
    async with scene.start() as session:
        members = (await session.initialize()).members
        names = {
            "protocolVersion": ("protocolVersion",),
            "server_info": ("server_info", "serverInfo"),
            "capabilities": ("capabilities", "client_capabilities"),
        }
        missing = [
            name for name, spelled in names.items() if not any(one in members for one in spelled)
        ]
        if missing:
            msg = f"the answer to initialize lacks {', '.join(missing)}"
            raise NotMet(msg)
        for each in session.lookout.sightings:
            if each.requirement == SCHEMA:
                raise NotMet(each.message)


@check("HAND-119", role="plugin")
async def a_v1_plugin_refuses_and_serves(scene: Scene) -> None:
    async with scene.start() as session:
        answer = await session.initialize()
        if answer.error is None:
            raise NotApplicable("the plugin speaks v2")
        await _serves(session, scene.facts.plain, "after a handshake that was refused")


@check("HAND-120", role="plugin", level="v2")
async def unknown_offers_are_not_taken(scene: Scene) -> None:
    async with scene.start() as session:
        offer: Any = decode_any(encode(host_offer()))
        offer["capabilities"] |= {name: {"version": 3} for name in UNKNOWN}
        answer = await session.initialize(offer)
        session.services.learn(answer, await session.describe())
        if not session.services.is_v2:
            msg = f"offers that it does not know make it answer {answer}"
            raise NotMet(msg)
        wrong = taken(answer) & set(UNKNOWN)
        if wrong:
            msg = f"{', '.join(sorted(wrong))} is taken, which the plugin cannot know"
            raise NotMet(msg)
        await _serves(session, scene.facts.plain, "after unknown offers")


@check("HAND-121", role="plugin", level="v2")
async def no_offer_is_answered_with_none_taken(scene: Scene) -> None:
    async with scene.start() as session:
        answer = await session.initialize({"protocolVersion": V2, "capabilities": {}})
        more = taken(answer)
        session.services.learn(answer, await session.describe())
        await _serves(session, scene.facts.plain, "after an empty offer")
        if more:
            # Hosts ask manifest and token all the same.
            msg = f"nothing was offered, and {', '.join(sorted(more))} is taken"
            raise NotStrict(msg)


@check("HAND-122", role="plugin")
async def without_a_handshake_it_serves_and_does_not_call(scene: Scene) -> None:
    async with scene.start() as session:
        tried = [each.case for each in scene.facts.tried if each.methods][:1]
        for case in [scene.facts.plain, *tried]:
            await session.invoke(case.tool, case.arguments)
        await session.alive("invokes without a handshake")
        calls = [call.method for call in session.services.calls]
        if calls:
            msg = f"{calls[0]} was called, and there was no v2 handshake"
            raise NotMet(msg)


@check("MANI-101", role="plugin")
async def the_manifest_names_its_tools(scene: Scene) -> None:
    async with scene.ready() as session:
        manifest = await session.describe()
        tools = manifest.get("tools")
        wrapped = as_object(manifest.get("manifest"))
        tools = wrapped.get("tools") if tools is None and wrapped is not None else tools
        if not isinstance(tools, list) or not tools:
            raise NotMet("tools is no array with at least one tool")
        names = [(as_object(tool) or {}).get("name") for tool in cast("list[Any]", tools)]
        if not all(isinstance(name, str) and name for name in names):
            raise NotMet("a tool has no name")
        if len(set(names)) < len(names):
            raise NotMet("two tools have one name")
        if session.services.manifest is None:
            msg = f"a host cannot read the manifest: {session.services.fault}"
            raise NotMet(msg)


@check("MANI-006", role="plugin")
async def capabilities_are_on_the_list(scene: Scene) -> None:
    async with scene.ready() as session:
        declared = (await session.describe()).get("host_capabilities")
        strings = cast("list[Any]", declared) if isinstance(declared, list) else []
        wrong = [one for one in strings if isinstance(one, str) and not _known(one)]
        if wrong:
            advice = hint(wrong[0])
            msg = f"{wrong[0]!r} is no capability" + (f"; {advice}" if advice else "")
            raise NotMet(msg)


def _known(capability: str) -> bool:
    return is_allowed(capability) or capability == BARE_APS  # which is MANI-005


@check("MANI-102", role="plugin")
async def describe_always_answers_the_same(scene: Scene) -> None:
    async with scene.ready() as session:
        first = await session.describe()
        case = scene.facts.plain
        await session.invoke(case.tool, case.arguments)
        if await session.describe() != first:
            raise NotMet("describe answers something else the second time")
