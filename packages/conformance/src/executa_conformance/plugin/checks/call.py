"""Invokes: results, misuse, several at a time, content, secrets (seed lifecycle; R-03, R-23)."""

import re
from typing import Any, cast

import msgspec
from msgspec import UNSET

from executa_conformance.model import NotApplicable, NotMet, NotStrict
from executa_conformance.plugin.answer import Answer
from executa_conformance.plugin.scene import Scene
from executa_conformance.plugin.tokens import MARK, Tokens
from executa_conformance.registry import check
from executa_protocol.codec import encode
from executa_protocol.codes import INVALID_PARAMS, METHOD_NOT_FOUND

AT_ONCE = 8
SPOKEN = 'Gr\u00fc\u00dfe \U0001f600 \u05e9\u05dc\u05d5\u05dd e\u0301 \\" {}'
"""Accents, an emoji, right to left, a combining mark, and what JSON escapes."""


def _domain_failure(answer: Answer) -> bool:
    return answer.error is None and answer.members.get("success") is False


@check("CALL-012", role="plugin")
async def an_unknown_tool_is_refused(scene: Scene) -> None:
    async with scene.ready() as session:
        answer = await session.invoke("kit-unknown-tool", {})
        if answer.code != METHOD_NOT_FOUND and not _domain_failure(answer):
            msg = f"expected {METHOD_NOT_FOUND} or success false, got {answer}"
            raise NotMet(msg)


@check("CALL-013", role="plugin")
async def arguments_that_do_not_fit_are_refused(scene: Scene) -> None:
    manifest = scene.facts.manifest
    tools = manifest.tools if manifest is not None else []
    tool = next(
        (it for it in tools if any(p.required and p.default is UNSET for p in it.parameters)), None
    )
    if tool is None:
        raise NotApplicable("no tool has an argument that is required")
    async with scene.ready() as session:
        answer = await session.invoke(tool.name, {})
        if answer.code != INVALID_PARAMS and not _domain_failure(answer):
            msg = f"{tool.name} without arguments: expected {INVALID_PARAMS}, got {answer}"
            raise NotMet(msg)
        await session.alive("arguments that do not fit")


@check("CALL-014", role="plugin")
async def several_invokes_are_open_at_a_time(scene: Scene) -> None:
    async with scene.ready() as session:
        case = scene.facts.plain
        single = await session.invoke(case.tool, case.arguments)
        calls = [await session.call(case.tool, case.arguments) for _ in range(AT_ONCE)]
        for call in calls:
            answer = await session.answer(call.answer, f"one of {AT_ONCE} invokes at a time")
            if answer.failed and not single.failed:
                msg = f"among {AT_ONCE} invokes one came to {answer}"
                raise NotMet(msg)
        if session.stray:
            msg = f"there was an answer under id {session.stray[0].id!r} that nobody waited for"
            raise NotMet(msg)


@check("CALL-015", role="plugin")
async def unicode_arrives_unchanged(scene: Scene) -> None:
    async with scene.ready() as session:
        case, name = await scene.echo(session)
        spoken = await session.invoke(case.tool, {**case.arguments, name: SPOKEN})
        if SPOKEN not in _texts(spoken.members.get("data")):
            msg = f"{SPOKEN!r} does not stand in {spoken}"
            raise NotMet(msg)
        for mark in ("\u2028", "\u2029", "\u0085"):
            # A tool may tidy white space, but not lose what stands behind it.
            text = f"before{mark}behind"
            answer = await session.invoke(case.tool, {**case.arguments, name: text})
            if not re.search(r"before\s?behind", _texts(answer.members.get("data"))):
                msg = f"{text!r} came back as {answer}"
                raise NotMet(msg)


def _texts(data: Any) -> str:
    """Every text in a result, keys included."""
    if isinstance(data, str):
        return data
    if isinstance(data, list):
        return "\n".join(map(_texts, cast("list[Any]", data)))
    if isinstance(data, dict):
        return "\n".join(
            _texts(part) for pair in cast("dict[str, Any]", data).items() for part in pair
        )
    return ""


