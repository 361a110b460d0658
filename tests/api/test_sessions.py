"""Sessions over HTTP: handshake, resume with replay, and tokens that show up nowhere else."""

import json
import logging

import aiohttp
import pytest

from executa_host.actions.records import SessionState
from executa_host.actions.requests import ALL_SCOPES, Scope, SessionQuery
from executa_host.client import Conflict, NotFound
from executa_host.client.errors import error_of
from tests.api.rigs import Rig


async def test_a_handshake_opens_a_session_with_a_token(rig: Rig) -> None:
    client = rig.client()
    opened = await client.sessions.open("agent", label="holiday")
    assert opened.session.state is SessionState.NEW
    assert (opened.session.initiator, opened.session.responder) == ("ada", "agent")
    assert opened.resume_token not in repr(opened)
    read = await client.sessions.get(opened.session.session_id)
    assert read == opened.session
    agent = rig.client("agent")
    page = await agent.sessions.list(SessionQuery(states=("new",)))
    assert [session.session_id for session in page.records] == [opened.session.session_id]
    assert (await rig.client("bob").sessions.list()).records == ()
    assert await rig.client("bob").sessions.get(opened.session.session_id) is None


async def test_a_resume_rotates_the_token_and_replays_after_the_cursor(rig: Rig) -> None:
    client = rig.client()
    opened = await client.sessions.open("agent")
    action = (await client.submit("notebook.recall", session_id=opened.session.session_id)).action
    rig.actions.finish(action.action_id)
    resumed = await client.sessions.resume(opened.resume_token, attempt_id="one", after="c1")
    assert resumed.resume_token != opened.resume_token
    assert resumed.replay
    assert [event.cursor for event in resumed.replay.events] == ["c2", "c3"]
    again = await client.sessions.resume(opened.resume_token, attempt_id="one")
    assert again.resume_token == resumed.resume_token
    assert not again.replay
    with pytest.raises(Conflict) as refused:
        await client.sessions.resume(opened.resume_token, attempt_id="two")
    assert refused.value.code == "RESUME_CONFLICT"


async def test_a_replay_that_fails_does_not_take_the_token_away(rig: Rig) -> None:
    client = rig.client()
    token = (await client.sessions.open("agent")).resume_token
    resumed = await client.sessions.resume(token, after="c99")
    assert resumed.replay_error
    assert error_of(resumed.replay_error).code == "CURSOR_AHEAD"
    token = resumed.resume_token
    blind = rig.client("ada", Scope.SESSIONS)
    resumed = await blind.sessions.resume(token, after="")
    assert resumed.replay_error
    assert error_of(resumed.replay_error).code == "FORBIDDEN"
    assert (await client.sessions.resume(resumed.resume_token)).resume_token


async def test_another_principals_token_is_unknown(rig: Rig) -> None:
    token = (await rig.client("ada").sessions.open("agent")).resume_token
    with pytest.raises(NotFound) as refused:
        await rig.client("bob").sessions.resume(token)
    assert refused.value.code == "RESUME_UNKNOWN"
    assert token not in str(refused.value)


async def test_the_responder_attaches_and_gets_a_token_of_its_own(rig: Rig) -> None:
    opened = await rig.client("ada").sessions.open("agent")
    agent = rig.client("agent")
    attached = await agent.sessions.attach(opened.session.session_id)
    assert attached.resume_token != opened.resume_token
    assert (await agent.sessions.resume(attached.resume_token)).resume_token


async def test_a_close_is_repeated_harmlessly_and_not_turned_around(rig: Rig) -> None:
    client = rig.client()
    session_id = (await client.sessions.open("agent")).session.session_id
    for _ in range(2):
        closed = await client.sessions.close(session_id, "cancelled")
        assert closed.state is SessionState.CANCELLED
    with pytest.raises(Conflict) as refused:
        await client.sessions.close(session_id, "failed")
    assert refused.value.code == "SESSION_ENDED"


async def test_tokens_and_keys_stand_in_no_log_no_error_and_no_url(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key = rig.key("ada", scopes=ALL_SCOPES)
    client = rig.client_of(key)
    token = (await client.sessions.open("agent")).resume_token
    resumed = await client.sessions.resume(token)
    headers = {"Authorization": f"Bearer {key}"}
    answers: list[str] = []
    async with aiohttp.ClientSession(headers=headers) as http:
        wrong = [
            {"resume_token": token, "attempt_id": 7},
            {"resume_token": [token], "attempt_id": "a"},
            {token: 1, "resume_token": token, "attempt_id": "a"},
            {"resume_token": token + "\n", "attempt_id": "a"},
            {"resume_token": token * 20, "attempt_id": "a"},
            {"resume_token": token, "attempt_id": "another"},
        ]
        for body in wrong:
            async with http.post(f"{rig.url}/v1/resume", json=body) as response:
                assert response.status in (400, 409)
                answers.append(json.dumps(await response.json()) + str(response.headers))
    told = caplog.text + "".join(answers)
    for secret in (key, token, resumed.resume_token):
        assert secret not in told
    assert "exk_" not in told
    assert "POST /v1/resume" in caplog.text  # it is logged, with its principal
    assert repr(client).count("127.0.0.1") == 1
