"""Actions: their records, results, modes and idempotency (R-40 to R-43, R-52, R-54)."""

import re
from functools import partial
from itertools import pairwise

from executa_conformance.actions.scene import ENDED, ActionsScene, identity, refused
from executa_conformance.reading import expect, items, members
from executa_conformance.registry import check
from executa_protocol.actions import MOVES, ActionState

actions = partial(check, role="actions")

STATES = {str(state) for state in ActionState}


@actions("ACTN-001")
async def ids_are_time_ordered(scene: ActionsScene) -> None:
    made = [identity(await scene.submit("echo", {"text": str(one)})) for one in range(3)]
    for name in made:
        fits = re.fullmatch(r"act_[0-9A-Za-z]{26}", name)
        expect(fits is not None, f"an action's id is {name!r}")
    expect(made == sorted(made), f"the ids of actions made one after another are {made}")


@actions("ACTN-002")
async def what_a_record_says(scene: ActionsScene) -> None:
    action = await scene.submit("echo", {"text": scene.mark})
    expect(action.get("capability") == scene.name("echo"), f"capability: {action!r:.160}")
    expect(action.get("mode") == "async", f"mode is {action.get('mode')!r}")
    expect(action.get("state") in STATES, f"state is {action.get('state')!r}")
    await scene.ended(action)
    view = members((await scene.view(action, "input")).get("action"))
    expect(view.get("input") == {"text": scene.mark}, f"input is {view.get('input')!r:.120}")


@actions("ACTN-003")
async def moves_are_legal(scene: ActionsScene) -> None:
    for tool, arguments in (("echo", {}), ("fail", {}), ("stream", {"steps": 2})):
        action = await scene.submit(tool, arguments)
        await scene.ended(action)
        log = await scene.whole_log(action)
        states = [str(each["state"]) for each in log if each.get("type") == "state"]
        expect(bool(states) and states[0] == "accepted", f"the states are {states}")
        expect(states[-1] in ENDED, f"the states are {states}")
        for old, new in pairwise(states):
            expect(old in STATES and new in STATES, f"there is no state {new!r}")
            legal = ActionState(new) in MOVES[ActionState(old)]
            expect(legal, f"the action went from {old} to {new}")


@actions("ACTN-004")
async def what_has_ended_stays(scene: ActionsScene) -> None:
    action = await scene.submit("echo", {"text": scene.mark})
    before, _ = await scene.ended(action)
    answer = await scene.post(f"/actions/{identity(action)}/cancel", {"reason": "too late"})
    expect(answer.status < 500, f"cancelling what has ended was answered with {answer}")
    after = await scene.record(action)
    expect(after.get("state") == before.get("state") == "completed", f"it is {after.get('state')}")


@actions("ACTN-005")
async def unknown_actions(scene: ActionsScene) -> None:
    name = "act_" + "0" * 26
    answer = await scene.get(f"/actions/{name}")
    told = members(answer.members.get("action")).get("state")
    expect(told == "unknown", f"an unknown action reads as {answer}")
    listed = await scene.get("/actions?limit=1000")
    found = {members(one).get("state") for one in items(listed.members.get("records"))}
    expect("unknown" not in found, "a list holds an unknown action")
    refused(await scene.get("/actions?state=unknown"), "a list of unknown actions", 400, 422)


@actions("ACTN-006")
async def a_completed_action(scene: ActionsScene) -> None:
    record, result = await scene.ended(await scene.submit("echo", {"text": scene.mark}))
    expect(record.get("state") == "completed", f"it is {record.get('state')}")
    expect(result.get("status") == "completed", f"the result is {result!r:.160}")
    expect(result.get("output") == {"text": scene.mark}, f"the output is {result!r:.160}")


@actions("ACTN-007")
async def a_failed_action(scene: ActionsScene) -> None:
    record, result = await scene.ended(await scene.submit("fail"))
    expect(record.get("state") == "failed", f"it is {record.get('state')}")
    expect(result.get("status") == "failed", f"the result is {result!r:.160}")
    error = members(result.get("error"))
    expect(isinstance(error.get("code"), str), f"the error is {error!r:.160}")
    words = str(error.get("message", ""))
    expect("failed on purpose" in words, f"the tool's words are {words!r}")


@actions("ACTN-008")
async def the_same_key_and_input(scene: ActionsScene) -> None:
    given = {"idempotency_key": scene.mark}
    first = await scene.submit("count", {"name": scene.mark, "seconds": 0.3}, **given)
    again = await scene.submitting("count", {"seconds": 0.3, "name": scene.mark}, **given)
    same = identity(members(again.members.get("action"))) == identity(first)
    expect(same, "while it ran, the same key gave another action")
    expect(again.members.get("replayed") is True, f"it is not marked as replayed: {again}")
    _, result = await scene.ended(first)
    late = await scene.submitting("count", {"name": scene.mark, "seconds": 0.3}, **given)
    same = identity(members(late.members.get("action"))) == identity(first)
    expect(same, "after its end, the same key gave another action")
    expect(result.get("output") == 1, f"the tool was called {result.get('output')!r} times")