@check("CALL-016", role="plugin")
async def an_invoke_without_context_is_served(scene: Scene) -> None:
    async with scene.ready() as session:
        case = scene.facts.plain
        before = await session.invoke(case.tool, case.arguments)
        params = {"tool": case.tool, "arguments": case.arguments}
        session.services.unnamed = True
        future = await session.post("invoke", params)
        answer = await session.answer(future, "invoke without context", scene.patience.invoke)
        # Without an invoke's id nobody can say whose a reverse call is.
        if answer.failed and not before.failed and not session.services.calls:
            msg = f"with context it works, without it comes to {answer}"
            raise NotMet(msg)


@check("CALL-017", role="plugin", passive=True)
async def no_secret_leaves_the_plugin(scene: Scene) -> None:
    given = False
    scene.evidence.tell(scene.world.judged())
    for session in scene.world.sessions:
        given = given or bool(session.services.declared or session.services.credentials)
        if Tokens.found_in([bytes(session.child.stderr)]):
            raise NotMet("a token or a credential stands on stderr")
        for line in session.leaks:
            scene.evidence.add("<", line)
            raise NotMet("a token or a credential stands in an answer")
    if not given:
        raise NotApplicable("the plugin declares nothing that it would get a secret for")


@check("CALL-018", role="plugin", level="v2", passive=True)
async def no_token_is_sent_to_the_host(scene: Scene) -> None:
    calls = scene.world.calls()
    scene.evidence.tell(f"{len(calls)} reverse calls were judged")
    if not calls:
        raise NotApplicable("the plugin has made no reverse call")
    for call in calls:
        if MARK.encode() in msgspec.json.encode(call.params):
            scene.evidence.add("<", encode(call.params), call.method)
            msg = f"the params of {call.method} hold a token"
            raise NotMet(msg)


@check("CALL-019", role="plugin", level="v2", passive=True)
async def every_reverse_call_names_its_invoke(scene: Scene) -> None:
    calls = scene.world.calls()
    scene.evidence.tell(f"{len(calls)} reverse calls were judged")
    if not calls:
        raise NotApplicable("the plugin has made no reverse call")
    for call in calls:
        if call.invoke_id is not None and not call.known:
            scene.evidence.add("<", encode(call.params), call.method)
            msg = f"{call.method} names an invoke that there never was: {call.invoke_id!r}"
            raise NotMet(msg)
    for call in calls:
        if call.invoke_id is None and call.alone:
            scene.evidence.add("<", encode(call.params), call.method)
            msg = f"{call.method} was called while no invoke was running"
            raise NotMet(msg)
        if call.invoke_id is None and not call.nameless:
            scene.evidence.add("<", encode(call.params), call.method)
            msg = f"{call.method} has no params.context.invoke_id; with one invoke open hosts guess"
            raise NotStrict(msg)


@check("CALL-020", role="plugin", level="v2", passive=True)
async def no_reverse_call_under_an_answered_invoke(scene: Scene) -> None:
    calls = scene.world.calls()
    scene.evidence.tell(f"{len(calls)} reverse calls were judged")
    if not calls:
        raise NotApplicable("the plugin has made no reverse call")
    for call in calls:
        if call.known and not call.open:
            scene.evidence.add("<", encode(call.params), call.method)
            msg = f"{call.method} came under invoke {call.invoke_id}, which had been answered"
            raise NotMet(msg)


@check("MANI-103", role="plugin", level="v2", passive=True)
async def what_is_called_is_declared(scene: Scene) -> None:
    calls = scene.world.calls()
    scene.evidence.tell(f"{len(calls)} reverse calls were judged")
    if not calls:
        raise NotApplicable("the plugin has made no reverse call")
    for call in calls:
        if call.step == "manifest":
            scene.evidence.add("<", encode(call.params), call.method)
            msg = f"{call.method} was called, and the manifest does not declare what unlocks it"
            raise NotMet(msg)
