"""Events and chunks, in pages and followed (R-44, R-51)."""

import asyncio
from functools import partial
from typing import Any

import msgspec

from executa_conformance.actions.scene import (
    ENDED,
    ActionsScene,
    events,
    identity,
    log_of,
    refused,
)
from executa_conformance.http.client import Stream
from executa_conformance.reading import expect, items, members
from executa_conformance.registry import check

actions = partial(check, role="actions")

KINDS = {"data", "progress", "tool", "preview", "pending_approval", "error", "end"}


async def streamed(scene: ActionsScene, steps: int = 4) -> dict[str, Any]:
    """A streaming action that has ended."""
    action = await scene.submit("stream", {"steps": steps}, mode="streaming")
    await scene.ended(action)
    return action


async def chunks(scene: ActionsScene, action: dict[str, Any]) -> list[dict[str, Any]]:
    """The chunks of an action."""
    view = await scene.view(action, "chunks")
    return [members(one) for one in items(view.get("chunks"))]


@actions("EVNT-001")
async def sequences_have_no_gaps(scene: ActionsScene) -> None:
    found = [chunk.get("sequence") for chunk in await chunks(scene, await streamed(scene))]
    expect(len(found) >= 2, f"the sequences are {found}")
    expect(found == list(range(1, len(found) + 1)), f"the sequences are {found}")


@actions("EVNT-002")
async def kinds_of_chunks(scene: ActionsScene) -> None:
    kinds = [str(chunk.get("kind")) for chunk in await chunks(scene, await streamed(scene))]
    expect(set(kinds) <= KINDS, f"the kinds are {kinds}")
    expect(kinds[-1:] == ["end"] and kinds.count("end") == 1, f"the kinds are {kinds}")


@actions("EVNT-003")
async def chunks_have_their_attempt(scene: ActionsScene) -> None:
    found = [chunk.get("attempt") for chunk in await chunks(scene, await streamed(scene))]
    expect(bool(found) and set(found) == {1}, f"the attempts are {found}")


@actions("EVNT-004")
async def pages_join(scene: ActionsScene) -> None:
    action = await streamed(scene)
    whole = await scene.whole_log(action)
    joined: list[dict[str, Any]] = []
    cursor, ended = "", False
    for _ in range(len(whole) + 2):
        page = await scene.page(action, cursor, limit=2)
        joined += events(page)
        cursor, ended = str(page.get("cursor")), page.get("ended") is True
        if ended:
            break
    expect(ended, "the last page does not say that the log has ended")
    expect(joined == whole, f"the pages have {len(joined)} events, the log {len(whole)}")


async def followed(stream: Stream) -> list[tuple[str, dict[str, Any]]]:
    """The events of a stream of a log, with their ids, until its end."""
    found: list[tuple[str, dict[str, Any]]] = []
    while (event := await stream.next()) is not None:
        if event.type == "end":
            break
        found.append((event.id, members(msgspec.json.decode(event.data))))
    return found


@actions("EVNT-005")
async def streams_are_like_pages(scene: ActionsScene) -> None:
    action = await streamed(scene)
    whole = await scene.whole_log(action)
    async with scene.client.stream(log_of(action), bearer=scene.key) as stream:
        expect(stream.type == "text/event-stream", f"Content-Type is {stream.type!r}")
        found = await followed(stream)
    told = [event for _, event in found]
    expect(told == whole, f"the stream has {len(told)} events, the log {len(whole)}")


@actions("EVNT-006")
async def streams_go_on(scene: ActionsScene) -> None:
    action = await streamed(scene)
    async with scene.client.stream(log_of(action), bearer=scene.key) as stream:
        whole = await followed(stream)
    expect(len(whole) >= 3, f"the log has {len(whole)} events")
    last = whole[1][0]
    expect(bool(last), "the events of the stream have no id")
    async with scene.client.stream(
        log_of(action), bearer=scene.key, headers={"Last-Event-ID": last}
    ) as stream:
        rest = await followed(stream)
    expect(rest == whole[2:], f"after {last} came {len(rest)} events, not {len(whole) - 2}")


@actions("EVNT-007")
async def cursors_that_are_none(scene: ActionsScene) -> None:
    one, other = await streamed(scene, 8), await scene.submit("echo")
    await scene.ended(other)
    ahead = str((await scene.page(one, limit=1000)).get("cursor"))
    for subject, cursor, what in (
        (other, ahead, "a cursor of another log"),
        (one, "made-up", "a cursor that is none"),
    ):
        refused(await scene.paging(subject, cursor), what, 400, 404, 410, 422)


@actions("EVNT-008")
async def clients_may_go(scene: ActionsScene) -> None:
    action = await scene.submit("wait", {"seconds": 1})
    async with scene.client.stream(log_of(action), bearer=scene.key) as stream:
        await stream.next()
    waiting = asyncio.ensure_future(
        scene.get(f"/actions/{identity(action)}/result?wait=20", seconds=20)
    )
    await asyncio.sleep(scene.patience.quiet / 5)
    waiting.cancel()
    await asyncio.wait({waiting})
    record, _ = await scene.ended(action)
    expect(record.get("state") == "completed", f"the action is {record.get('state')}")


@actions("EVNT-009")
async def a_sessions_log(scene: ActionsScene) -> None:
    session = members((await scene.opened()).get("session"))
    name = identity(session)
    made = [await scene.submit("echo", {}, session_id=name) for _ in range(2)]
    for action in made:
        await scene.ended(action)
    await scene.post(f"/sessions/{name}/close")
    log = events(await scene.page(session, limit=1000))
    about = {str(each.get("action_id")) for each in log if each.get("action_id")}
    wanted = {identity(action) for action in made}
    expect(about == wanted, f"the log is about {sorted(about)}")
    own = [each.get("state") for each in log if each.get("type") == "session"]
    expect("active" in own and "completed" in own, f"of itself it tells {own}")
    for action in made:
        ends = [each.get("state") for each in log if each.get("action_id") == identity(action)]
        expect("completed" in ends, f"of an action it tells {ends}")
    cursors = [str(each.get("cursor")) for each in log]
    expect(len(set(cursors)) == len(cursors), f"two events have one cursor: {cursors}")


@actions("EVNT-011")
async def the_result_is_the_authority(scene: ActionsScene) -> None:
    for tool in ("echo", "fail"):
        action = await scene.submit(tool)
        record, result = await scene.ended(action)
        log = await scene.whole_log(action)
        last = [each.get("state") for each in log if each.get("type") == "state"][-1]
        agree = last == record.get("state") == result.get("status")
        expect(agree, f"the log ends with {last}, the result is {result.get('status')}")


@actions("EVNT-012")
async def followers_get_what_comes(scene: ActionsScene) -> None:
    action = await scene.submit("stream", {"steps": 3, "seconds": 0.1}, mode="streaming")
    async with scene.client.stream(log_of(action), bearer=scene.key) as stream:
        found = await followed(stream)
    states = [str(event["state"]) for _, event in found if event.get("type") == "state"]
    expect(bool(states) and states[-1] in ENDED, f"the follower saw {states}")
    told = sum(event.get("type") == "chunk" for _, event in found)
    expect(told >= 4, f"of three steps and an end the follower saw {told} chunks")
