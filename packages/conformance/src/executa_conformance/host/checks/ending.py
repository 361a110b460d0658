"""How a plugin's process ends: stopped by the ladder, or by itself (R-25, R-26)."""

import asyncio
import signal
from functools import partial
from itertools import pairwise

from executa_conformance.host.life import Life
from executa_conformance.host.scene import HostScene
from executa_conformance.model import NotMet
from executa_conformance.reading import expect
from executa_conformance.registry import check

host = partial(check, role="host")


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
    grace = scene.around.pace("stop")
    expect(waited >= least, f"SIGKILL came {waited:.2f} s after SIGTERM, and not {grace:g} s")


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


@host("LIFE-028")
async def a_clean_end_is_no_fault(scene: HostScene) -> None:
    actor = await scene.plugin()
    for number in range(1, 6):
        await scene.works(actor)
        actor.life.exit(0)
        await asyncio.wait_for(actor.life.gone.wait(), scene.patience.answer)
        await scene.pause()  # the host may notice the end later than the kit
        if number == 1:
            await scene.pause(scene.around.pace("restart") * 1.2)
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
    if fault.kind == "lost":  # the host had not noticed the end yet
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
    await scene.pause(scene.around.pace("restart") / 4)  # so that the host notices the end
    command = scene.invoke(actor)
    life = await actor.process(2, scene.patience.answer + scene.around.pace("restart") * 2)
    life.result(await life.next(), "waited")
    expect((await scene.outcome(command)).data == "waited", "the call did not wait")