@actions("ACTN-009")
async def the_same_key_and_other_input(scene: ActionsScene) -> None:
    given = {"idempotency_key": scene.mark}
    await scene.submit("echo", {"ratio": 1}, **given)
    for other in ({"ratio": 2}, {"ratio": 1.0}):
        answer = await scene.submitting("echo", other, **given)
        refused(answer, f"the same key with {other}", 409)
    await scene.submit("echo", {"text": "a", "number": 1}, idempotency_key=f"{scene.mark}-2")
    answer = await scene.submitting(
        "echo", {"number": 1, "text": "a"}, idempotency_key=f"{scene.mark}-2"
    )
    expect(answer.status < 400, f"members in another order were answered with {answer}")


@actions("ACTN-010")
async def keys_are_of_their_capability(scene: ActionsScene) -> None:
    given = {"idempotency_key": scene.mark}
    first = await scene.submit("echo", {}, **given)
    other = await scene.submit("fail", {}, **given)
    expect(identity(first) != identity(other), "two capabilities share an idempotency key")


@actions("ACTN-011")
async def modes_that_are_not_offered(scene: ActionsScene) -> None:
    answer = await scene.submitting("echo", {}, mode="streaming")
    refused(answer, "a mode that the capability does not offer", 400, 409, 422)


@actions("ACTN-012")
async def sync_and_async(scene: ActionsScene) -> None:
    answer = await scene.submitting("echo", {"text": scene.mark}, mode="sync")
    result = members(answer.members.get("result"))
    expect(answer.status == 200, f"a sync action was answered with {answer}")
    expect(result.get("status") == "completed", f"its result is {result!r:.120}")
    answer = await scene.submitting("wait", {"seconds": 1}, mode="async")
    expect(answer.status == 202, f"an async action was answered with {answer}")
    state = members(answer.members.get("action")).get("state")
    expect(state not in ENDED, f"the answer came only once the action was {state}")


@actions("ACTN-014")
async def contracts(scene: ActionsScene) -> None:
    for tool, effect, streams in (
        ("echo", "read", False),
        ("count", "mutating", False),
        ("stream", "read", True),
    ):
        answer = await scene.get(f"/capabilities/{scene.name(tool)}")
        contract = members(answer.members.get("capability"))
        modes = contract.get("modes", ["sync", "async"])
        wanted = {"sync", "async"} | ({"streaming"} if streams else set[str]())
        expect(set(items(modes)) == wanted, f"{tool} offers {modes}")
        told = contract.get("effect", "mutating")
        expect(told == effect, f"the effect of {tool} is {told!r}")


@actions("ACTN-019")
async def what_can_be_read_beside_it(scene: ActionsScene) -> None:
    action = await scene.submit("stream", {"steps": 2}, mode="streaming")
    await scene.ended(action)
    view = await scene.view(action, "result", "chunks", "receipts")
    result = members(members(view.get("action")).get("result"))
    expect(result.get("status") == "completed", f"the result is {result!r:.120}")
    expect(bool(items(view.get("chunks"))), "no chunks came")
    expect(bool(items(view.get("receipts"))), "no receipts came")


@actions("ACTN-020")
async def results_come_when_they_are_there(scene: ActionsScene) -> None:
    action = await scene.submit("wait", {"seconds": 0.5})
    early = await scene.get(f"/actions/{identity(action)}/result")
    expect(early.status == 200, f"asking for a result was answered with {early}")
    state = members(early.members.get("action")).get("state")
    expect(state not in ENDED, f"after no time at all it is {state}")
    late = await scene.get(f"/actions/{identity(action)}/result?wait=20", seconds=20)
    result = members(late.members.get("result"))
    expect(result.get("status") == "completed", f"after a wait came {late}")


@actions("ACTN-029")
async def receipts_are_chained(scene: ActionsScene) -> None:
    action = await scene.submit("echo", {"text": scene.mark})
    await scene.ended(action)
    view = await scene.view(action, "receipts")
    receipts = [members(one) for one in items(view.get("receipts"))]
    kinds = [receipt.get("kind") for receipt in receipts]
    expect(kinds == ["acceptance", "outcome"], f"the receipts are {kinds}")
    digests = [str(receipt.get("digest", "")) for receipt in receipts]
    expect(all(len(one) >= 32 for one in digests), f"their digests are {digests}")
    linked = receipts[1].get("previous") == digests[0]
    expect(linked, "the second receipt does not name the first")


@actions("ACTN-030")
async def numbers_arrive_exactly(scene: ActionsScene) -> None:
    number: int = 2**62 + 1
    _, result = await scene.ended(await scene.submit("echo", {"number": number}))
    got = members(result.get("output")).get("number")
    expect(repr(got) == str(number), f"{number} arrived as {got!r}")


@actions("ACTN-033")
async def input_that_does_not_fit(scene: ActionsScene) -> None:
    answer = await scene.submitting(
        "echo", {"number": "many"}, transaction={"transaction_id": scene.mark}
    )
    refused(answer, "input that does not fit", 400)
    path = str(answer.error.get("path", ""))
    expect("number" in path, f"the path of the fault is {path!r}")
    listed = await scene.get(f"/actions?transaction={scene.mark}")
    expect(not items(listed.members.get("records")), "an action was accepted all the same")


@actions("ACTN-034", patience=2)
async def a_run_time_out(scene: ActionsScene) -> None:
    action = await scene.submit("stubborn", {"seconds": 3}, timeout_ms=500)
    record, result = await scene.ended(action)
    expect(record.get("state") == "dead_lettered", f"it is {record.get('state')}")
    expect(result.get("status") == "requires_human", f"its result is {result!r:.160}")
