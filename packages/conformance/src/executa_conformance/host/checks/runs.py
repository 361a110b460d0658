"""Runs of agent sessions: their frames, their bounds and their ends (R-31, R-32)."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from executa_conformance.host.asking import AGENT, RUN, Open, frames_in, open_invoke, run_of
from executa_conformance.host.book import FINAL, Reply, frames_of
from executa_conformance.host.scene import HostScene
from executa_conformance.model import NotStrict
from executa_conformance.reading import expect, members
from executa_conformance.registry import check

host = partial(check, role="host", level="agent")

CANCEL = "agent/session.cancel"


class Endless:
    """A run that says `before`, and then nothing until it is ended."""

    def __init__(self, *before: Any) -> None:
        self._before = before
        self.closed = asyncio.Event()
        """Set when the stream has ended, whoever ended it."""
        self.end = asyncio.Event()

    async def frames(self) -> AsyncIterator[Any]:
        """The stream."""
        try:
            for frame in self._before:
                yield frame
            await self.end.wait()
            yield {"event": "final", "text": "hel", "cancelled": True}
        finally:
            self.closed.set()

    async def has_ended(self, seconds: float) -> bool:
        """Whether it ends in time."""
        try:
            await asyncio.wait_for(self.closed.wait(), seconds)
        except TimeoutError:
            return False
        return True


async def streaming(scene: HostScene, *frames: Any, cut: bool = False) -> tuple[Open, str]:
    """An open invoke with an agent session whose runs say this."""
    asked = await open_invoke(scene, AGENT)
    uuid = await asked.create()
    asked.actor.book.answers["run"] = lambda _: Reply(frames=frames_of(*frames), cut=cut)
    return asked, uuid


async def endless(scene: HostScene) -> tuple[Open, str, Endless, Any]:
    """An open invoke with a run that does not end; the id of the call that waits for it."""
    asked = await open_invoke(scene, AGENT)
    uuid = await asked.create()
    run = Endless({"event": "delta", "text": "hel"})
    book = asked.actor.book
    book.answers["run"] = lambda _: Reply(frames=run.frames())

    def cancelled(_: object) -> Reply:
        run.end.set()
        return Reply({"cancelled": True})

    book.answers["cancel"] = cancelled
    params = run_of(uuid, run_id="kit-run")
    made = asked.actor.life.call(RUN, params, under=asked.request)
    await scene.heard(asked.actor, "run")
    return asked, uuid, run, made


@host("AGNT-119")
async def frames_come_in_order(scene: HostScene) -> None:
    said: list[dict[str, Any]] = [
        {"event": "delta", "text": "a"},
        {"event": "tool_call", "name": "x.y", "args": {"q": 2**60}, "call_id": "c1"},
        {"event": "tool_result", "call_id": "c1", "ok": True, "data": {"n": None}},
        {"event": "delta", "text": "b\u2028"},
        {"event": "final", "text": "ab\u2028", "usage": {"totalTokens": 4}},
    ]
    asked, uuid = await streaming(scene, *said)
    got = frames_in(await asked.get(RUN, run_of(uuid)))
    events = [frame.get("event") for frame in got]
    expect(events == [frame["event"] for frame in said], f"the frames came as {events}")
    expect(got[1].get("args") == said[1]["args"], f"args came as {got[1].get('args')!r}")
    expect(got[-1].get("text") == "ab\u2028", f"the final text is {got[-1].get('text')!r}")
    await scene.pause()
    runs = [one for one in asked.actor.life.answers if frames_in(members(one).get("result"))]
    expect(len(runs) == 1, f"the run was answered {len(runs)} times")
    await asked.end()


@host("AGNT-120")
async def the_answer_to_run(scene: HostScene) -> None:
    asked, uuid = await streaming(scene, FINAL)
    got = await asked.get(RUN, run_of(uuid))
    if isinstance(got, list):
        await asked.end()
        return  # the seed's own form, as strict mode has it
    missing = [name for name in ("run_id", "frames", "final") if name not in members(got)]
    expect(not missing, f"the answer lacks {missing}")
    final = members(members(got).get("final")).get("text")
    expect(final == "hello", f"final says {final!r}")
    await asked.end()


@host("AGNT-006")
async def run_answers_with_frames(scene: HostScene) -> None:
    asked, uuid = await streaming(scene, {"event": "delta", "text": "hello"}, FINAL)
    got = await asked.get(RUN, run_of(uuid))
    expect(len(frames_in(got)) == 2, f"of two frames came {got!r:.160}")
    await asked.end()
    if not isinstance(got, list):
        raise NotStrict("the answer is an object with the frames, as tolerant hosts have it")


@host("AGNT-121")
async def the_run_id(scene: HostScene) -> None:
    asked, uuid = await streaming(scene, FINAL)
    await asked.get(RUN, run_of(uuid, run_id="chosen-1"))
    asked.actor.book.answers["run"] = lambda _: Reply(frames=frames_of(FINAL))
    await asked.get(RUN, run_of(uuid))
    ids = [members(seen.body).get("run_id") for seen in asked.actor.book.named("run")]
    expect(ids[0] == "chosen-1", f"the run was asked for as {ids[0]!r}")
    expect(bool(ids[1]) and ids[1] != ids[0], f"a run without an id was asked for as {ids[1]!r}")
    await asked.end()


@host("AGNT-122", patience=2)
async def at_most_4096_frames(scene: HostScene) -> None:
    delta = {"event": "delta", "text": "x"}
    asked, uuid = await streaming(scene, *([delta] * 4095), FINAL)
    got = frames_in(await asked.get(RUN, run_of(uuid)))
    expect(len(got) == 4096, f"of 4,096 frames came {len(got)}")
    run = Endless(*([delta] * 4097))
    asked.actor.book.answers["run"] = lambda _: Reply(frames=run.frames())
    await asked.refused(RUN, run_of(uuid), -32047, "AGENT_RUN_TOO_LARGE")
    closed = await run.has_ended(scene.patience.answer)
    expect(closed, "the upstream stream was not closed")
    await asked.end()


@host("AGNT-123")
async def a_cancelled_run(scene: HostScene) -> None:
    asked, uuid, run, made = await endless(scene)
    params = {"app_session_uuid": uuid, "run_id": "kit-run"}
    got = members(await asked.get(CANCEL, params))
    expect(got.get("cancelled") is True, f"cancel answered {got!r:.120}")
    frames = frames_in((await asked.actor.life.reply(made)).get("result"))
    events = [frame.get("event") for frame in frames]
    expect(events[:1] == ["delta"], f"the frames so far came as {events}")
    last = frames[-1]
    told = last.get("event") == "final" and last.get("cancelled") is True
    expect(told, f"the last frame is {last!r:.120}")
    ended = await run.has_ended(scene.patience.answer)
    expect(ended, "the upstream run was not ended")
    await asked.end()


@host("AGNT-124")
async def cancelling_what_does_not_run(scene: HostScene) -> None:
    asked, uuid = await streaming(scene, FINAL)
    await asked.get(RUN, run_of(uuid, run_id="done"))
    for run_id in ("done", "never-was"):
        got = members(await asked.get(CANCEL, {"app_session_uuid": uuid, "run_id": run_id}))
        expect(got.get("cancelled") is False, f"cancel of {run_id} answered {got!r:.120}")
    await asked.end()


@host("AGNT-116")
async def delete_cancels_live_runs(scene: HostScene) -> None:
    asked, uuid, run, made = await endless(scene)
    await asked.get("agent/session.delete", {"app_session_uuid": uuid})
    await asked.actor.life.reply(made)
    ended = await run.has_ended(scene.patience.answer)
    expect(ended, "the upstream run was not ended")
    await asked.end()


@host("AGNT-128")
async def dialects_become_the_four_events(scene: HostScene) -> None:
    asked, uuid = await streaming(
        scene,
        {"event": "queued"},
        {"event": "token", "text": "hel", "seq": 1, "stream_id": "s"},
        {"event": "model_token", "text": "lo"},
        {"event": "keepalive"},
        {"event": "kit_unheard_of", "n": 1},
        {"event": "complete", "text": "hello"},
    )
    got = frames_in(await asked.get(RUN, run_of(uuid)))
    events = [frame.get("event") for frame in got]
    wanted = ["delta", "delta", "kit_unheard_of", "final"]
    expect(events == wanted, f"the frames came as {events}, not as {wanted}")
    expect("seq" not in got[0], "a member of the transport is still there")
    await asked.end()


@host("AGNT-129")
async def a_stream_that_is_cut(scene: HostScene) -> None:
    delta = {"event": "delta", "text": "hel"}
    asked, uuid = await streaming(scene, delta, cut=True)
    await asked.refused(RUN, run_of(uuid), -32046)
    asked.actor.book.answers["run"] = lambda _: Reply(frames=frames_of(delta), marked=False)
    await asked.refused(RUN, run_of(uuid), -32046)
    await asked.end()
