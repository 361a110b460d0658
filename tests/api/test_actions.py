"""Actions over HTTP: submitting, reading, deciding, and `unknown`."""

import aiohttp
import pytest

from executa_host.actions.records import ActionState, Mode
from executa_host.actions.requests import ActionQuery, Include, Scope
from executa_host.client import Conflict, NotFound
from executa_protocol.actions import ResultStatus
from tests.api.rigs import Rig

NOWHERE = "act_00000000000000000000000000"


async def test_a_submitted_action_is_read_and_its_result_waited_for(rig: Rig) -> None:
    client = rig.client()
    submitted = await client.submit("notebook.recall", {"query": "tea"})
    action_id = submitted.action.action_id
    assert submitted.action.state is ActionState.RUNNING
    assert (await client.result(action_id)).result is None
    rig.actions.chunk(action_id, {"text": "te"})
    rig.actions.finish(action_id, ["tea at five"])
    outcome = await client.result(action_id, wait=30)
    assert outcome.result is not None
    assert outcome.result.status is ResultStatus.COMPLETED
    view = await client.get(action_id, {Include.INPUT, Include.CHUNKS, Include.RECEIPTS})
    assert view is not None
    assert bytes(view.action.input or b"") == b'{"query":"tea"}'
    assert view.chunks
    assert len(view.chunks) == 1


async def test_what_is_not_there_or_not_ones_own_reads_as_unknown(rig: Rig) -> None:
    ada, bob = rig.client("ada"), rig.client("bob")
    action_id = (await ada.submit("notebook.recall")).action.action_id
    key = rig.key("bob")
    told: list[object] = []
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session:
        for wanted in (action_id, NOWHERE, "act_short", "x" * 3000, "act_%00"):
            async with session.get(f"{rig.url}/v1/actions/{wanted}") as response:
                assert response.status == 404
                body = await response.json()
                assert body["action"]["state"] == "unknown"
                told.append(body["error"])
    assert told == [told[0]] * 5
    assert await bob.get(action_id) is None
    with pytest.raises(NotFound) as refused:
        await bob.result(action_id)
    assert refused.value.code == "UNKNOWN_ACTION"


async def test_an_idempotency_key_may_come_in_its_header(rig: Rig) -> None:
    key, url = rig.key(), f"{rig.url}/v1/actions"
    body: dict[str, str] = {"capability": "notebook.recall"}
    told: list[str] = []
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session:
        for header, member in (("k", None), ('"k"', None), ("k", "k"), (None, "k")):
            headers = {} if header is None else {"Idempotency-Key": header}
            given = body if member is None else body | {"idempotency_key": member}
            async with session.post(url, json=given, headers=headers) as response:
                assert response.status == 202
                told.append((await response.json())["action"]["action_id"])
                assert ("Idempotency-Replayed" in response.headers) is (len(told) > 1)
        wrong = {"Idempotency-Key": "other"}
        async with session.post(
            url, json=body | {"idempotency_key": "k"}, headers=wrong
        ) as refused:
            assert refused.status == 400
            assert (await refused.json())["error"]["path"] == "$.idempotency_key"
    assert told == [told[0]] * 4


async def test_a_sync_action_answers_with_its_result(rig: Rig) -> None:
    client = rig.client()
    action_id = (await client.submit("notebook.recall", idempotency_key="k")).action.action_id
    rig.actions.finish(action_id, "done")
    again = await client.submit("notebook.recall", mode=Mode.SYNC, idempotency_key="k")
    assert again.replayed
    assert again.action.state is ActionState.COMPLETED
    assert again.result
    assert bytes(again.result.output or b"") == b'"done"'


async def test_a_sync_action_that_takes_too_long_answers_with_the_record(rig: Rig) -> None:
    submitted = await rig.client().submit("notebook.recall", mode=Mode.SYNC)
    assert submitted.action.state is ActionState.RUNNING
    assert not submitted.result


