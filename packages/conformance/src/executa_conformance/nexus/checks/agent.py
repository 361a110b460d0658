"""Agent sessions and their runs at nexus (seed agent-sessions; R-31 to R-38)."""

from functools import partial
from typing import Any, Final

import msgspec

from executa_conformance.http.client import Answer
from executa_conformance.model import NotApplicable, NotMet, NotStrict
from executa_conformance.nexus.scene import NexusScene, RunSeen, judged
from executa_conformance.reading import expect, members
from executa_conformance.registry import check

nexus = partial(check, role="nexus", level="agent")

TOOL: Final = {
    "name": "kit.echo",
    "description": "Says what it is told.",
    "parameters": {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What to say."}},
        "required": ["text"],
    },
}
ASKED: Final = 'Call the tool kit.echo with the text "herons", then say what it gave.'


async def one_run(scene: NexusScene) -> RunSeen:
    """A run without tools."""
    session = await scene.create(await scene.open())
    run = await scene.run(str(session.get("token")))
    expect(run.status == 200, f"a run was answered with {run.status}")
    return run


async def post(scene: NexusScene, token: str, run_id: str, call_id: str, data: Any) -> Answer:
    """Post the outcome of a tool call."""
    body = {"run_id": run_id, "call_id": call_id, "ok": True, "data": data}
    return await scene.client.ask("POST", "/copilot/app/agent/tool_result", body, bearer=token)


@nexus("NEXS-012")
async def minting(scene: NexusScene) -> None:
    made = await scene.create(await scene.open())
    for name in ("app_session_uuid", "token", "thread_id"):
        value = made.get(name)
        expect(isinstance(value, str) and bool(value), f"{name} is {type(value).__name__}")


@nexus("NEXS-013")
async def runs_take_the_sessions_token(scene: NexusScene) -> None:
    opened = await scene.open()
    session = await scene.create(opened)
    run = await scene.run(opened.token("sampling"))
    expect(run.status in (401, 403), f"a run under a sampling token was answered {run.status}")
    run = await scene.run(str(session.get("token")))
    expect(run.status == 200, f"a run under its own token was answered with {run.status}")


@nexus("NEXS-014")
async def sessions_that_are_none(scene: NexusScene) -> None:
    opened = await scene.open()
    for params, code in (
        ({"kind": "agent"}, -32042),
        ({"kind": "agent", "agent_submode": "manual"}, -32042),
        ({"kind": "fixed"}, -32043),
    ):
        answer = await scene.creating(opened, params)
        expect(answer.status >= 400, f"{params} was answered with {answer.status}")
        got = answer.error.get("code")
        expect(got == code, f"{params} was refused with {got!r}, not {code}")


@nexus("NEXS-015")
async def cancelling_what_does_not_run(scene: NexusScene) -> None:
    session = await scene.create(await scene.open())
    answer = await scene.client.ask(
        "POST",
        "/copilot/app/agent/cancel",
        {"run_id": "never-was"},
        bearer=str(session.get("token")),
    )
    expect(answer.status == 200, f"it was answered with {answer}")
    expect(answer.members.get("cancelled") is False, f"it was answered with {answer}")


@nexus("NEXS-016")
async def deleting(scene: NexusScene) -> None:
    session = await scene.create(await scene.open())
    token = str(session.get("token"))
    path = f"/copilot/app/sessions/{session.get('app_session_uuid')}"
    for _ in range(2):
        answer = await scene.client.ask("DELETE", path, bearer=token)
        expect(answer.status in (200, 204), f"deleting was answered with {answer}")
    run = await scene.run(token)
    expect(run.status in (401, 404, 410), f"a run of it was answered with {run.status}")


@nexus("NEXS-029")
async def sessions_of_others(scene: NexusScene) -> None:
    mine = await scene.create(await scene.open())
    theirs = await scene.create(await scene.open(user=f"{scene.user}-other"))
    path = f"/copilot/app/sessions/{theirs.get('app_session_uuid')}"
    answer = await scene.client.ask("DELETE", path, bearer=str(mine.get("token")))
    scene.evidence.tell(f"deleting another's was answered with {answer.status}")
    run = await scene.run(str(theirs.get("token")))
    expect(run.status == 200, "one's own token ended an agent session of another")


