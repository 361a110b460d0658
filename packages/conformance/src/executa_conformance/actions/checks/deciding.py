"""Cancelling, approving and redriving (R-45 to R-47)."""

import asyncio
from functools import partial

from executa_conformance.actions.scene import ENDED, ActionsScene, identity, refused
from executa_conformance.reading import expect, members
from executa_conformance.registry import check

actions = partial(check, role="actions")


async def cancel(scene: ActionsScene, action: dict[str, object]) -> None:
    """Ask an action to end."""
    answer = await scene.post(f"/actions/{identity(action)}/cancel", {"reason": "the kit's"})
    expect(answer.status in (200, 202), f"cancelling was answered with {answer}")


@actions("ACTN-021")
async def a_cancellation_has_one_outcome(scene: ActionsScene) -> None:
    action = await scene.submit("wait", {"seconds": 20})
    await scene.reaches(action, "running", "streaming")
    await cancel(scene, action)
    record, result = await scene.ended(action)
    told = members(record.get("cancellation"))
    expect(bool(told.get("requested_by")), f"the cancellation is recorded as {told!r:.160}")
    expect(told.get("outcome") == "confirmed", f"its outcome is {told.get('outcome')!r}")
    expect(record.get("state") == "cancelled", f"the action is {record.get('state')}")
    expect(result.get("status") == "cancelled", f"its result is {result!r:.120}")


@actions("ACTN-022", patience=2)
async def a_mutating_action_is_not_retried(scene: ActionsScene) -> None:
    action = await scene.submit("stubborn", {"seconds": 8})
    await scene.reaches(action, "running", "streaming")
    await cancel(scene, action)
    record, result = await scene.ended(action)
    outcome = members(record.get("cancellation")).get("outcome")
    expect(outcome == "needs_reconciliation", f"the outcome is {outcome!r}")
    expect(record.get("state") == "dead_lettered", f"the action is {record.get('state')}")
    expect(result.get("status") == "requires_human", f"its result is {result!r:.120}")
    expect(record.get("attempt", 1) == 1, f"it was tried {record.get('attempt')} times")


@actions("ACTN-023")
async def cancelled_before_it_ran(scene: ActionsScene) -> None:
    action = await scene.submit("ask", {"name": scene.mark})
    await scene.reaches(action, "pending_approval")
    await cancel(scene, action)
    record, _ = await scene.ended(action)
    expect(record.get("state") == "cancelled", f"the action is {record.get('state')}")
    outcome = members(record.get("cancellation")).get("outcome")
    expect(outcome == "confirmed", f"the outcome is {outcome!r}")
    _, counted = await scene.ended(await scene.submit("count", {"name": scene.mark}))
    expect(counted.get("output") == 1, "an action that was cancelled while it waited was run")


@actions("ACTN-024")
async def approval_comes_first(scene: ActionsScene) -> None:
    action = await scene.submit("ask", {"name": scene.mark})
    record = await scene.reaches(action, "pending_approval")
    expect(record.get("state") == "pending_approval", f"it is {record.get('state')}")
    answer = await scene.get(f"/actions/{identity(action)}/result")
    status = members(answer.members.get("result")).get("status")
    expect(status == "pending_approval", f"meanwhile its result is {answer}")
    answer = await scene.post(f"/actions/{identity(action)}/approve")
    expect(answer.status == 200, f"approving was answered with {answer}")
    record, result = await scene.ended(action)
    expect(record.get("state") == "completed", f"the action is {record.get('state')}")
    expect(result.get("output") == 1, f"the tool was called {result.get('output')!r} times")


@actions("ACTN-025")
async def denied(scene: ActionsScene) -> None:
    action = await scene.submit("ask", {"name": scene.mark})
    await scene.reaches(action, "pending_approval")
    answer = await scene.post(f"/actions/{identity(action)}/deny")
    expect(answer.status == 200, f"denying was answered with {answer}")
    record, result = await scene.ended(action)
    expect(record.get("state") == "failed", f"the action is {record.get('state')}")
    expect(result.get("status") == "failed", f"its result is {result!r:.120}")
    _, counted = await scene.ended(await scene.submit("count", {"name": scene.mark}))
    expect(counted.get("output") == 1, "a denied action was run")


@actions("ACTN-026")
async def deciding_twice(scene: ActionsScene) -> None:
    action = await scene.submit("ask", {"name": scene.mark})
    await scene.reaches(action, "pending_approval")
    path = f"/actions/{identity(action)}"
    for _ in range(2):
        answer = await scene.post(f"{path}/approve")
        expect(answer.status == 200, f"approving was answered with {answer}")
    refused(await scene.post(f"{path}/deny"), "denying what was approved", 409)
    await scene.ended(action)


@actions("ACTN-028", patience=2)
async def dead_letters_are_redriven(scene: ActionsScene) -> None:
    done = await scene.submit("echo")
    await scene.ended(done)
    answer = await scene.post(f"/actions/{identity(done)}/redrive")
    refused(answer, "redriving what was completed", 409)
    dead = await scene.submit("stubborn", {"seconds": 2}, timeout_ms=300)
    record, _ = await scene.ended(dead)
    expect(record.get("state") == "dead_lettered", f"it is {record.get('state')}")
    answer = await scene.post(f"/actions/{identity(dead)}/redrive")
    expect(answer.status in (200, 202), f"redriving was answered with {answer}")
    again = members(answer.members.get("action"))
    expect(identity(again) != identity(dead), "the dead letter itself was run again")
    expect(again.get("redrive_of") == identity(dead), "the new action does not name the old one")


@actions("ACTN-035")
async def of_two_racers_one_wins(scene: ActionsScene) -> None:
    action = await scene.submit("ask", {"name": scene.mark})
    await scene.reaches(action, "pending_approval")
    path = f"/actions/{identity(action)}"
    answers = await asyncio.gather(
        *(scene.post(f"{path}/{verb}") for verb in ("approve", "deny", "approve", "deny"))
    )
    statuses = sorted(answer.status for answer in answers)
    expect(statuses == [200, 200, 409, 409], f"two decisions, twice each, gave {statuses}")
    record, _ = await scene.ended(action)
    expect(record.get("state") in ENDED, f"the action is {record.get('state')}")
    approved = {answer.status for answer in answers[::2]} == {200}
    wanted = "completed" if approved else "failed"
    expect(record.get("state") == wanted, f"the action is {record.get('state')}, not {wanted}")
