"""Approvals: durable, bound to content, expiring, decided by principals that may (R-46)."""

import asyncio
from pathlib import Path

import pytest

from executa_host.actions.faults import ActionsError, Code
from executa_host.actions.records import ActionState, Approval, ApprovalStatus
from executa_host.actions.requests import OWN_WORK, Caller, Scope
from executa_host.actions.settings import CapabilityConfig, EngineSettings
from executa_protocol.actions import ResultStatus
from executa_protocol.chunks import ChunkKind
from executa_protocol.receipts import ReceiptKind
from tests.actions.rig import ANA, BOSS, Rig
from tests.actions.scripted import PATIENCE, tool

S = ActionState
ASSISTANT = Caller(principal="assistant", scopes=OWN_WORK | {Scope.APPROVE})


def approval_of(record: object) -> Approval:
    approval = getattr(record, "approval", None)
    assert isinstance(approval, Approval)
    return approval


async def pending(rig: Rig, capability: str = "p.wire") -> str:
    """An action that awaits an approval."""
    record = await rig.submit(capability)
    await rig.until(record.action_id, S.PENDING_APPROVAL)
    return record.action_id


async def refused(
    rig: Rig, decide: str, action_id: str, caller: Caller = BOSS, **more: str
) -> Code:
    with pytest.raises(ActionsError) as refusal:
        await getattr(rig.engine, decide)(caller, action_id, **more)
    return refusal.value.code


async def test_an_action_waits_for_its_approval_and_then_runs(rig: Rig) -> None:
    action_id = await pending(rig)
    waiting = await rig.engine.result(ANA, action_id)
    assert not rig.runner.runs

    record = await rig.engine.approve(BOSS, action_id, note="fine")
    run = await rig.runner.begun(action_id)
    run.answer("done")
    outcome = await rig.outcome(action_id)

    assert waiting.result is not None
    assert waiting.result.status is ResultStatus.PENDING_APPROVAL
    assert (record.state, approval_of(record).status) == (S.PENDING_APPROVAL, "approved")
    assert approval_of(record).decided_by == "boss"
    assert outcome.action.state is S.COMPLETED
    assert await rig.states(action_id) == [
        "accepted",
        "queued",
        "running",
        "pending_approval",
        "running",
        "completed",
    ]
    receipts = await rig.store.receipts(action_id)
    assert [receipt.kind for receipt in receipts] == [
        ReceiptKind.ACCEPTANCE,
        ReceiptKind.APPROVAL,
        ReceiptKind.OUTCOME,
    ]
    chunks = await rig.store.chunks(action_id, 0, 10)
    assert [chunk.kind for chunk in chunks] == [ChunkKind.PENDING_APPROVAL, ChunkKind.END]


async def test_a_denied_action_fails_and_never_runs(rig: Rig) -> None:
    action_id = await pending(rig)
    record = await rig.engine.deny(BOSS, action_id, note="too much")
    outcome = await rig.outcome(action_id)

    assert record.state is S.FAILED
    assert outcome.result is not None
    assert outcome.result.error
    assert outcome.result.error.code == "APPROVAL_DENIED"
    assert "too much" in outcome.result.error.message
    assert not rig.runner.runs


async def test_deciding_twice_the_same_way_is_harmless_and_the_other_way_a_conflict(
    rig: Rig,
) -> None:
    action_id = await pending(rig)
    await rig.engine.approve(BOSS, action_id)
    (await rig.runner.begun(action_id)).answer()
    await rig.outcome(action_id)
    assert (await rig.engine.approve(BOSS, action_id)).state is S.COMPLETED
    assert await refused(rig, "deny", action_id) is Code.ALREADY_DECIDED

    action_id = await pending(rig)
    await rig.engine.deny(BOSS, action_id)
    assert (await rig.engine.deny(BOSS, action_id)).state is S.FAILED
    assert await refused(rig, "approve", action_id) is Code.ALREADY_DECIDED


async def test_a_decision_waits_for_a_slot_as_every_action_does(rig: Rig) -> None:
    action_id = await pending(rig)
    runs = [await rig.running("p.read") for _ in range(16)]
    await rig.engine.approve(BOSS, action_id)
    assert (await rig.record(action_id)).state is S.PENDING_APPROVAL
    runs[0][1].answer()
    (await rig.runner.begun(action_id)).answer()
    await rig.outcome(action_id)
    for _, run in runs:
        run.answer()
    for other, _ in runs:
        await rig.outcome(other)


async def test_waiting_does_not_consume_the_actions_run_time(rig: Rig) -> None:
    action_id = await pending(rig)
    rig.clock.advance(3600)
    await rig.engine.approve(BOSS, action_id)
    run = await rig.runner.begun(action_id)
    assert run.attempt.timeout_ms == 60_000
    run.answer()


async def test_an_approval_expires(rig: Rig) -> None:
    action_id = await pending(rig)
    rig.clock.advance(86_400)
    record = await rig.until(action_id, S.EXPIRED)
    assert approval_of(record).status is ApprovalStatus.EXPIRED
    assert await refused(rig, "approve", action_id) is Code.ALREADY_DECIDED
    assert not rig.runner.runs


# --- Content. -------------------------------------------------------------------------------------


async def test_what_was_looked_at_is_what_is_approved(rig: Rig) -> None:
    action_id = await pending(rig)
    content = approval_of(await rig.record(action_id)).content
    assert await refused(rig, "approve", action_id, content="0" * 64) is Code.CONTENT_CHANGED
    await rig.engine.approve(BOSS, action_id, content=content)
    (await rig.runner.begun(action_id)).answer()