class ToolRun:
    """A run in which the model calls a tool of the host, and what was posted for it."""

    def __init__(self, scene: NexusScene) -> None:
        self.scene = scene
        self.token = ""
        self.call: dict[str, Any] = {}
        self.posted: list[int] = []

    async def run(self, posts: int = 1) -> RunSeen:
        """The run, with the outcome posted so many times. Raises `NotApplicable` without a call."""
        session = await self.scene.create(await self.scene.open())
        self.token = str(session.get("token"))
        body = {"run_id": "kit-tools", "content": ASKED, "tools": [TOOL]}
        events: list[Any] = []
        async with self.scene.running(self.token, **body) as stream:
            expect(stream.status == 200, f"a run with tools was answered with {stream.status}")
            while (event := await stream.next()) is not None:
                events.append(event)
                frame = members(_read(event.data))
                if frame.get("event") == "tool_call" and not self.call:
                    self.call = frame
                    for number in range(posts):
                        answer = await post(
                            self.scene,
                            self.token,
                            "kit-tools",
                            str(frame.get("call_id")),
                            {"said": f"herons {number}"},
                        )
                        self.posted.append(answer.status)
        if not self.call:
            raise NotApplicable("the model behind it called no tool, though it was asked to")
        return judged(stream.status, stream.type, events)


