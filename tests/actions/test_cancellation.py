"""Cancellation is a request, and what came of it is recorded honestly (R-45)."""

import pytest

from executa_host.actions.faults import ActionsError, Code
from executa_host.actions.records import (
    ActionRecord,
    ActionState,
    Cancellation,
    DeadLetter,
    Mode,
)
from executa_host.actions.runner import Ended
from executa_protocol.actions import CancelOutcome, ResultStatus
from executa_protocol.chunks import ChunkKind
from tests.actions.rig import ANA, BEN, Rig, output_of

S = ActionState


def cancellation_of(record: ActionRecord) -> Cancellation:
    assert isinstance(record.cancellation, Cancellation)
    return record.cancellation


async def test_what_never_reached_a_plugin_is_cancelled_at_once(rig: Rig) -> None:
    runs = [await rig.running("p.send") for _ in range(16)]
    waiting = await rig.submit("p.send")
    record = await rig.engine.cancel(ANA, waiting.action_id, "changed my mind")

    assert record.state is S.CANCELLED
    assert cancellation_of(record).outcome is CancelOutcome.CONFIRMED
    assert cancellation_of(record).reason == "changed my mind"
    for action_id, run in runs:
        run.answer()
        await rig.outcome(action_id)
    assert not rig.runner.of(waiting.action_id)
    receipts = await rig.store.receipts(waiting.action_id)
    assert [receipt.kind for receipt in receipts] == ["acceptance", "cancellation", "outcome"]


async def test_a_plugin_that_confirms_cancels_a_mutating_action(rig: Rig) -> None:
    action_id, run = await rig.running("p.send")
    asked = await rig.engine.cancel(ANA, action_id, "stop")
    assert asked.state is S.CANCELLING
    assert not cancellation_of(asked).outcome
    assert run.cancelled.is_set()
    assert run.reason == "stop"
    run.acknowledge()
    outcome = await rig.outcome(action_id)

    assert outcome.action.state is S.CANCELLED
    assert outcome.result is not None
    assert outcome.result.status is ResultStatus.CANCELLED
    assert outcome.result.cancellation is CancelOutcome.CONFIRMED


async def test_an_answer_that_still_comes_counts(rig: Rig) -> None:
    action_id, run = await rig.running("p.send")
    await rig.engine.cancel(ANA, action_id)
    run.answer("sent")
    record = await rig.until(action_id, S.COMPLETED)
    assert cancellation_of(record).outcome is CancelOutcome.COMPLETED_FIRST
    assert output_of(record) == b'"sent"'

    action_id, run = await rig.running("p.send")
    await rig.engine.cancel(ANA, action_id)
    run.fail()
    record = await rig.until(action_id, S.FAILED)
    assert cancellation_of(record).outcome is CancelOutcome.COMPLETED_FIRST


@pytest.mark.parametrize("capability", ["p.send", "p.put"])
async def test_an_end_that_nobody_confirms_needs_reconciliation(rig: Rig, capability: str) -> None:
    action_id, run = await rig.running(capability)
    await rig.engine.cancel(ANA, action_id)
    run.end(Ended(kind="cancelled"))
    outcome = await rig.outcome(action_id)

    assert outcome.action.state is S.DEAD_LETTERED
    assert isinstance(outcome.action.dead_letter, DeadLetter)
    assert outcome.action.dead_letter.reason == "cancel_unconfirmed"
    assert outcome.result is not None
    assert outcome.result.status is ResultStatus.REQUIRES_HUMAN
    assert outcome.result.cancellation is CancelOutcome.NEEDS_RECONCILIATION
    rig.clock.advance(10_000)
    assert len(rig.runner.runs) == 1  # never retried


async def test_what_only_reads_is_confirmed_whatever_the_plugin_says(rig: Rig) -> None:
    action_id, run = await rig.running("p.read")
    await rig.engine.cancel(ANA, action_id)
    run.lose()
    record = await rig.until(action_id, S.CANCELLED)
    assert cancellation_of(record).outcome is CancelOutcome.CONFIRMED


async def test_cancelling_again_and_cancelling_what_has_ended_are_harmless(rig: Rig) -> None:
    action_id, run = await rig.running("p.read")
    first = await rig.engine.cancel(ANA, action_id, "one")
    again = await rig.engine.cancel(ANA, action_id, "two")
    assert cancellation_of(again) == cancellation_of(first)
    run.acknowledge()
    await rig.outcome(action_id)
    ended = await rig.engine.cancel(ANA, action_id, "three")
    assert ended.state is S.CANCELLED
    assert cancellation_of(ended).reason == "one"
    receipts = await rig.store.receipts(action_id)
    assert len(receipts) == 3


async def test_chunks_that_come_while_it_is_cancelled_are_kept(rig: Rig) -> None:
    action_id, run = await rig.running("p.send", mode=Mode.STREAMING)
    run.show(ChunkKind.DATA, 1)
    await rig.until(action_id, S.STREAMING)
    await rig.engine.cancel(ANA, action_id)
    run.show(ChunkKind.DATA, 2)
    run.acknowledge()
    await rig.outcome(action_id)
    chunks = await rig.store.chunks(action_id, 0, 10)
    assert [bytes(chunk.data) for chunk in chunks][:2] == [b"1", b"2"]
    assert chunks[-1].kind is ChunkKind.END


async def test_only_those_who_see_an_action_cancel_it(rig: Rig) -> None:
    action_id, run = await rig.running()
    with pytest.raises(ActionsError) as refused:
        await rig.engine.cancel(BEN, action_id)
    assert refused.value.code is Code.UNKNOWN_ACTION
    with pytest.raises(ActionsError) as wrong:
        await rig.engine.cancel(ANA, action_id, "a\x00b")
    assert wrong.value.path == "$.reason"
    run.answer()


async def test_a_crash_while_cancelling_is_recorded_as_what_it_is(rig: Rig) -> None:
    sending, _ = await rig.running("p.send")
    reading, _ = await rig.running("p.read")
    for action_id in (sending, reading):
        await rig.engine.cancel(ANA, action_id)
    await rig.reopen()

    assert (await rig.record(sending)).state is S.DEAD_LETTERED
    assert (await rig.record(reading)).state is S.CANCELLED
    outcome = cancellation_of(await rig.record(sending)).outcome
    assert outcome is CancelOutcome.NEEDS_RECONCILIATION
