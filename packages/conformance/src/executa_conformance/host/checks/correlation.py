"""Which invoke a reverse call belongs to, and what ends with it (R-23, R-45)."""

from functools import partial
from typing import Any

from executa_conformance.host.actor import Actor
from executa_conformance.host.adapter import Command
from executa_conformance.host.asking import ASKED, SAMPLE
from executa_conformance.host.life import Request
from executa_conformance.host.scene import HostScene, need
from executa_conformance.reading import code_of, expect, symbol_of
from executa_conformance.registry import check

host = partial(check, role="host")


async def two_open(scene: HostScene) -> tuple[Actor, list[tuple[Command, Request]]]:
    """A plugin that may sample, with two invokes open."""
    actor = await scene.plugin(capabilities=("llm.sample",))
    return actor, [await scene.begin(actor), await scene.begin(actor)]


def refusal_of(answer: dict[str, Any]) -> tuple[int | None, str]:
    """The code and the symbol of an error answer."""
    return code_of(answer), symbol_of(answer)


@host("CALL-021", level="sampling")
async def a_reverse_call_names_its_invoke(scene: HostScene) -> None:
    actor, started = await two_open(scene)
    for number, (_, request) in enumerate(reversed(started), 1):
        answer = await actor.life.ask(SAMPLE, ASKED, under=request)
        expect("result" in answer, f"sampling was refused: {answer!r:.160}")
        asked = await scene.heard(actor, "sample", number)
        expect(
            asked.invoke_id == request.invoke_id,
            "it went to nexus under the token of another invoke",
        )


@host("CALL-022", level="sampling")
async def the_only_invoke_is_meant(scene: HostScene) -> None:
    actor = await scene.plugin(capabilities=("llm.sample",))
    _, request = await scene.begin(actor)
    answer = await actor.life.ask(SAMPLE, ASKED)
    expect("result" in answer, f"sampling was refused: {answer!r:.160}")
    actor.life.result(request)


@host("CALL-023", level="sampling")
async def metadata_may_name_it(scene: HostScene) -> None:
    actor, started = await two_open(scene)
    wanted = started[1][1].invoke_id
    params = {**ASKED, "metadata": {"executa_invoke_id": wanted}}
    answer = await actor.life.ask(SAMPLE, params)
    expect("result" in answer, f"sampling was refused: {answer!r:.160}")
    asked = await scene.heard(actor, "sample")
    expect(asked.invoke_id == wanted, "it went to nexus under the token of another invoke")


@host("CALL-024", level="sampling")
async def nothing_names_it(scene: HostScene) -> None:
    actor = await scene.plugin(capabilities=("llm.sample",))
    wanted = (-32602, "MISSING_INVOKE_CONTEXT")
    got = refusal_of(await actor.life.ask(SAMPLE, ASKED))
    expect(got == wanted, f"with no invoke open it is refused with {got}")
    await scene.begin(actor)
    await scene.begin(actor)
    got = refusal_of(await actor.life.ask(SAMPLE, ASKED))
    expect(got == wanted, f"with two invokes open it is refused with {got}")


@host("CALL-025", level="sampling")
async def another_invoke_is_named(scene: HostScene) -> None:
    actor = await scene.plugin(capabilities=("llm.sample",))
    done, finished = await scene.begin(actor)
    actor.life.result(finished)
    await scene.outcome(done)
    await scene.begin(actor)
    for name, what in ((finished.invoke_id, "a finished"), ("0" * 32, "an unknown")):
        got = refusal_of(await actor.life.ask(SAMPLE, ASKED, under=name))
        wanted = (-32602, "UNKNOWN_INVOKE_CONTEXT")
        expect(got == wanted, f"a call under {what} invoke is refused with {got}")


# --- Cancelling ------------------------------------------------------------------------------


REASON = "the kit's reason"