def _read(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return None


@nexus("NEXS-017")
async def a_tool_of_the_host(scene: NexusScene) -> None:
    tools = ToolRun(scene)
    run = await tools.run()
    expect(tools.call.get("executor") == "host", f"the call is {tools.call!r:.160}")
    expect(tools.call.get("name") == "kit.echo", f"the call is {tools.call!r:.160}")
    expect(tools.posted[0] in (200, 204), f"its outcome was answered with {tools.posted[0]}")
    results = [frame for frame in run.frames if frame.get("event") == "tool_result"]
    expect(len(results) == 1, f"of one call came {len(results)} results")
    fits = results[0].get("ok") is True and results[0].get("data") == {"said": "herons 0"}
    expect(fits, f"the result is {results[0]!r:.160}")


@nexus("NEXS-018")
async def an_outcome_counts_once(scene: NexusScene) -> None:
    tools = ToolRun(scene)
    run = await tools.run(posts=2)
    results = [frame for frame in run.frames if frame.get("event") == "tool_result"]
    kept = [frame.get("data") for frame in results]
    expect(kept == [{"said": "herons 0"}], f"the results are {kept!r:.160}")


# --- The stream ------------------------------------------------------------------------------


SHAPES: Final[dict[str, dict[str, type | tuple[type, ...]]]] = {
    "delta": {"text": str},
    "tool_call": {"name": str, "args": dict, "call_id": str},
    "tool_result": {"call_id": str, "ok": bool},
    "final": {"text": str},
}


@nexus("FRAME-101")
async def the_shapes_of_frames(scene: NexusScene) -> None:
    run = await one_run(scene)
    told = [members(_read(event.data)) for event in run.events]
    for frame in told:
        shape = SHAPES.get(str(frame.get("event")), {})
        for name, kind in shape.items():
            value = frame.get(name)
            expect(isinstance(value, kind), f"{frame.get('event')}.{name} is {value!r:.80}")
    expect(any(frame.get("event") == "final" for frame in told), "there is no final frame")


@nexus("FRAME-102")
async def one_final_frame_at_the_end(scene: NexusScene) -> None:
    run = await one_run(scene)
    events = [str(members(_read(event.data)).get("event")) for event in run.events]
    finals = [number for number, event in enumerate(events) if event == "final"]
    expect(len(finals) == 1, f"there are {len(finals)} final frames")
    after = [event for event in events[finals[0] + 1 :] if event in SHAPES]
    expect(not after, f"after the final frame came {after}")


@nexus("FRAME-103")
async def results_have_their_call(scene: NexusScene) -> None:
    run = await ToolRun(scene).run()
    called: set[Any] = set()
    for frame in run.frames:
        if frame.get("event") == "tool_call":
            called.add(frame.get("call_id"))
        elif frame.get("event") == "tool_result":
            known = frame.get("call_id") in called
            expect(known, f"a result of {frame.get('call_id')!r} came without its call")


@nexus("FRAME-104")
async def the_usage_of_a_run(scene: NexusScene) -> None:
    run = await one_run(scene)
    usage = members(members(run.frames[-1]).get("usage"))
    expect(bool(usage), f"the final frame's usage is {usage!r}")


@nexus("FRAME-105")
async def the_stream_is_events(scene: NexusScene) -> None:
    run = await one_run(scene)
    expect(run.type == "text/event-stream", f"Content-Type is {run.type!r}")
    for event in run.events:
        fits = isinstance(_read(event.data), dict)
        expect(fits, f"an event holds {event.data[:80]!r}, no JSON object")


@nexus("FRAME-006")
async def the_stream_ends_with_its_mark(scene: NexusScene) -> None:
    run = await one_run(scene)
    last = members(_read(run.events[-1].data)) if run.events else {}
    marked = last.get("done") is True
    expect(marked, f"the stream ends with {last!r:.120}, without done")


_SPELLINGS: Final = {
    "FRAME-001": "deltas-are-deltas",
    "FRAME-002": "text-comes-in-deltas",
    "FRAME-003": "the-last-frame-is-final",
    "FRAME-004": "no-frames-about-the-stream",
    "FRAME-005": "no-run_meta",
    "FRAME-007": "payloads-are-unwrapped",
    "FRAME-008": "chunks-are-turned-into-frames",
    "FRAME-010": "no-members-of-the-transport",
    "FRAME-011": "frames-name-their-event",
    "FRAME-012": "frames-stand-alone",
    "FRAME-013": "final-has-the-whole-text",
}
"""What a tolerant host reads otherwise; each needs nothing but a run."""


def _register(requirement: str, name: str) -> None:
    async def spelled(scene: NexusScene) -> None:
        run = await one_run(scene)
        found = [each for each in run.sightings if each.requirement == requirement]
        if found:
            raise NotStrict(found[0].message)
        if requirement == "FRAME-005":
            met = any(members(_read(event.data)).get("event") == "run_meta" for event in run.events)
            expect(not met, "a run_meta frame came")

    nexus(requirement, name=name)(spelled)


for _requirement, _name in _SPELLINGS.items():
    _register(_requirement, _name)


@nexus("FRAME-009")
async def a_cancelled_run_ends_with_final(scene: NexusScene) -> None:
    session = await scene.create(await scene.open())
    token = str(session.get("token"))
    body = {"run_id": "kit-cancel", "content": ASKED, "tools": [TOOL]}
    events: list[Any] = []
    async with scene.running(token, **body) as stream:
        expect(stream.status == 200, f"a run was answered with {stream.status}")
        waits = False
        while (event := await stream.next()) is not None:
            events.append(event)
            if members(_read(event.data)).get("event") == "tool_call" and not waits:
                waits = True  # nexus waits for the outcome now, and the run is open
                answer = await scene.client.ask(
                    "POST", "/copilot/app/agent/cancel", {"run_id": "kit-cancel"}, bearer=token
                )
                told = answer.members.get("cancelled")
                expect(told is True, f"cancelling a run that waits was answered with {answer}")
    if not waits:
        raise NotApplicable("the model behind it called no tool, so that the run did not wait")
    frames = [members(_read(event.data)) for event in events]
    finals = [frame for frame in frames if frame.get("event") == "final"]
    if not any(frame.get("cancelled") is True for frame in finals):
        raise NotMet(f"a cancelled run ended with {frames[-2:]!r:.200}")
