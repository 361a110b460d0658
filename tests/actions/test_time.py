"""Time-outs, expiry, retries, dead letters: what time does to an action (R-47)."""

import pytest

from executa_host.actions.faults import ActionsError, Code
from executa_host.actions.records import ActionState, DeadLetter, Mode
from executa_host.actions.requests import OWN_WORK, Caller, Scope
from executa_protocol.actions import ResultStatus
from executa_protocol.chunks import ChunkKind
from tests.actions.rig import ANA, BOSS, ROOT, Rig
from tests.actions.scripted import ScriptedRun

S = ActionState
OPERATOR = Caller(principal="ana", scopes=OWN_WORK | {Scope.REDRIVE})


# --- Retries. -------------------------------------------------------------------------------------


@pytest.mark.parametrize("capability", ["p.read", "p.put"])
async def test_a_lost_attempt_is_made_again_after_a_pause(rig: Rig, capability: str) -> None:
    action_id, run = await rig.running(capability)
    run.lose()
    record = await rig.until(action_id, S.QUEUED)
    assert record.attempt == 2
    assert record.not_before_ms == int(rig.clock.now() * 1000) + 1000
    assert len(rig.runner.runs) == 1  # not before its time

    rig.clock.advance(1)
    again = await rig.runner.begun(action_id, 2)
    again.answer()
    await rig.until(action_id, S.COMPLETED)
    assert again.attempt.attempt == 2


async def test_pauses_grow_and_attempts_end(rig: Rig) -> None:
    action_id, run = await rig.running("p.read")
    for attempt, pause in ((2, 1), (3, 2)):
        run.lose()
        await rig.until(action_id, S.QUEUED)
        rig.clock.advance(pause)
        run = await rig.runner.begun(action_id, attempt)
    run.lose()
    record = await rig.until(action_id, S.DEAD_LETTERED)

    assert isinstance(record.dead_letter, DeadLetter)
    assert record.dead_letter.reason == "attempts_exhausted"
    assert (record.dead_letter.attempts, record.dead_letter.outcome_unknown) == (3, False)
    assert record.dead_letter.last_error
    assert record.dead_letter.last_error.code == "CONNECTION_LOST"
    outcome = await rig.outcome(action_id)
    assert outcome.result is not None
    assert outcome.result.status is ResultStatus.FAILED


async def test_chunks_of_each_attempt_are_kept_and_told_apart(rig: Rig) -> None:
    action_id, run = await rig.running("p.put", mode=Mode.STREAMING)
    run.show(ChunkKind.DATA, 1)
    await rig.until(action_id, S.STREAMING)
    run.lose()
    await rig.until(action_id, S.QUEUED)
    rig.clock.advance(1)
    run = await rig.runner.begun(action_id, 2)
    run.show(ChunkKind.DATA, 2)
    run.answer()
    await rig.until(action_id, S.COMPLETED)

    chunks = await rig.store.chunks(action_id, 0, 10)
    assert [(chunk.sequence, chunk.attempt, chunk.kind) for chunk in chunks] == [
        (1, 1, ChunkKind.DATA),
        (2, 2, ChunkKind.DATA),
        (3, 2, ChunkKind.END),
    ]


@pytest.mark.parametrize("written", [True, False])
async def test_a_mutating_action_is_never_run_again_by_itself(rig: Rig, *, written: bool) -> None:
    action_id, run = await rig.running("p.send")
    run.lose(written=written)
    outcome = await rig.outcome(action_id)

    assert outcome.result is not None
    if written:
        assert outcome.action.state is S.DEAD_LETTERED
        assert outcome.result.status is ResultStatus.REQUIRES_HUMAN
    else:
        assert outcome.action.state is S.FAILED
        assert outcome.result.error
        assert outcome.result.error.retryable
    rig.clock.advance(10_000)
    assert len(rig.runner.runs) == 1


async def test_a_tools_own_failure_is_not_tried_again_unless_it_says_so(rig: Rig) -> None:
    action_id, run = await rig.running("p.read")
    run.fail()
    await rig.until(action_id, S.FAILED)

    action_id, run = await rig.running("p.read")
    run.fail("BUSY", retryable=True)
    record = await rig.until(action_id, S.QUEUED)
    assert record.last_error
    assert record.last_error.code == "BUSY"


async def test_an_action_that_waits_for_its_retry_can_be_cancelled(rig: Rig) -> None:
    action_id, run = await rig.running("p.read")
    run.lose()
    await rig.until(action_id, S.QUEUED)
    await rig.engine.cancel(ANA, action_id)
    rig.clock.advance(100)
    assert (await rig.record(action_id)).state is S.CANCELLED
    assert len(rig.runner.runs) == 1


# --- Time-outs. -----------------------------------------------------------------------------------


async def test_an_attempt_gets_its_time_limit_from_the_contract(rig: Rig) -> None:
    _, run = await rig.running("p.slow")
    assert run.attempt.timeout_ms == 5000
    run.answer()


async def test_an_attempt_never_outlives_its_action(rig: Rig) -> None:
    _, run = await rig.running("p.read", expires_in_ms=700)
    assert run.attempt.timeout_ms == 700
    run.answer()


def _time_out(run: ScriptedRun) -> None:
    run.time_out()


