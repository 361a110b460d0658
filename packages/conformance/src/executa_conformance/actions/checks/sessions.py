"""Durable sessions and their resume tokens (R-49, R-50)."""

import re
from functools import partial
from typing import Any

from executa_conformance.actions.scene import ActionsScene, identity, refused
from executa_conformance.http.client import Answer
from executa_conformance.model import NotMet
from executa_conformance.reading import expect, items, members
from executa_conformance.registry import check

actions = partial(check, role="actions")


def token_of(opened: dict[str, Any]) -> str:
    """The resume token of an answer. Raises `NotMet` if there is none."""
    token = opened.get("resume_token")
    if not isinstance(token, str) or len(token) < 32:
        raise NotMet("the answer has no resume token of some length")
    return token


def session_of(opened: dict[str, Any]) -> dict[str, Any]:
    """The session of an answer."""
    return members(opened.get("session"))


async def resume(scene: ActionsScene, token: str, attempt: str, **more: Any) -> Answer:
    """Spend a resume token."""
    body = {"resume_token": token, "attempt_id": attempt, **more}
    scene.client.secrets.add(token)
    return await scene.post("/resume", body)


async def resumed(scene: ActionsScene, token: str, attempt: str, **more: Any) -> dict[str, Any]:
    """The answer to a resume. Raises `NotMet` if it is refused."""
    answer = await resume(scene, token, attempt, **more)
    expect(answer.status == 200, f"resume was answered with {answer.status}")
    return answer.members


@actions("SESS-001")
async def ids_of_sessions(scene: ActionsScene) -> None:
    names = [identity(session_of(await scene.opened())) for _ in range(2)]
    for name in names:
        fits = re.fullmatch(r"ses_[0-9A-Za-z]{26}", name)
        expect(fits is not None, f"a session's id is {name!r}")
    expect(names == sorted(names), f"the ids are {names}")


@actions("SESS-002")
async def what_a_session_says(scene: ActionsScene) -> None:
    session = session_of(await scene.opened("kit-responder"))
    expect(session.get("responder") == "kit-responder", f"it is {session!r:.200}")
    initiator = session.get("initiator")
    expect(bool(initiator) and initiator != "kit-responder", f"initiator is {initiator!r}")
    expect(session.get("state") == "new", f"its state is {session.get('state')!r}")
    expect(isinstance(session.get("created_at_ms"), int), "it has no time of creation")


@actions("SESS-003")
async def the_handshake_gives_a_token(scene: ActionsScene) -> None:
    tokens = {token_of(await scene.opened()) for _ in range(2)}
    expect(len(tokens) == 2, "two sessions have the same resume token")


@actions("SESS-004")
async def resume_rotates(scene: ActionsScene) -> None:
    opened = await scene.opened()
    answer = await resumed(scene, token_of(opened), "attempt-1")
    same = identity(session_of(answer)) == identity(session_of(opened))
    expect(same, "resume answered with another session")
    expect(token_of(answer) != token_of(opened), "the token was not rotated")


@actions("SESS-005")
async def spent_tokens_are_refused(scene: ActionsScene) -> None:
    first = token_of(await scene.opened())
    second = token_of(await resumed(scene, first, "attempt-1"))
    await resumed(scene, second, "attempt-2")
    refused(await resume(scene, first, "attempt-1"), "a spent token", 401, 404, 409, 410)


@actions("SESS-006")
async def the_same_attempt_again(scene: ActionsScene) -> None:
    first = token_of(await scene.opened())
    once = token_of(await resumed(scene, first, "attempt-1"))
    again = token_of(await resumed(scene, first, "attempt-1"))
    expect(once == again, "the same request gave another token")


@actions("SESS-007")
async def another_attempt(scene: ActionsScene) -> None:
    first = token_of(await scene.opened())
    second = token_of(await resumed(scene, first, "attempt-1"))
    refused(await resume(scene, first, "attempt-2"), "another attempt", 409)
    await resumed(scene, second, "attempt-3")


@actions("SESS-009")
async def resume_replays(scene: ActionsScene) -> None:
    opened = await scene.opened()
    name = identity(session_of(opened))
    begin = str((await scene.page(name)).get("cursor"))
    action = await scene.submit("echo", {}, session_id=name)
    await scene.ended(action)
    answer = await resumed(scene, token_of(opened), "attempt-1", after=begin)
    replay = [members(one) for one in items(members(answer.get("replay")).get("events"))]
    wanted = await scene.page(name, begin, limit=1000)
    expect(bool(replay) and replay == items(wanted.get("events")), f"it replayed {len(replay)}")


@actions("SESS-010")
async def tokens_that_nobody_gave(scene: ActionsScene) -> None:
    refused(await resume(scene, "x" * 43, "attempt-1"), "a token that nobody gave", 401, 404)


@actions("SESS-011")
async def tokens_are_told_to_nobody(scene: ActionsScene) -> None:
    opened = await scene.opened()
    first, name = token_of(opened), identity(session_of(opened))
    second = token_of(await resumed(scene, first, "attempt-1"))
    third = token_of(await resumed(scene, second, "attempt-2"))
    found = [
        await resume(scene, first, "attempt-9"),
        await scene.get(f"/sessions/{name}"),
        await scene.get("/sessions"),
        await scene.get(f"/sessions/{name}/events"),
    ]
    for answer in found:
        told = [token for token in (first, second, third) if token.encode() in answer.raw]
        expect(not told, f"an answer with status {answer.status} tells a resume token")


@actions("SESS-012")
async def a_session_shows_its_actions(scene: ActionsScene) -> None:
    name = identity(session_of(await scene.opened()))
    action = await scene.submit("ask", {"name": scene.mark}, session_id=name)
    await scene.reaches(action, "pending_approval")
    shown = await _state(scene, name)
    expect(shown == "waiting_for_human", f"with an action that waits it is {shown}")
    await scene.post(f"/actions/{identity(action)}/deny")
    await scene.ended(action)
    shown = await _state(scene, name)
    expect(shown == "active", f"without an open action it is {shown}")


async def _state(scene: ActionsScene, name: str) -> Any:
    answer = await scene.get(f"/sessions/{name}")
    return session_of(answer.members).get("state")


@actions("SESS-013")
async def closed_sessions(scene: ActionsScene) -> None:
    name = identity(session_of(await scene.opened()))
    await scene.ended(await scene.submit("echo", {}, session_id=name))
    for _ in range(2):
        answer = await scene.post(f"/sessions/{name}/close")
        expect(answer.status == 200, f"closing was answered with {answer}")
    answer = await scene.submitting("echo", {}, session_id=name)
    refused(answer, "an action in a closed session", 409, 410)
    shown = await _state(scene, name)
    expect(shown in ("completed", "settled"), f"a closed session is {shown}")


@actions("SESS-014")
async def tokens_of_others(scene: ActionsScene) -> None:
    key = scene.other()
    opened = await scene.opened()
    token = token_of(opened)
    scene.client.secrets.add(token)
    body = {"resume_token": token, "attempt_id": "attempt-x"}
    answer = await scene.post("/resume", body, key=key)
    refused(answer, "another principal's resume", 401, 403, 404)
    await resumed(scene, token, "attempt-1")
