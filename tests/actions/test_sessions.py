"""Durable sessions as callers see them (R-49, R-50)."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any

import pytest

from executa_host.actions.faults import ActionsError, Code
from executa_host.actions.interface import Opened
from executa_host.actions.records import ActionState, SessionState
from executa_host.actions.requests import Caller, Scope, SessionQuery
from executa_protocol.limits import RESUME_WINDOW
from tests.actions.rig import ANA, BEN, BOSS, STRANGER, Rig

S = ActionState
CLEO = Caller(principal="cleo")


async def refused(work: Awaitable[Any]) -> Code:
    with pytest.raises(ActionsError) as refusal:
        await work
    return refusal.value.code


@pytest.fixture
async def opened(rig: Rig) -> Opened:
    """A session from ana to ben."""
    return await rig.engine.sessions.open(ANA, responder="ben", label="trip")


async def test_a_session_begins_new_and_both_parties_see_it(rig: Rig, opened: Opened) -> None:
    session = opened.session
    assert (session.initiator, session.responder) == ("ana", "ben")
    assert (session.state, session.label, session.cursor) == (SessionState.NEW, "trip", "s1")
    for caller in (ANA, BEN, BOSS):
        assert await rig.engine.sessions.get(caller, session.session_id) == session
    for caller in (CLEO, STRANGER):
        assert await rig.engine.sessions.get(caller, session.session_id) is None


async def test_parties_put_actions_into_it_and_nobody_else_does(rig: Rig, opened: Opened) -> None:
    session_id = opened.session.session_id
    one = await rig.submit(session_id=session_id)
    two = await rig.submit(session_id=session_id, caller=BEN)
    assert await refused(rig.submit(session_id=session_id, caller=CLEO)) is Code.UNKNOWN_SESSION
    assert await refused(rig.submit(session_id=session_id, caller=BOSS)) is Code.FORBIDDEN
    assert await rig.engine.get(ANA, two.action_id) is not None
    assert await rig.engine.get(BEN, one.action_id) is not None
    assert await rig.engine.get(CLEO, one.action_id) is None
    for record in (one, two):
        (await rig.runner.begun(record.action_id)).answer()


async def test_sessions_are_listed_to_their_parties(rig: Rig, opened: Opened) -> None:
    sessions = rig.engine.sessions
    await sessions.open(CLEO, responder="dora")
    assert [each.session_id for each in (await sessions.list(BEN)).records] == [
        opened.session.session_id
    ]
    assert len((await sessions.list(BOSS)).records) == 2
    wrong = sessions.list(ANA, SessionQuery(limit=0))
    assert await refused(wrong) is Code.OUT_OF_RANGE


# --- Resume. --------------------------------------------------------------------------------------


async def test_a_resume_rotates_the_token_and_notes_the_head(rig: Rig, opened: Opened) -> None:
    action_id, run = await rig.running(session_id=opened.session.session_id)
    resumed = await rig.engine.sessions.resume(ANA, opened.resume_token, attempt_id="1")
    page = await rig.engine.events(ANA, opened.session.session_id, opened.session.cursor)
    run.answer()

    assert resumed.resume_token != opened.resume_token
    assert resumed.session.state is SessionState.PROCESSING
    assert page.cursor == resumed.session.cursor
    assert {event.action_id for event in page.events} == {"", action_id}
    assert len(resumed.resume_token) >= 43  # 256 bits


async def test_a_lost_answer_is_given_again_to_the_same_attempt(rig: Rig, opened: Opened) -> None:
    sessions, token = rig.engine.sessions, opened.resume_token
    first = await sessions.resume(ANA, token, attempt_id="1")
    rig.clock.advance(RESUME_WINDOW)
    again = await sessions.resume(ANA, token, attempt_id="1")
    assert again.resume_token == first.resume_token
    assert await refused(sessions.resume(ANA, token, attempt_id="2")) is Code.RESUME_CONFLICT
    rig.clock.advance(0.001)
    assert await refused(sessions.resume(ANA, token, attempt_id="1")) is Code.RESUME_SPENT
    await sessions.resume(ANA, first.resume_token, attempt_id="3")


async def test_a_reused_token_revokes_its_chain_and_a_party_attaches_anew(
    rig: Rig, opened: Opened
) -> None:
    sessions, token = rig.engine.sessions, opened.resume_token
    first = await sessions.resume(ANA, token, attempt_id="1")
    rig.clock.advance(RESUME_WINDOW + 1)
    assert await refused(sessions.resume(ANA, token, attempt_id="2")) is Code.RESUME_REVOKED
    late = sessions.resume(ANA, first.resume_token, attempt_id="3")
    assert await refused(late) is Code.RESUME_REVOKED
    anew = await sessions.attach(ANA, opened.session.session_id)
    await sessions.resume(ANA, anew.resume_token, attempt_id="4")


async def test_another_principal_gains_nothing_by_a_token(rig: Rig, opened: Opened) -> None:
    sessions, token = rig.engine.sessions, opened.resume_token
    for caller in (BEN, STRANGER, BOSS):
        assert await refused(sessions.resume(caller, token, attempt_id="1")) is Code.RESUME_UNKNOWN
    await sessions.resume(ANA, token, attempt_id="1")
    assert await refused(sessions.attach(BOSS, opened.session.session_id)) is Code.FORBIDDEN
    assert await refused(sessions.attach(CLEO, opened.session.session_id)) is Code.UNKNOWN_SESSION


@pytest.mark.parametrize("token", ["", "x", "x" * 5000, "\x00", "é"])
async def test_what_is_no_token_is_unknown(rig: Rig, token: str) -> None:
    resume = rig.engine.sessions.resume(ANA, token, attempt_id="1")
    assert await refused(resume) is Code.RESUME_UNKNOWN


@pytest.mark.parametrize("attempt_id", ["", "x" * 129, "a\nb"])
async def test_an_attempt_needs_an_id(rig: Rig, opened: Opened, attempt_id: str) -> None:
    resume = rig.engine.sessions.resume(ANA, opened.resume_token, attempt_id=attempt_id)
    assert await refused(resume) is Code.INVALID_REQUEST


async def test_racers_with_one_token_get_one_new_token(rig: Rig, opened: Opened) -> None:
    resumes = [
        rig.engine.sessions.resume(ANA, opened.resume_token, attempt_id=str(number))
        for number in range(10)
    ]
    answers = await asyncio.gather(*resumes, return_exceptions=True)
    assert sum(isinstance(answer, Opened) for answer in answers) == 1


async def test_a_resume_survives_a_restart(rig: Rig, opened: Opened) -> None:
    first = await rig.engine.sessions.resume(ANA, opened.resume_token, attempt_id="1")
    await rig.reopen()
    again = await rig.engine.sessions.resume(ANA, opened.resume_token, attempt_id="1")
    assert again.resume_token == first.resume_token
    await rig.engine.sessions.resume(ANA, again.resume_token, attempt_id="2")


async def test_tokens_appear_in_no_repr_log_error_or_file(
    rig: Rig, opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = opened.resume_token
    first = await rig.engine.sessions.resume(ANA, token, attempt_id="1")
    with pytest.raises(ActionsError) as refusal:
        await rig.engine.sessions.resume(ANA, token, attempt_id="2")
    await rig.engine.close()
    await rig.store.close()
    kept = b"".join(path.read_bytes() for path in rig.path.parent.iterdir())
    await rig.__aenter__()

    for secret in (token, first.resume_token):
        assert secret not in repr(opened) + repr(first) + str(refusal.value) + caplog.text
        assert secret.encode() not in kept


# --- The end. -------------------------------------------------------------------------------------


async def test_a_completed_session_lets_its_actions_end_and_is_settled_later(
    rig: Rig, opened: Opened
) -> None:
    session_id = opened.session.session_id
    action_id, run = await rig.running(session_id=session_id)
    closed = await rig.engine.sessions.close(ANA, session_id)
    assert closed.state is SessionState.COMPLETED
    assert await refused(rig.submit(session_id=session_id)) is Code.SESSION_ENDED
    rig.clock.advance(61)
    await rig.engine.tidy()
    open_still = await rig.engine.sessions.get(ANA, session_id)
    run.answer()
    await rig.outcome(action_id)
    await rig.engine.tidy()
    settled = await rig.engine.sessions.get(ANA, session_id)

    assert open_still is not None
    assert open_still.state is SessionState.COMPLETED
    assert settled is not None
    assert (settled.state, settled.outcome) == (SessionState.SETTLED, "completed")
    assert (await rig.engine.events(ANA, session_id, "")).ended
    token = rig.engine.sessions.resume(ANA, opened.resume_token, attempt_id="1")
    assert await refused(token) is Code.SESSION_ENDED


@pytest.mark.parametrize("outcome", ["cancelled", "failed"])
async def test_a_session_that_is_given_up_asks_its_actions_to_end(
    rig: Rig, opened: Opened, outcome: Any
) -> None:
    session_id = opened.session.session_id
    running, run = await rig.running("p.send", session_id=session_id)
    runs = [await rig.running("p.read") for _ in range(15)]
    waiting = await rig.submit("p.read", session_id=session_id)
    closed = await rig.engine.sessions.close(BEN, session_id, outcome)
    run.acknowledge()

    assert closed.state == outcome
    assert (await rig.outcome(waiting.action_id)).action.state is S.CANCELLED
    assert (await rig.outcome(running)).action.state is S.CANCELLED
    for _, other in runs:
        other.answer()


async def test_a_session_needs_the_scope(rig: Rig) -> None:
    caller = Caller(principal="ana", scopes=frozenset({Scope.READ}))
    assert await refused(rig.engine.sessions.open(caller, responder="ben")) is Code.FORBIDDEN
    assert await refused(rig.engine.sessions.open(ANA, responder="")) is Code.INVALID_REQUEST
    wrong = rig.engine.sessions.open(ANA, responder="ben", label="\x00")
    assert await refused(wrong) is Code.INVALID_REQUEST
