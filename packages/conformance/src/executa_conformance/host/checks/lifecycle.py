"""A plugin's process: how it starts, what it lives through, and how it is stopped."""

import asyncio
import signal
from functools import partial
from itertools import pairwise

from executa_conformance.host.adapter import ENVIRONMENT, HIDDEN
from executa_conformance.host.life import Frame, Life, Request
from executa_conformance.host.parts import TOOL, error, manifest_of, silence
from executa_conformance.host.reading import code_of
from executa_conformance.host.scene import HostScene, expect, need
from executa_conformance.model import NotMet
from executa_conformance.registry import check

host = partial(check, role="host")


@host("LIFE-002")
async def one_process_serves_all_calls(scene: HostScene) -> None:
    actor = await scene.plugin()
    for _ in range(5):
        await scene.works(actor)
    expect(len(actor.lives) == 1, f"{len(actor.lives)} processes were started for 5 calls")


@host("LIFE-003")
async def standard_streams_are_pipes(scene: HostScene) -> None:
    actor = await scene.plugin()
    expect(actor.life.who["pipes"] == [True] * 3, "stdin, stdout and stderr are not all pipes")


@host("LIFE-004")
async def the_environment_is_the_users(scene: HostScene) -> None:
    actor = await scene.plugin(start={"env": {"KIT_GIVEN": "by the start"}})
    env = actor.life.who["env"]
    expect(env.get("KIT_SHOWN") == ENVIRONMENT["KIT_SHOWN"], "the user's environment is not there")
    expect(env.get("KIT_GIVEN") == "by the start", "what the start names is not there")


@host("LIFE-005")
async def the_hosts_secrets_are_kept_back(scene: HostScene) -> None:
    actor = await scene.plugin()
    leaked = [name for name in actor.life.who["env"] if name.startswith("EXECUTA_")]
    expect(not leaked, f"the plugin was given {leaked}")
    if scene.around.serves("hide_env"):
        expect(HIDDEN not in actor.life.who["env"], f"the plugin was given {HIDDEN}")


@host("LIFE-007")
async def described_once(scene: HostScene) -> None:
    actor = await scene.plugin()
    await scene.works(actor)
    await scene.works(actor)
    asked = [one.method for one in actor.life.requests]
    expect(asked.count("describe") == 1, f"in its life the plugin was sent {asked}")
    order = asked.index("describe") < asked.index("invoke")
    expect(order, f"describe does not come before the first invoke: {asked}")


@host("LIFE-008")
async def no_answer_to_describe(scene: HostScene) -> None:
    actor = scene.cast(handlers={"describe": silence})
    scene.waits(scene.around.pace("describe"))
    await scene.failure(scene.starting(actor), scene.patience.answer)


@host("LIFE-010")
async def an_invoke_past_its_limit(scene: HostScene) -> None:
    actor = await scene.plugin()
    command, request = await scene.begin(actor, timeout=scene.patience.quiet)
    fault = await scene.failure(command)
    expect(fault.kind == "timeout", f"the invoke failed as {fault.kind}, not as a time-out")
    actor.life.result(request)


@host("LIFE-011")
async def a_time_out_is_the_calls_own(scene: HostScene) -> None:
    actor = await scene.plugin()
    other, request = await scene.begin(actor)
    late, _ = await scene.begin(actor, timeout=scene.patience.quiet)
    await scene.failure(late)
    answer_probes(actor.life)
    expect(not other.done, "another invoke ended with it")
    actor.life.result(request, "went on")
    expect((await scene.outcome(other)).data == "went on", "the other invoke lost its answer")
    expect(len(actor.lives) == 1, "the plugin was restarted")


def answer_probes(life: Life) -> None:
    """Answer the health probes that have come, and those that come."""

    def healthy(life: Life, request: Request) -> None:
        result: Frame = {"status": "ready", "message": "", "details": {}}
        life.say({"jsonrpc": "2.0", "id": request.id, "result": result})

    life.handle("health", healthy)


@host("LIFE-012", level="v2")
async def reverse_calls_end_with_a_time_out(scene: HostScene) -> None:
    actor = await scene.plugin(capabilities=("llm.sample",))
    answer_probes(actor.life)
    held = actor.book.hold("sample")
    command, request = await scene.begin(actor, timeout=scene.patience.quiet * 4)
    sample = {
        "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
        "maxTokens": 16,
    }
    open_call = actor.life.call("sampling/createMessage", sample, under=request)
    await scene.failure(command)
    answer = await actor.life.reply(open_call)
    expect("error" in answer, f"the open reverse call was answered with {answer!r:.120}")
    answer = await actor.life.ask("sampling/createMessage", sample, under=request)
    code = code_of(answer)
    expect(code == -32602, f"a reverse call of an invoke that timed out was answered with {code}")
    held.set()


