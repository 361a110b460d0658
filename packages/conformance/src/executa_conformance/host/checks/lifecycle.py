"""A plugin's process: how it starts, what it lives through, and how it is stopped."""

from functools import partial

from executa_conformance.host.adapter import ENVIRONMENT, HIDDEN
from executa_conformance.host.asking import ASKED, SAMPLE
from executa_conformance.host.life import Frame, Life, Request
from executa_conformance.host.parts import TOOL, error, manifest_of, silence
from executa_conformance.host.scene import HostScene, need
from executa_conformance.reading import code_of, expect
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
    if scene.around.serves("env"):
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
    open_call = actor.life.call(SAMPLE, ASKED, under=request)
    await scene.failure(command)
    answer = await actor.life.reply(open_call)
    expect("error" in answer, f"the open reverse call was answered with {answer!r:.120}")
    answer = await actor.life.ask(SAMPLE, ASKED, under=request)
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


@host("LIFE-014", patience=2)
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
