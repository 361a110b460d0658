"""The same request again is the same action, and never runs twice (R-43)."""

import asyncio

import pytest
from msgspec import Raw

from executa_host.actions.faults import ActionsError, Code
from executa_host.actions.records import ActionState
from executa_host.actions.requests import Submission
from tests.actions.rig import ANA, BEN, Rig
from tests.actions.scripted import raw


async def test_a_replay_while_it_still_runs_gives_the_running_action(rig: Rig) -> None:
    first = await rig.submitted(idempotency_key="k")
    run = await rig.runner.begun(first.action.action_id)
    again = await rig.submitted(idempotency_key="k")
    run.answer()
    await rig.outcome(first.action.action_id)
    late = await rig.submitted(idempotency_key="k")

    assert not first.replayed
    assert again.replayed
    assert again.action.action_id == late.action.action_id == first.action.action_id
    assert again.action.state is ActionState.RUNNING
    assert late.action.state is ActionState.COMPLETED
    assert len(rig.runner.runs) == 1


@pytest.mark.parametrize(
    "same",
    [
        b'{"n":1,"text":"t"}',
        b' { "text" : "\\u0074", "n" : 1 } ',
        b'{"n":2,"text":"t","n":1}',
    ],
)
async def test_the_same_input_in_another_spelling_is_the_same(rig: Rig, same: bytes) -> None:
    first = await rig.submitted("p.read", {"text": "t", "n": 1}, idempotency_key="k")
    again = await rig.engine.submit(
        ANA, Submission(capability="p.read", input=Raw(same), idempotency_key="k")
    )
    assert again.replayed
    assert again.action.action_id == first.action.action_id


@pytest.mark.parametrize("other", [b'{"text":"t","n":1.0}', b'{"text":"T","n":1}', b'{"text":"t"}'])
async def test_another_input_under_the_same_key_conflicts(rig: Rig, other: bytes) -> None:
    first = await rig.submit("p.read", {"text": "t", "n": 1}, idempotency_key="k")
    with pytest.raises(ActionsError) as refused:
        await rig.engine.submit(
            ANA, Submission(capability="p.read", input=Raw(other), idempotency_key="k")
        )
    assert refused.value.code is Code.IDEMPOTENCY_CONFLICT
    assert refused.value.data == {"action_id": first.action_id}


async def test_the_same_key_of_another_principal_or_capability_is_another(rig: Rig) -> None:
    ids = {
        (await rig.submit(idempotency_key="k")).action_id,
        (await rig.submit(idempotency_key="k", caller=BEN)).action_id,
        (await rig.submit("q.read", idempotency_key="k")).action_id,
    }
    assert len(ids) == 3


async def test_racers_with_one_key_get_one_action_that_runs_once(rig: Rig) -> None:
    rig.runner.auto["read"] = lambda run: run.answer()
    request = Submission(capability="p.read", input=raw({"text": "t"}), idempotency_key="k")
    answers = await asyncio.gather(*(rig.engine.submit(ANA, request) for _ in range(30)))
    (action_id,) = {answer.action.action_id for answer in answers}
    await rig.outcome(action_id)

    assert [answer.replayed for answer in answers].count(False) == 1
    assert len(rig.runner.runs) == 1


async def test_a_key_is_remembered_across_a_restart(rig: Rig) -> None:
    first = await rig.submit(idempotency_key="k")
    await rig.reopen()
    again = await rig.submitted(idempotency_key="k")
    assert again.replayed
    assert again.action.action_id == first.action_id