@host("LIFE-013")
async def an_answer_after_the_time_out(scene: HostScene) -> None:
    actor = await scene.plugin()
    answer_probes(actor.life)
    late, request = await scene.begin(actor, timeout=scene.patience.quiet)
    await scene.failure(late)
    actor.life.result(request, "late")
    await scene.works(actor)
    expect(len(actor.lives) == 1, "the plugin was restarted")


@host("LIFE-014")
async def a_plugin_that_no_longer_answers(scene: HostScene) -> None:
    actor = await scene.plugin(handlers={"health": silence})
    late, _ = await scene.begin(actor, timeout=scene.patience.quiet)
    await scene.failure(late)
    bound = scene.around.pace("health") + scene.around.pace("stop") * 2
    await actor.process(2, scene.patience.answer + bound + scene.around.pace("restart") * 2)


@host("LIFE-015")
async def health_may_be_unknown(scene: HostScene) -> None:
    actor = await scene.plugin(handlers={"health": error(-32601, "method not found")})
    late, _ = await scene.begin(actor, timeout=scene.patience.quiet)
    await scene.failure(late)
    await scene.pause(scene.around.pace("health") + scene.patience.quiet)
    expect(len(actor.lives) == 1, "a plugin that knows no health was restarted")
    await scene.works(actor)


@host("MANI-109")
async def the_manifest_limits_a_tool(scene: HostScene) -> None:
    actor = await scene.plugin(manifest=manifest_of(tools=[{**TOOL, "timeout": 1}]))
    answer_probes(actor.life)
    command, _ = await scene.begin(actor)
    fault = await scene.failure(command, scene.patience.answer + 2)
    expect(fault.kind == "timeout", f"the invoke failed as {fault.kind}, not as a time-out")


# --- Stopping ------------------------------------------------------------------------------


@host("LIFE-020")
async def stop_begins_with_the_end_of_stdin(scene: HostScene) -> None:
    actor = await scene.plugin(hold_end=True)
    life = actor.life
    stopping = asyncio.ensure_future(scene.stop(actor))
    await life.until(lambda: life.ended_at is not None, "end of stdin came")
    early = [number for number, _ in life.signals]
    expect(not early, f"signal {early} came before the end of stdin")
    await scene.pause(min(scene.around.pace("stop") / 2, 1.0))
    within = [number for number, _ in life.signals]
    expect(not within and not life.gone.is_set(), "the plugin was not left to end by itself")
    life.exit(0)
    await stopping
    expect(not life.signals, "a plugin that ended by itself was sent a signal")


@host("LIFE-021")
async def sigterm_after_the_grace(scene: HostScene) -> None:
    actor = await scene.plugin(hold_end=True)
    await scene.stop(actor, seconds=scene.patience.answer + scene.around.pace("stop") * 2)
    life = actor.life
    sent = [number for number, _ in life.signals]
    expect(sent[:1] == [signal.SIGTERM], f"after the grace the plugin was sent {sent}")
    expect(life.ended_at is not None, "stdin was not closed")


@host("LIFE-022")
async def sigkill_at_last(scene: HostScene) -> None:
    actor = await scene.plugin(hold_end=True, hold_term=True)
    life = actor.life
    await scene.stop(actor, seconds=scene.patience.answer + scene.around.pace("stop") * 3)
    await asyncio.wait_for(life.gone.wait(), scene.patience.answer)
    expect(bool(life.signals), "the plugin was killed without SIGTERM")
    waited = life.gone_at - life.signals[0][1]
    least = scene.around.pace("stop") / 2
    expect(waited >= least, f"SIGKILL came {waited:.2f} s after SIGTERM")


@host("LIFE-023")
async def children_are_ended(scene: HostScene) -> None:
    actor = await scene.plugin()
    actor.life.fork()
    child = await actor.child(scene.patience.answer)
    await scene.stop(actor, seconds=scene.patience.answer + scene.around.pace("stop") * 3)
    try:
        async with asyncio.timeout(scene.patience.answer):
            while await child.receive() is not None:
                pass
    except TimeoutError:
        raise NotMet("a child of the plugin, in its process group, lives on") from None


@host("LIFE-024")
async def a_daemon_does_not_hold_up_the_stop(scene: HostScene) -> None:
    actor = await scene.plugin()
    actor.life.fork(leave=True)
    await actor.child(scene.patience.answer)
    await scene.stop(actor, seconds=scene.patience.answer + scene.around.pace("stop") * 3)


@host("LIFE-025")
async def stderr_is_drained(scene: HostScene) -> None:
    actor = await scene.plugin()
    actor.life.stderr(b"\xff\xfe\x00 no text\n" + b"x" * (1 << 20) + b"\n" + b"log\n" * 50_000)
    await scene.works(actor)


@host("LIFE-026")
async def no_shutdown_request(scene: HostScene) -> None:
    actor = await scene.plugin()
    await scene.stop(actor)
    asked = [one.method for one in actor.life.requests]
    expect("shutdown" not in asked, f"the plugin was sent {asked}")