async def test_a_reading_action_that_times_out_until_the_last_attempt_expires(rig: Rig) -> None:
    rig.runner.auto["read"] = _time_out
    record = await rig.submit("p.read")
    for attempt in (2, 3):
        await rig.until(record.action_id, S.QUEUED, attempt=attempt)
        rig.clock.advance(60)
    outcome = await rig.outcome(record.action_id)

    assert outcome.action.state is S.EXPIRED
    assert outcome.result is not None
    assert outcome.result.status is ResultStatus.FAILED
    assert outcome.result.error
    assert outcome.result.error.code == "EXPIRED"
    assert len(rig.runner.runs) == 3


@pytest.mark.parametrize(("written", "state"), [(True, S.DEAD_LETTERED), (False, S.EXPIRED)])
async def test_a_mutating_action_that_times_out(
    rig: Rig, *, written: bool, state: ActionState
) -> None:
    action_id, run = await rig.running("p.send")
    run.time_out(written=written)
    assert (await rig.outcome(action_id)).action.state is state


# --- Expiry. --------------------------------------------------------------------------------------


async def test_an_action_that_waits_too_long_expires(rig: Rig) -> None:
    rig.catalog.down = False
    runs = [await rig.running("p.read") for _ in range(16)]  # all slots of the plugin
    record = await rig.submit("p.read", expires_in_ms=5000)
    await rig.until(record.action_id, S.QUEUED)
    rig.clock.advance(4.9)
    assert (await rig.record(record.action_id)).state is S.QUEUED
    rig.clock.advance(0.2)
    done = await rig.until(record.action_id, S.EXPIRED)

    assert done.result
    assert done.result.status is ResultStatus.FAILED
    for _, run in runs:
        run.answer()
    for action_id, _ in runs:
        await rig.outcome(action_id)
    assert not rig.runner.of(record.action_id)


async def test_an_expired_action_leaves_the_queue_to_others(rig: Rig) -> None:
    runs = [await rig.running("p.read") for _ in range(16)]
    late = await rig.submit("p.read", expires_in_ms=1)
    after = await rig.submit("p.read")
    rig.clock.advance(1)
    await rig.until(late.action_id, S.EXPIRED)
    runs[0][1].answer()
    (await rig.runner.begun(after.action_id)).answer()
    assert (await rig.outcome(after.action_id)).action.state is S.COMPLETED


# --- Dead letters. --------------------------------------------------------------------------------


async def test_a_dead_letter_is_driven_again_as_a_new_action_once(rig: Rig) -> None:
    action_id, run = await rig.running("p.send", {"text": "pay"})
    run.lose()
    await rig.until(action_id, S.DEAD_LETTERED)
    again = await rig.engine.redrive(OPERATOR, action_id)
    twice = await rig.engine.redrive(OPERATOR, action_id)
    second = await rig.runner.begun(again.action.action_id)
    second.answer("paid")
    outcome = await rig.outcome(again.action.action_id)

    assert not again.replayed
    assert twice.replayed
    assert twice.action.action_id == again.action.action_id
    assert again.action.redrive_of == action_id
    assert bytes(second.attempt.input) == b'{"text":"pay"}'
    assert outcome.action.state is S.COMPLETED
    old = await rig.record(action_id)
    assert old.state is S.DEAD_LETTERED
    assert isinstance(old.dead_letter, DeadLetter)
    assert old.dead_letter.redriven_as == again.action.action_id
    receipts = await rig.store.receipts(again.action.action_id)
    assert action_id in bytes(receipts[0].attested).decode()


async def test_whoever_drives_it_again_does_so_for_those_whose_it_was(rig: Rig) -> None:
    opened = await rig.engine.sessions.open(ANA, responder="ben")
    session_id = opened.session.session_id
    ana = Caller(principal="ana", user_id="ana-2")
    record = await rig.submit("p.send", caller=ana, session_id=session_id, approval="ask")
    await rig.until(record.action_id, S.PENDING_APPROVAL)
    await rig.engine.approve(BOSS, record.action_id)
    (await rig.runner.begun(record.action_id)).lose()
    await rig.until(record.action_id, S.DEAD_LETTERED)
    again = (await rig.engine.redrive(ROOT, record.action_id)).action

    assert (again.tenant, again.principal, again.subject) == ("default", "root", "ana")
    assert again.delegation == ("ana", "root")
    assert again.session_id == session_id
    assert await rig.engine.get(ANA, again.action_id)
    await rig.until(again.action_id, S.PENDING_APPROVAL)  # what was asked for once is again
    await rig.engine.approve(BOSS, again.action_id)
    run = await rig.runner.begun(again.action_id)
    run.answer()
    await rig.until(again.action_id, S.COMPLETED)
    assert run.attempt.user_id == "ana-2"


async def test_nobody_is_told_to_try_again_what_may_have_happened(rig: Rig) -> None:
    action_id, run = await rig.running("p.send")
    run.lose()
    record = await rig.until(action_id, S.DEAD_LETTERED)
    outcome = await rig.outcome(action_id)
    assert isinstance(record.dead_letter, DeadLetter)
    assert record.dead_letter.outcome_unknown
    assert record.last_error
    assert not record.last_error.retryable
    assert outcome.result
    assert outcome.result.error
    assert not outcome.result.error.retryable


async def test_what_is_no_dead_letter_is_not_driven_again(rig: Rig) -> None:
    action_id, run = await rig.running("p.send")
    with pytest.raises(ActionsError) as refused:
        await rig.engine.redrive(OPERATOR, action_id)
    run.answer()
    assert refused.value.code is Code.NOT_DEAD_LETTERED
    with pytest.raises(ActionsError) as forbidden:
        await rig.engine.redrive(ANA, action_id)
    assert forbidden.value.code is Code.FORBIDDEN
