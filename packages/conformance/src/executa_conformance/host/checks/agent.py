"""Agent sessions and agent/complete: who may, what is created, and what ends it (R-30 to R-38)."""

from functools import partial
from typing import Any

from executa_conformance.host.asking import (
    AGENT,
    ASKED,
    AUTO,
    CREATE,
    RUN,
    SAMPLE,
    Open,
    open_invoke,
    run_of,
    with_book,
)
from executa_conformance.host.book import Reply
from executa_conformance.host.scene import HostScene, need
from executa_conformance.reading import expect, members
from executa_conformance.registry import check

host = partial(check, role="host", level="agent")

PREFIX = "agent/session."


def of(uuid: str) -> dict[str, Any]:
    """Params that name an agent session."""
    return {"app_session_uuid": uuid}


OTHERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("run", {"content": "hi"}),
    ("cancel", {"run_id": "r"}),
    ("history", {}),
)
"""The methods that name an agent session, beside delete."""


@host("AGNT-101")
async def the_answer_to_create(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    made = members(await asked.get(CREATE, AUTO))
    names = ("app_session_uuid", "thread_id", "agent_submode", "granted_tools")
    missing = [name for name in names if name not in made]
    expect(not missing, f"the answer lacks {missing}")
    expect(made["agent_submode"] == "auto", f"agent_submode is {made['agent_submode']!r}")
    await asked.end()


@host("AGNT-102")
async def the_token_stays_in_the_host(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    made = members(await asked.get(CREATE, AUTO))
    expect("token" not in made, "the answer has a member token")
    uuid = str(made.get("app_session_uuid"))
    await asked.get(RUN, run_of(uuid))
    secret = next(token for token in asked.actor.book.minted if "session" in token)
    told = [str(answer) for answer in asked.actor.life.answers]
    expect(not any(secret in one for one in told), "the plugin was told the session's token")
    await asked.end()


@host("AGNT-103")
async def create_goes_under_the_sampling_token(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    await asked.create()
    seen = await scene.heard(asked.actor, "create")
    token = asked.request.context.get("sampling_token")
    expect(seen.bearer == token, "sessions/from_sampling was asked under another token")
    await asked.end()


@host("AGNT-104")
async def a_run_goes_under_the_sessions_token(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    uuid = await asked.create()
    await asked.get(RUN, run_of(uuid))
    seen = await scene.heard(asked.actor, "run")
    expect(seen.session == uuid, "the run was asked for under another token")
    expect(members(seen.body).get("content") == "Plan my week.", f"it asked {seen.body!r:.160}")
    await asked.end()


@host("AGNT-105")
async def a_submode_that_is_none(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    for params in ({"kind": "agent"}, {"kind": "agent", "agent_submode": "manual"}):
        await asked.refused(CREATE, params, -32042, "AGENT_INVALID_SUBMODE", wrong=True)
    await asked.end()


@host("AGNT-106")
async def fixed_without_its_tool(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    symbol = "AGENT_FIXED_REQUIRES_CLIENT_ID"
    await asked.refused(CREATE, {"kind": "fixed"}, -32043, symbol, wrong=True)
    await asked.end()


@host("AGNT-107")
async def another_kind(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    await asked.refused(CREATE, {"kind": "swarm", "agent_submode": "auto"}, -32602, wrong=True)
    await asked.end()


@host("AGNT-108")
async def tolerated_ways_to_create(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    for params in ({"agent_submode": "auto"}, {"kind": "agent", "submode": "auto"}):
        made = await asked.get(CREATE, params, wrong=True)
        mode = members(made).get("agent_submode")
        expect(mode == "auto", f"{params} made {made!r:.120}")
    await asked.end()


@host("AGNT-109")
async def a_fixed_tool_that_is_not_granted(scene: HostScene) -> None:
    asked = await with_book(scene, AGENT, granted_tools=["notes.read"])
    params = {"kind": "fixed", "fixed_client_id": "notes.write"}
    await asked.refused(CREATE, params, -32048, "AGENT_TOOL_NOT_GRANTED")
    await asked.end()


@host("AGNT-110")
async def a_run_with_tools_that_are_not_granted(scene: HostScene) -> None:
    asked = await with_book(scene, AGENT, granted_tools=["notes.read"])
    uuid = await asked.create()
    await asked.get(RUN, run_of(uuid, allowed_tools=["notes.read"]))
    params = run_of(uuid, allowed_tools=["notes.read", "notes.write"])
    await asked.refused(RUN, params, -32048, "AGENT_TOOL_NOT_GRANTED")
    await asked.end()


@host("AGNT-111")
async def an_unknown_session(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    for verb, params in OTHERS:
        symbol = "AGENT_UNKNOWN_SESSION"
        await asked.refused(PREFIX + verb, {**of("nobody"), **params}, -32044, symbol)
    await asked.end()


@host("AGNT-112")
async def a_session_of_another_plugin(scene: HostScene) -> None:
    owner, thief = await open_invoke(scene, AGENT), await open_invoke(scene, AGENT)
    uuid = await owner.create()
    for verb, params in (*OTHERS, ("delete", {})):
        symbol = "AGENT_INVALID_UUID"
        await thief.refused(PREFIX + verb, {**of(uuid), **params}, -32045, symbol)
    await owner.get(RUN, run_of(uuid))
    expect(not owner.actor.book.named("delete"), "it was deleted at nexus")
    await owner.end()
    await thief.end()


@host("AGNT-113")
async def an_expired_session(scene: HostScene) -> None:
    asked = await with_book(scene, AGENT, session_life=-60.0)
    uuid = await asked.create()
    await asked.refused(RUN, run_of(uuid), -32044, "AGENT_UNKNOWN_SESSION")
    await asked.end()


@host("AGNT-114")
async def delete_is_idempotent(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    uuid = await asked.create()
    for name in (uuid, uuid, "nobody"):
        got = members(await asked.get(PREFIX + "delete", of(name)))
        expect(got.get("deleted") is True, f"delete answered {got!r:.120}")
    await asked.end()


@host("AGNT-115")
async def delete_evicts_at_once(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    uuid = await asked.create()
    await asked.get(PREFIX + "delete", of(uuid))
    await asked.refused(RUN, run_of(uuid), -32044)
    await asked.end()


@host("AGNT-117")
async def sessions_end_with_the_process(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    uuid = await asked.create()
    await asked.end()
    await scene.stop(asked.actor)
    await scene.start(asked.actor)
    again: Open = await open_invoke(scene, (), asked.actor)
    await again.refused(RUN, run_of(uuid), -32044)
    await again.end()


@host("AGNT-118", patience=3)
async def the_cache_is_bounded(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    first = await asked.create()
    life = asked.actor.life
    for _ in range(41):
        made = [life.call(CREATE, AUTO, under=asked.request) for _ in range(100)]
        for identity in made:
            await life.reply(identity)
    last = await asked.create()
    await asked.refused(RUN, run_of(first), -32044)
    await asked.get(RUN, run_of(last))
    await asked.end()


@host("AGNT-127")
async def failures_of_nexus(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    book = asked.actor.book
    uuid = await asked.create()
    book.always("run", Reply(b"oops", 500))
    await asked.refused(RUN, run_of(uuid), -32046, "AGENT_NEXUS_ERROR")
    book.always("create", Reply(b"oops", 500))
    await asked.refused(CREATE, AUTO, -32046, "AGENT_NEXUS_ERROR")
    await asked.end()


@host("AGNT-142")
async def a_run_needs_content(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    uuid = await asked.create()
    await asked.refused(RUN, run_of(uuid, content=""), -32602, wrong=True)
    await asked.end()


@host("AGNT-143")
async def a_fixed_session_offers_one_tool(scene: HostScene) -> None:
    need(scene, "nested", "no tools of the host are offered")
    asked = await open_invoke(scene, AGENT)
    other = await scene.plugin()
    name = f"{asked.actor.name}.echo"
    made = members(await asked.get(CREATE, {"kind": "fixed", "fixed_client_id": name}))
    await asked.get(RUN, run_of(str(made.get("app_session_uuid"))))
    tools = members((await scene.heard(asked.actor, "run")).body).get("tools", ())
    offered = [members(tool).get("name") for tool in tools]
    expect(offered == [name], f"a fixed run offers {offered}, beside {other.name}'s")
    await asked.end()


@host("AGNT-132")
async def other_calls_go_on_during_a_run(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    uuid = await asked.create()
    held = asked.actor.book.hold("run")
    life = asked.actor.life
    running = life.call(RUN, run_of(uuid), under=asked.request)
    await scene.heard(asked.actor, "run")
    await asked.get(SAMPLE, ASKED)
    held.set()
    await life.reply(running)
    await asked.end()