async def test_a_change_of_the_tool_voids_an_approval_that_was_not_yet_used(rig: Rig) -> None:
    action_id = await pending(rig)
    first = approval_of(await rig.record(action_id)).content
    rig.catalog.tools["p.wire"] = tool("wire", approval=True, description="wires all of it")
    await rig.engine.approve(BOSS, action_id)
    with rig.store.watch(action_id) as bell:
        record = await rig.record(action_id)
        async with asyncio.timeout(PATIENCE):
            while approval_of(record).status is not ApprovalStatus.REQUESTED:
                await bell.wait()
                bell.clear()
                record = await rig.record(action_id)

    assert not rig.runner.runs
    assert approval_of(record).content != first
    assert not approval_of(record).decided_by
    await rig.engine.approve(BOSS, action_id)
    (await rig.runner.begun(action_id)).answer()
    assert (await rig.outcome(action_id)).action.state is S.COMPLETED


async def test_what_was_approved_is_not_run_if_its_tool_cannot_be_looked_at(rig: Rig) -> None:
    action_id = await pending(rig)
    rig.catalog.down = True
    await rig.engine.approve(BOSS, action_id)
    outcome = await rig.outcome(action_id)

    assert not rig.runner.runs
    assert outcome.action.state is S.FAILED
    assert outcome.result is not None
    assert outcome.result.error
    assert (outcome.result.error.code, outcome.result.error.retryable) == (
        "CAPABILITY_UNAVAILABLE",
        True,
    )


async def test_two_inputs_have_two_contents(rig: Rig) -> None:
    one = approval_of(await rig.submit("p.wire", {"text": "1"})).content
    two = approval_of(await rig.submit("p.wire", {"text": "2"})).content
    assert one != two


# --- Who. -----------------------------------------------------------------------------------------


async def test_only_a_key_that_may_decides(rig: Rig) -> None:
    action_id = await pending(rig)
    assert await refused(rig, "approve", action_id, ANA) is Code.APPROVAL_NOT_YOURS
    assert await refused(rig, "deny", action_id, ANA) is Code.APPROVAL_NOT_YOURS
    stranger = Caller(principal="boss", tenant="other", scopes=frozenset({Scope.APPROVE}))
    assert await refused(rig, "approve", action_id, stranger) is Code.UNKNOWN_ACTION


async def test_a_capability_may_name_its_approvers(rig: Rig) -> None:
    rig.catalog.configured["p.wire"] = CapabilityConfig(approvers=("boss",))
    action_id = await pending(rig)
    assert await refused(rig, "approve", action_id, ASSISTANT) is Code.APPROVAL_NOT_YOURS
    await rig.engine.approve(BOSS, action_id)
    (await rig.runner.begun(action_id)).answer()


async def test_nobody_decides_about_its_own_where_that_is_ruled_out(
    tmp_path: Path,
) -> None:
    settings = EngineSettings(own_approvals=False)
    async with Rig(tmp_path / "a.db", settings) as rig:
        record = await rig.submit("p.wire", caller=ASSISTANT)
        action_id = record.action_id
        await rig.until(action_id, S.PENDING_APPROVAL)
        assert await refused(rig, "approve", action_id, ASSISTANT) is Code.APPROVAL_NOT_YOURS
        await rig.engine.approve(BOSS, action_id)
        (await rig.runner.begun(action_id)).answer()


async def test_who_may_decide_can_submit_with_its_decision(rig: Rig) -> None:
    record = await rig.submit("p.wire", caller=ASSISTANT, approval="given")
    (await rig.runner.begun(record.action_id)).answer()
    await rig.outcome(record.action_id)

    assert "pending_approval" not in await rig.states(record.action_id)
    receipts = await rig.store.receipts(record.action_id)
    assert [receipt.kind for receipt in receipts][:2] == ["acceptance", "approval"]
    with pytest.raises(ActionsError) as refusal:
        await rig.submit("p.wire", approval="given")
    assert refusal.value.code is Code.APPROVAL_NOT_YOURS


async def test_a_caller_may_ask_for_an_approval_that_the_contract_does_not_need(rig: Rig) -> None:
    record = await rig.submit("p.read", approval="ask")
    await rig.until(record.action_id, S.PENDING_APPROVAL)
    await rig.engine.deny(BOSS, record.action_id)


async def test_an_action_that_needs_none_awaits_none(rig: Rig) -> None:
    action_id, run = await rig.running("p.read")
    assert await refused(rig, "approve", action_id) is Code.NOT_PENDING_APPROVAL
    run.answer()


async def test_a_cancelled_action_awaits_nobody_any_more(rig: Rig) -> None:
    action_id = await pending(rig)
    record = await rig.engine.cancel(ANA, action_id)
    assert record.state is S.CANCELLED
    assert approval_of(record).status is ApprovalStatus.WITHDRAWN
    assert await refused(rig, "approve", action_id) is Code.NOT_PENDING_APPROVAL


async def test_a_pending_approval_survives_a_restart(rig: Rig) -> None:
    action_id = await pending(rig)
    approved = await pending(rig)
    runs = [await rig.running("p.read") for _ in range(16)]
    await rig.engine.approve(BOSS, approved)
    await rig.reopen()

    for other, _ in runs:
        (await rig.runner.begun(other)).answer()
        await rig.outcome(other)
    (await rig.runner.begun(approved)).answer()
    await rig.engine.approve(BOSS, action_id)
    (await rig.runner.begun(action_id)).answer()
    for each in (approved, action_id):
        assert (await rig.outcome(each)).action.state is S.COMPLETED
