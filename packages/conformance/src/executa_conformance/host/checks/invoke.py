"""An invoke: its request, its context, its answer (seed lifecycle, Per-invoke context; R-23)."""

import re
from functools import partial
from typing import Any

from executa_conformance.host.asking import ASKED, SAMPLE
from executa_conformance.host.parts import manifest_of
from executa_conformance.host.scene import HostScene, need
from executa_conformance.reading import expect, members
from executa_conformance.registry import check

host = partial(check, role="host")

CREDENTIAL = {"name": "KIT_KEY", "description": "A key.", "required": True, "sensitive": True}


@host("CALL-001")
async def tool_arguments_and_context(scene: HostScene) -> None:
    actor = await scene.plugin()
    _, request = await scene.begin(actor, {"text": "hi"})
    params = request.params
    expect(params.get("tool") == "echo", f"tool is {params.get('tool')!r}")
    expect(params.get("arguments") == {"text": "hi"}, f"arguments: {params.get('arguments')!r}")
    expect(isinstance(params.get("context"), dict), "there is no context beside them")
    actor.life.result(request)


@host("CALL-002")
async def the_invoke_id(scene: HostScene) -> None:
    actor = await scene.plugin()
    seen: set[str] = set()
    for _ in range(3):
        _, request = await scene.begin(actor)
        fits = re.fullmatch(r"[0-9a-fA-F]{32}", request.invoke_id)
        expect(fits is not None, f"context.invoke_id is {request.context.get('invoke_id')!r}")
        expect(request.invoke_id not in seen, "two invokes have the same id")
        seen.add(request.invoke_id)
        actor.life.result(request)


@host("CALL-003")
async def the_invoke_id_beside_the_tool(scene: HostScene) -> None:
    actor = await scene.plugin()
    _, request = await scene.begin(actor)
    beside = request.params.get("invoke_id")
    expect(beside == request.invoke_id, f"beside tool stands {beside!r}")
    actor.life.result(request)


@host("CALL-004")
async def credentials(scene: HostScene) -> None:
    if not scene.around.serves("nexus"):
        need(scene, "credentials", "no credentials can be given")
    actor = scene.cast(manifest=manifest_of(credentials=[CREDENTIAL]))
    actor.book.credentials = {"KIT_KEY": "value", "KIT_OTHER": "not declared"}
    await scene.start(actor, credentials={"KIT_KEY": "value"})
    _, request = await scene.begin(actor)
    given = request.context.get("credentials")
    expect(given == {"KIT_KEY": "value"}, f"context.credentials is {given!r}")
    actor.life.result(request)


@host("CALL-005", level="sampling")
async def tokens_that_the_manifest_unlocks(scene: HostScene) -> None:
    for words, wanted in (
        (("llm.sample",), {"sampling_token"}),
        (("aps.kv",), {"storage_token"}),
        (("llm.sample", "aps.files"), {"sampling_token", "storage_token"}),
    ):
        actor = await scene.plugin(capabilities=words)
        _, request = await scene.begin(actor)
        given = {name for name in request.context if name.endswith("_token")}
        expect(given >= wanted, f"with {words} the invoke carries {sorted(given)}")
        actor.life.result(request)


@host("CALL-006", level="sampling")
async def no_other_tokens(scene: HostScene) -> None:
    for words, unwanted in (((), "any"), (("llm.sample",), "storage"), (("aps.kv",), "sampling")):
        actor = await scene.plugin(capabilities=words)
        _, request = await scene.begin(actor)
        given = [name for name in request.context if name.endswith("_token")]
        wrong = given if unwanted == "any" else [one for one in given if unwanted in one]
        expect(not wrong, f"with {words} the invoke carries {wrong}")
        actor.life.result(request)


@host("CALL-007", level="sampling")
async def tokens_are_of_their_invoke(scene: HostScene) -> None:
    actor = await scene.plugin(capabilities=("llm.sample",))
    given: list[str] = []
    for number in (1, 2):
        command, request = await scene.begin(actor)
        opened = await scene.heard(actor, "open", number)
        same = opened.body.get("invoke_id") == request.invoke_id
        expect(same, f"nexus was asked about invoke {opened.body.get('invoke_id')!r}")
        given.append(str(request.context.get("sampling_token")))
        expect(given[-1] in actor.book.minted, "the token is none that nexus gave")
        actor.life.result(request)
        await scene.outcome(command)
    expect(given[0] != given[1], "two invokes carry the same token")


@host("CALL-008", level="sampling")
async def tokens_end_with_their_invoke(scene: HostScene) -> None:
    actor = await scene.plugin(capabilities=("llm.sample",))
    command, request = await scene.begin(actor)
    expect(not actor.book.named("close"), "the invoke was closed at nexus before it ended")
    actor.life.result(request)
    await scene.outcome(command)
    closed = await scene.heard(actor, "close")
    expect(closed.invoke_id == request.invoke_id, "nexus was told that another invoke has ended")


@host("CALL-009", level="sampling")
async def nexus_is_not_asked_without_need(scene: HostScene) -> None:
    actor = await scene.plugin()
    await scene.works(actor)
    await scene.pause()
    expect(not actor.book.seen, f"nexus was asked {[one.name for one in actor.book.seen]}")