async def test_statuses_tell_accepted_from_ended_and_replayed(rig: Rig) -> None:
    headers = {"Authorization": f"Bearer {rig.key()}"}
    body = {"capability": "notebook.recall", "idempotency_key": "k"}
    async with aiohttp.ClientSession(headers=headers) as session:
        async with session.post(f"{rig.url}/v1/actions", json=body) as first:
            assert first.status == 202
            assert first.headers["Cache-Control"] == "no-store"
            action_id = (await first.json())["action"]["action_id"]
            assert first.headers["Location"] == f"/v1/actions/{action_id}"
            assert "Idempotency-Replayed" not in first.headers
        rig.actions.finish(action_id)
        async with session.post(f"{rig.url}/v1/actions", json=body) as second:
            assert second.status == 200
            assert second.headers["Idempotency-Replayed"] == "true"
            assert (await second.json())["replayed"] is True


async def test_one_key_with_another_input_is_a_conflict(rig: Rig) -> None:
    client = rig.client()
    await client.submit("notebook.recall", {"query": "tea"}, idempotency_key="k")
    with pytest.raises(Conflict) as refused:
        await client.submit("notebook.recall", {"query": "coffee"}, idempotency_key="k")
    assert refused.value.code == "IDEMPOTENCY_CONFLICT"
    assert not refused.value.retryable


async def test_a_listing_is_paged_and_filtered(rig: Rig) -> None:
    client = rig.client()
    made = [(await client.submit("notebook.recall")).action.action_id for _ in range(5)]
    rig.actions.finish(made[0])
    seen: list[str] = []
    query = ActionQuery(limit=2, states=(ActionState.RUNNING, ActionState.STREAMING))
    page = await client.list(query)
    seen += [record.action_id for record in page.records]
    assert page.next_cursor
    page = await client.list(ActionQuery(limit=2, states=query.states, cursor=page.next_cursor))
    seen += [record.action_id for record in page.records]
    assert seen == made[1:]
    assert page.next_cursor == ""


async def test_an_approval_is_decided_by_who_may_and_bound_to_what_was_looked_at(rig: Rig) -> None:
    action = (await rig.client("ada").submit("bank.pay", {"amount": 5})).action
    judge = rig.client("judge", Scope.APPROVE, Scope.READ)
    view = await judge.get(action.action_id)
    assert view is not None
    assert view.action.approval
    with pytest.raises(Conflict) as refused:
        await judge.approve(action.action_id, content="0" * 64)
    assert refused.value.code == "CONTENT_CHANGED"
    content = view.action.approval.content
    assert (await judge.approve(action.action_id, content=content)).state is ActionState.RUNNING
    assert (await judge.approve(action.action_id)).state is ActionState.RUNNING
    with pytest.raises(Conflict) as refused:
        await judge.deny(action.action_id)
    assert refused.value.code == "ALREADY_DECIDED"


async def test_cancel_and_redrive_say_what_became_of_them(rig: Rig) -> None:
    client = rig.client("ada", Scope.SUBMIT, Scope.READ, Scope.CANCEL, Scope.REDRIVE)
    action_id = (await client.submit("notebook.recall")).action.action_id
    asked = await client.cancel(action_id, "no longer needed")
    assert asked.state is ActionState.CANCELLING
    assert asked.cancellation
    assert asked.cancellation.reason == "no longer needed"
    with pytest.raises(Conflict) as refused:
        await client.redrive(action_id)
    assert refused.value.code == "NOT_DEAD_LETTERED"
    rig.actions.move(action_id, ActionState.DEAD_LETTERED)
    first = await client.redrive(action_id)
    again = await client.redrive(action_id)
    assert first.action.action_id != action_id
    assert again.replayed
    assert again.action.action_id == first.action.action_id


async def test_capabilities_are_listed_and_read_one_by_one(rig: Rig) -> None:
    client = rig.client()
    names = [contract.capability for contract in await client.capabilities()]
    assert names == ["bank.pay", "notebook.recall"]
    contract = await client.capability("bank.pay")
    assert contract is not None
    assert contract.approval
    assert await client.capability("no/such?thing") is None


async def test_input_with_line_ends_comes_back_as_it_was_sent(rig: Rig) -> None:
    headers = {"Authorization": f"Bearer {rig.key()}", "Content-Type": "application/json"}
    body = b'{"capability": "notebook.recall", "input": {\n  "query":\r\n "x"\n}}'
    async with aiohttp.ClientSession(headers=headers) as session:
        async with session.post(f"{rig.url}/v1/actions", data=body) as response:
            action_id = (await response.json())["action"]["action_id"]
        async with session.get(f"{rig.url}/v1/actions/{action_id}?include=input") as response:
            assert (await response.json())["action"]["input"] == {"query": "x"}