# --- Ending by itself ------------------------------------------------------------------------


@host("LIFE-028")
async def a_clean_end_is_no_fault(scene: HostScene) -> None:
    actor = await scene.plugin()
    for number in range(1, 6):
        await scene.works(actor)
        actor.life.exit(0)
        await asyncio.wait_for(actor.life.gone.wait(), scene.patience.answer)
        await scene.pause(scene.patience.quiet)
        expect(len(actor.lives) == number, "a plugin that ended cleanly was started without a call")
        command = scene.invoke(actor)
        life = await actor.process(number + 1, scene.patience.answer)
        life.result(await life.next(), "again")
        expect((await scene.outcome(command)).data == "again", "the next call was not served")


@host("LIFE-029")
async def a_crash_is_followed_by_a_restart(scene: HostScene) -> None:
    for killed in (False, True):
        actor = await scene.plugin()
        if killed:
            actor.life.fall()
        else:
            actor.life.exit(3)
        await actor.process(2, scene.patience.answer + scene.around.pace("restart") * 2)


@host("LIFE-030")
async def an_end_with_a_call_in_flight(scene: HostScene) -> None:
    actor = await scene.plugin()
    command, _ = await scene.begin(actor)
    actor.life.exit(0)
    fault = await scene.failure(command)
    expect(fault.kind != "timeout", "the call was left to run into its time-out")
    await actor.process(2, scene.patience.answer + scene.around.pace("restart") * 2)


@host("LIFE-031")
async def what_was_written_before_the_end_counts(scene: HostScene) -> None:
    actor = await scene.plugin()
    command, request = await scene.begin(actor)
    actor.life.result(request, "last words" * 10_000)
    actor.life.exit(1)
    outcome = await scene.outcome(command)
    expect(outcome.data == "last words" * 10_000, "the answer that was in the pipe is lost")


@host("LIFE-032")
async def a_lost_call_says_whether_it_was_written(scene: HostScene) -> None:
    actor = await scene.plugin()
    command, _ = await scene.begin(actor)
    actor.life.exit(1)
    fault = await scene.failure(command)
    expect(fault.written is True, f"of a call that the plugin got it says written={fault.written}")


@host("LIFE-033", patience=2)
async def three_restarts_then_faulted(scene: HostScene) -> None:
    actor = await scene.plugin()
    base = scene.around.pace("restart")
    starts: list[float] = []
    clock = asyncio.get_running_loop().time
    for number in range(1, 5):
        life = await actor.process(number, scene.patience.answer + base * 2**number)
        await life.until(lambda life=life: _described(life), "describe came")
        starts.append(clock())
        life.exit(1)
        await asyncio.wait_for(life.gone.wait(), scene.patience.answer)
    waits = [later - earlier for earlier, later in pairwise(starts)]
    for number, waited in enumerate(waits):
        least = base * 2**number * 0.8
        expect(waited >= least, f"restart {number + 1} came after {waited:.2f} s")
    fault = await scene.failure(scene.invoke(actor))
    expect(fault.kind == "faulted", f"after 3 restarts a call failed as {fault.kind}")
    expect(len(actor.lives) == 4, f"{len(actor.lives)} processes were started, not 4")


def _described(life: Life) -> bool:
    return any(one.method == "describe" for one in life.requests)


@host("LIFE-034", patience=2)
async def a_handshake_does_not_clear_the_faults(scene: HostScene) -> None:
    actor = await scene.plugin()
    base = scene.around.pace("restart")
    for number in range(1, 5):
        life = await actor.process(number, scene.patience.answer + base * 2**number)
        await life.until(lambda life=life: _described(life), "describe came")
        if number > 1:
            await scene.works(actor)
        life.exit(1)
        await asyncio.wait_for(life.gone.wait(), scene.patience.answer)
    await scene.pause(base * 9)
    expect(len(actor.lives) == 4, f"the plugin was started {len(actor.lives)} times")


@host("LIFE-035")
async def a_call_waits_for_the_restart(scene: HostScene) -> None:
    actor = await scene.plugin()
    actor.life.exit(1)
    await asyncio.wait_for(actor.life.gone.wait(), scene.patience.answer)
    command = scene.invoke(actor)
    life = await actor.process(2, scene.patience.answer + scene.around.pace("restart") * 2)
    life.result(await life.next(), "waited")
    expect((await scene.outcome(command)).data == "waited", "the call did not wait")


@host("LIFE-036")
async def users_do_not_share_a_process(scene: HostScene) -> None:
    need(scene, "users", "one user only")
    actor = await scene.plugin(start={"user": "ada"})
    await scene.start(actor, user="bob")
    expect(len(actor.lives) == 2, "two users share one process")
    command = scene.invoke(actor, {"text": "ada's"}, user="ada")
    request = await actor.lives[0].next()
    actor.lives[0].result(request, "for ada")
    expect((await scene.outcome(command)).data == "for ada", "the call went elsewhere")
