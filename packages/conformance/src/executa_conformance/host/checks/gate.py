"""The way of a reverse call: who refuses it, and with which code (R-22)."""

from functools import partial

from executa_conformance.host.asking import (
    AGENT,
    ASKED,
    AUTO,
    COMPLETE,
    CREATE,
    EVERYTHING,
    GET,
    RUN,
    SAMPLE,
    open_invoke,
    run_of,
    with_book,
)
from executa_conformance.host.parts import error
from executa_conformance.host.scene import HostScene
from executa_conformance.reading import code_of, expect, members, symbol_of
from executa_conformance.registry import check

host = partial(check, role="host")

LIST = {"scope": "user"}


@host("GATE-001", level="sampling")
async def the_first_step_answers(scene: HostScene) -> None:
    asked = await with_book(scene, (), grants={})
    # Neither declared nor granted, under an unknown invoke, with params that are wrong.
    life = asked.actor.life
    answer = await life.ask(SAMPLE, {"messages": []}, under="0" * 32, wrong=True)
    code = code_of(answer)
    expect(code == -32008, f"the manifest comes before the invoke: expected -32008, got {code}")
    await asked.end()
    asked = await with_book(scene, ("llm.sample",), grants={}, withheld={"sampling_token"})
    answer = await asked.actor.life.ask(SAMPLE, {"messages": []}, under="0" * 32, wrong=True)
    code = code_of(answer)
    expect(code == -32602, f"the invoke comes before the grant: expected -32602, got {code}")
    await asked.refused(SAMPLE, ASKED, -32001)
    await asked.end()


@host("GATE-002", level="sampling")
async def sampling_needs_v2(scene: HostScene) -> None:
    actor = await scene.plugin(capabilities=("llm.sample",), handlers={"initialize": error(-32601)})
    asked = await open_invoke(scene, (), actor)
    await asked.refused(SAMPLE, ASKED, -32008)
    await asked.end()


@host("GATE-003", level="sampling")
async def sampling_needs_the_manifest(scene: HostScene) -> None:
    asked = await open_invoke(scene, ("aps.kv", "llm.agent.auto"))
    await asked.refused(SAMPLE, ASKED, -32008)
    await asked.end()


@host("GATE-004", level="sampling")
async def sampling_needs_the_grant(scene: HostScene) -> None:
    asked = await with_book(scene, ("llm.sample",), grants={"agent": True})
    await asked.refused(SAMPLE, ASKED, -32001)
    await asked.end()


@host("GATE-005", level="agent")
async def agent_calls_need_v2(scene: HostScene) -> None:
    actor = await scene.plugin(capabilities=AGENT, handlers={"initialize": error(-32601)})
    asked = await open_invoke(scene, (), actor)
    await asked.refused(CREATE, AUTO, -32041)
    await asked.refused(COMPLETE, ASKED, -32041)
    await asked.end()


@host("GATE-006", level="agent")
async def agent_sessions_need_both_words(scene: HostScene) -> None:
    for words in (("llm.sample",), ("llm.agent.auto",)):
        asked = await open_invoke(scene, words)
        await asked.refused(CREATE, AUTO, -32041, "AGENT_NOT_GRANTED")
        await asked.refused(RUN, run_of("any"), -32041, "AGENT_NOT_GRANTED")
        await asked.end()


@host("GATE-007", level="agent")
async def complete_needs_one_word(scene: HostScene) -> None:
    asked = await open_invoke(scene, ("llm.sample",))
    await asked.get(COMPLETE, ASKED)
    await asked.end()
    asked = await open_invoke(scene, ("llm.agent.auto",))
    await asked.refused(COMPLETE, ASKED, -32041)
    await asked.end()


@host("GATE-008", level="agent")
async def agent_calls_need_the_grant(scene: HostScene) -> None:
    asked = await with_book(scene, AGENT, grants={"sampling": True})
    await asked.refused(CREATE, AUTO, -32041)
    await asked.end()