@host("CALL-010", level="sampling")
async def tokens_are_renewed(scene: HostScene) -> None:
    actor = scene.cast(capabilities=("llm.sample",))
    actor.book.life = 20.0
    await scene.start(actor)
    command, request = await scene.begin(actor)
    answer = await actor.life.ask(SAMPLE, ASKED, under=request)
    expect("result" in answer, f"sampling was refused: {answer!r:.160}")
    await scene.heard(actor, "renew")
    actor.life.result(request)
    await scene.outcome(command)


@host("CALL-026")
async def results_of_another_shape(scene: HostScene) -> None:
    actor = await scene.plugin()
    for result, success, wanted in (
        ({"answer": 42}, True, {"answer": 42}),
        ([1, 2], True, [1, 2]),
        ("bare", True, "bare"),
        ({"success": False, "error": {"code": 5, "message": "went wrong"}}, False, "went wrong"),
        ({"success": True, "data": 1, "error": None}, True, 1),
    ):
        command, request = await scene.begin(actor)
        actor.life.say({"jsonrpc": "2.0", "id": request.id, "result": result}, wrong=True)
        outcome = await scene.outcome(command)
        expect(outcome.success is success, f"{result!r} was read as success={outcome.success}")
        got: Any = outcome.data if success else outcome.error
        fits = got == wanted if success else str(wanted) in str(got)
        expect(fits, f"{result!r} was read as {got!r:.120}")


@host("CALL-027")
async def an_error_answer_reaches_the_caller(scene: HostScene) -> None:
    actor = await scene.plugin()
    command, request = await scene.begin(actor)
    actor.life.fail(request, -32602, "text is missing", {"path": "text"})
    fault = await scene.failure(command)
    expect(fault.code == -32602, f"the code is {fault.code}")
    expect("text is missing" in fault.message, f"the message is {fault.message!r}")
    expect(fault.data.get("path") == "text", f"the data is {fault.data!r}")


@host("CALL-028")
async def a_failed_tool_reaches_the_caller(scene: HostScene) -> None:
    actor = await scene.plugin()
    command, request = await scene.begin(actor)
    result = {"success": False, "error": "no such note"}
    actor.life.say({"jsonrpc": "2.0", "id": request.id, "result": result})
    outcome = await scene.outcome(command)
    expect(not outcome.success, "a failure of the tool reads as a success")
    expect(outcome.error == "no such note", f"the tool's words are {outcome.error!r}")


@host("CALL-029", level="v2")
async def progress_reaches_the_caller(scene: HostScene) -> None:
    need(scene, "progress", "progress is not passed on")
    actor = await scene.plugin()
    command, request = await scene.begin(actor)
    for number in range(5):
        actor.life.say(_progress(request.invoke_id, {"step": number}))
    actor.life.result(request)
    await scene.outcome(command)
    steps = [members(one).get("step") for one in command.progress]
    expect(steps == [0, 1, 2, 3, 4], f"of five steps came {command.progress!r:.160}")


def _progress(invoke_id: str, data: Any) -> dict[str, Any]:
    params = {"type": "progress", "data": data, "context": {"invoke_id": invoke_id}}
    return {"jsonrpc": "2.0", "method": "executa/progress", "params": params}


@host("CALL-030", level="v2")
async def progress_of_others_is_dropped(scene: HostScene) -> None:
    need(scene, "progress", "progress is not passed on")
    actor = await scene.plugin()
    done, first = await scene.begin(actor)
    actor.life.result(first)
    await scene.outcome(done)
    command, request = await scene.begin(actor)
    actor.life.say(_progress(first.invoke_id, {"of": "a finished one"}))
    actor.life.say(_progress("0" * 32, {"of": "an unknown one"}))
    actor.life.result(request)
    await scene.outcome(command)
    await scene.pause()
    expect(not command.progress, f"progress of another invoke came: {command.progress!r:.120}")
    expect(not done.progress, "progress came for an invoke that had ended")


@host("CALL-038")
async def content_is_kept_exactly(scene: HostScene) -> None:
    actor = await scene.plugin()
    value: dict[str, Any] = {
        "big": 2**63 + 1,
        "null": None,
        "text": "\u2028\U0001f600\u0000",
        "list": [[], {}],
    }
    command, request = await scene.begin(actor, {"text": "x", "value": value})
    got = request.params.get("arguments", {}).get("value")
    expect(got == value, f"the arguments arrived as {got!r:.200}")
    actor.life.result(request, value)
    outcome = await scene.outcome(command)
    expect(outcome.data == value, f"the result arrived as {outcome.data!r:.200}")


@host("CALL-040")
async def open_requests_have_their_own_ids(scene: HostScene) -> None:
    actor = await scene.plugin()
    started = [await scene.begin(actor) for _ in range(4)]
    ids = [request.id for _, request in started]
    expect(len({str(one) for one in ids}) == 4, f"four open requests have the ids {ids}")
    for command, request in reversed(started):
        actor.life.result(request, request.invoke_id)
        outcome = await scene.outcome(command)
        expect(outcome.data == request.invoke_id, "an answer went to another call")


@host("CALL-041")
async def the_deadline(scene: HostScene) -> None:
    import time  # noqa: PLC0415 - the moment of the check itself

    actor = await scene.plugin()
    _, request = await scene.begin(actor, timeout=30.0)
    deadline = request.context.get("deadline_ms")
    if deadline is not None:
        left = float(deadline) / 1000 - time.time()
        expect(0 < left <= 31, f"of 30 s there are {left:.1f} s left by deadline_ms")
    actor.life.result(request)