def cancel(scene: HostScene, command: Command) -> Command:
    """Tell the host to cancel an invoke."""
    need(scene, "cancellation", "nothing is cancelled")
    return scene.around.adapter.give("cancel", invoke=command.id, reason=REASON)


class Cancelled:
    """An invoke that is being cancelled, of a plugin that took the capability and was told."""

    def __init__(self, actor: Actor, command: Command, request: Request) -> None:
        self.actor = actor
        self.command = command
        self.request = request

    async def begin(self, scene: HostScene) -> Request:
        """Cancel it; the notification, as the plugin got it."""
        self.asked = cancel(scene, self.command)
        return await self.actor.life.next("executa/cancel")

    def acknowledge(self) -> None:
        """End it with a cancelled error."""
        data = {"errorCode": "INVOKE_CANCELLED"}
        self.actor.life.fail(self.request, -32000, "cancelled", data)


async def to_be_cancelled(scene: HostScene, *capabilities: str) -> Cancelled:
    """An open invoke of a plugin that took the capability."""
    need(scene, "cancellation", "nothing is cancelled")
    actor = await scene.plugin(capabilities=capabilities, taken={"cancellation": {}})
    return Cancelled(actor, *await scene.begin(actor))


@host("CALL-031", level="v2")
async def a_plugin_is_told_of_a_cancellation(scene: HostScene) -> None:
    one = await to_be_cancelled(scene)
    told = await one.begin(scene)
    expect(told.id is None, "executa/cancel is no notification")
    named = told.params.get("invoke_id")
    expect(named == one.request.invoke_id, f"it names {told.params!r:.120}")
    expect(told.params.get("reason") == REASON, f"it says {told.params!r:.120}")
    one.acknowledge()
    await scene.answered(one.asked)


@host("CALL-032", level="v2")
async def a_plugin_that_did_not_take_it_is_not_told(scene: HostScene) -> None:
    need(scene, "cancellation", "nothing is cancelled")
    actor = await scene.plugin()
    command, request = await scene.begin(actor)
    cancelling = cancel(scene, command)
    await scene.pause()
    asked = [one.method for one in actor.life.requests]
    expect("executa/cancel" not in asked, "it was sent executa/cancel")
    actor.life.result(request)
    await scene.answered(cancelling, scene.patience.answer + scene.around.pace("cancel"))


@host("CALL-033", level="v2")
async def an_answer_that_still_comes_counts(scene: HostScene) -> None:
    one = await to_be_cancelled(scene)
    await one.begin(scene)
    one.actor.life.result(one.request, "done all the same")
    told = await scene.answered(one.asked)
    expect(told.get("outcome") == "completed_first", f"the outcome is {told!r}")
    outcome = await scene.outcome(one.command)
    expect(outcome.data == "done all the same", f"the invoke gave {outcome.data!r}")


@host("CALL-034", level="v2")
async def a_cancelled_error_confirms(scene: HostScene) -> None:
    one = await to_be_cancelled(scene)
    await one.begin(scene)
    one.acknowledge()
    told = await scene.answered(one.asked)
    expect(told.get("outcome") == "confirmed", f"the outcome is {told!r}")
    fault = await scene.failure(one.command)
    expect(fault.kind == "cancelled", f"the invoke failed as {fault.kind}")


@host("CALL-035", level="sampling")
async def reverse_calls_end_with_a_cancellation(scene: HostScene) -> None:
    one = await to_be_cancelled(scene, "llm.sample")
    held = one.actor.book.hold("sample")
    made = one.actor.life.call(SAMPLE, ASKED, under=one.request)
    await scene.heard(one.actor, "sample")
    await one.begin(scene)
    answer = await one.actor.life.reply(made)
    held.set()
    expect("error" in answer, f"the open reverse call was answered with {answer!r:.120}")
    one.acknowledge()
    await scene.answered(one.asked)
    await scene.pause()
    count = sum(answer.get("id") == made for answer in one.actor.life.answers)
    expect(count == 1, f"the open reverse call was answered {count} times")