@host("GATE-009", level="storage")
async def storage_needs_v2_and_the_manifest(scene: HostScene) -> None:
    actor = await scene.plugin(capabilities=EVERYTHING, handlers={"initialize": error(-32601)})
    asked = await open_invoke(scene, (), actor)
    await asked.refused("storage/get", GET, -32021)
    await asked.end()
    asked = await open_invoke(scene, ("llm.sample", "aps.files"))
    await asked.refused("storage/get", GET, -32021)
    await asked.end()


@host("GATE-010", level="files")
async def files_need_their_own_word(scene: HostScene) -> None:
    asked = await open_invoke(scene, ("aps.kv",))
    await asked.refused("files/list", LIST, -32021)
    await asked.end()


@host("GATE-011", level="storage")
async def storage_needs_the_grant(scene: HostScene) -> None:
    asked = await with_book(scene, ("aps.kv", "aps.files"), grants={"sampling": True})
    await asked.refused("storage/get", GET, -32021)
    await asked.refused("files/list", LIST, -32021)
    await asked.end()


@host("GATE-012", level="storage")
async def scopes_come_from_the_token(scene: HostScene) -> None:
    asked = await with_book(scene, ("aps.kv",), scopes=["user"])
    await asked.get("storage/get", GET)
    await asked.refused("storage/get", {**GET, "scope": "tool"}, -32021, "forbidden_scope")
    await asked.refused("storage/get", {**GET, "scope": "app"}, -32021, "forbidden_scope")
    await asked.end()


@host("GATE-013", level="sampling")
async def no_token_no_call(scene: HostScene) -> None:
    asked = await with_book(scene, EVERYTHING, withheld={"sampling_token", "storage_token"})
    await asked.refused(SAMPLE, ASKED, -32001)
    if scene.around.serves("agent"):
        await asked.refused(CREATE, AUTO, -32041)
    if scene.around.serves("storage"):
        await asked.refused("storage/get", GET, -32021)
    await asked.end()


@host("GATE-014", level="sampling")
async def refusals_have_a_symbol(scene: HostScene) -> None:
    asked = await open_invoke(scene, ())
    for method, params in ((SAMPLE, ASKED), (CREATE, AUTO), ("storage/get", GET)):
        answer = await asked.ask(method, params)
        expect(bool(symbol_of(answer)), f"{method}: error.data has no errorCode")
    await asked.end()


@host("GATE-015", level="sampling")
async def refusals_say_what_is_missing(scene: HostScene) -> None:
    asked = await open_invoke(scene, ())
    refused = await asked.refused(SAMPLE, ASKED, -32008)
    missing = members(members(refused.get("data")).get("missing"))
    expect(missing.get("step") == "manifest", f"missing.step is {missing.get('step')!r}")
    told = str(missing)
    expect("llm.sample" in told, f"missing does not name llm.sample: {told:.120}")
    await asked.end()


@host("GATE-016", level="sampling")
async def nexus_does_not_hear_of_refused_calls(scene: HostScene) -> None:
    asked = await with_book(scene, EVERYTHING, grants={})
    for method, params in ((SAMPLE, ASKED), (CREATE, AUTO), ("storage/get", GET)):
        answer = await asked.ask(method, params)
        expect("error" in answer, f"{method} was served without the user's grant")
    await scene.pause()
    heard = [one.name for one in asked.actor.book.seen if one.name not in ("open", "renew")]
    expect(not heard, f"nexus was asked {heard}")
    await asked.end()


@host("GATE-017", level="sampling")
async def a_refusal_leaves_the_invoke_alone(scene: HostScene) -> None:
    asked = await open_invoke(scene, ("llm.sample",))
    answer = await asked.ask("storage/get", GET)
    expect("error" in answer, "storage was served without a word for it in the manifest")
    await asked.get(SAMPLE, ASKED)
    await asked.end()
