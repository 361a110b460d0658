"""What an engine makes of what an engine before it left open (R-47)."""

import pytest

from executa_host.actions.records import ActionState, DeadLetter, Mode
from executa_protocol.chunks import ChunkKind
from tests.actions.rig import Rig

S = ActionState


async def test_what_waited_goes_on(rig: Rig) -> None:
    runs = [await rig.running("p.send") for _ in range(16)]
    waiting = await rig.submit("p.send")
    await rig.until(waiting.action_id, S.QUEUED)
    await rig.reopen()

    (await rig.runner.begun(waiting.action_id)).answer()
    assert (await rig.outcome(waiting.action_id)).action.state is S.COMPLETED
    for action_id, _ in runs:
        assert (await rig.record(action_id)).state is S.DEAD_LETTERED


@pytest.mark.parametrize("capability", ["p.read", "p.put"])
async def test_what_may_run_again_does_and_keeps_its_chunks(rig: Rig, capability: str) -> None:
    action_id, run = await rig.running(capability, mode=Mode.STREAMING)
    run.show(ChunkKind.DATA, 1)
    await rig.until(action_id, S.STREAMING)
    await rig.reopen()
    again = await rig.runner.begun(action_id)
    again.show(ChunkKind.DATA, 2)
    again.answer("done")
    record = await rig.until(action_id, S.COMPLETED)

    assert run.abandoned
    assert again.attempt.attempt == 2
    assert record.attempt == 2
    chunks = await rig.store.chunks(action_id, 0, 10)
    assert [(chunk.sequence, chunk.attempt) for chunk in chunks] == [(1, 1), (2, 2), (3, 2)]
    assert (await rig.states(action_id))[2:6] == ["running", "streaming", "queued", "running"]


async def test_a_mutating_action_is_a_dead_letter_with_an_unknown_outcome(rig: Rig) -> None:
    action_id, _ = await rig.running("p.send")
    await rig.reopen()
    record = await rig.record(action_id)

    assert record.state is S.DEAD_LETTERED
    assert isinstance(record.dead_letter, DeadLetter)
    assert record.dead_letter.reason == "host_crashed"
    assert record.dead_letter.outcome_unknown
    assert not rig.runner.runs


async def test_a_crash_counts_as_an_attempt(rig: Rig) -> None:
    action_id, _ = await rig.running("p.read")
    for _ in range(2):
        await rig.reopen()
        await rig.runner.begun(action_id)
    await rig.reopen()
    record = await rig.record(action_id)

    assert record.state is S.DEAD_LETTERED
    assert isinstance(record.dead_letter, DeadLetter)
    assert (record.dead_letter.reason, record.dead_letter.attempts) == ("attempts_exhausted", 3)


async def test_a_retry_that_was_due_later_still_is(rig: Rig) -> None:
    action_id, run = await rig.running("p.read")
    run.lose()
    await rig.until(action_id, S.QUEUED)
    await rig.reopen()
    assert not rig.runner.runs
    rig.clock.advance(1)
    (await rig.runner.begun(action_id)).answer()
    assert (await rig.outcome(action_id)).action.state is S.COMPLETED


async def test_what_expired_while_nobody_looked_expires(rig: Rig) -> None:
    runs = [await rig.running("p.send") for _ in range(16)]
    waiting = await rig.submit("p.send", expires_in_ms=1000)
    await rig.until(waiting.action_id, S.QUEUED)
    rig.clock.advance(0)
    await rig.engine.close()
    rig.clock.advance(5)
    await rig.reopen()
    rig.clock.advance(0)
    assert (await rig.outcome(waiting.action_id)).action.state is S.EXPIRED
    assert len(runs) == 16


async def test_followers_go_on_after_a_restart_without_a_gap(rig: Rig) -> None:
    action_id, run = await rig.running("p.read", mode=Mode.STREAMING)
    run.show(ChunkKind.DATA, 1)
    await rig.until(action_id, S.STREAMING)
    before = await rig.events(action_id)
    await rig.reopen()
    (await rig.runner.begun(action_id)).answer()
    await rig.outcome(action_id)
    rest = await rig.events(action_id, before[-1].cursor)

    whole = [event.cursor for event in (*before, *rest)]
    assert whole == [f"a{number}" for number in range(1, len(whole) + 1)]


async def test_a_thousand_open_actions_are_all_taken_over(rig: Rig) -> None:
    ids = [(await rig.submit("p.read")).action_id for _ in range(1001)]
    await rig.reopen()
    rig.runner.auto["read"] = lambda run: run.answer()
    for run in rig.runner.runs:
        run.answer()
    for action_id in ids:
        assert (await rig.outcome(action_id)).action.state is S.COMPLETED
