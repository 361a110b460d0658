"""The API before the real engine on a file: lives of actions and sessions, over restarts."""

import asyncio
from contextlib import aclosing

import pytest

from executa_host.actions.records import (
    ActionState,
    AppContext,
    Callback,
    EventRecord,
    Mode,
    SessionState,
)
from executa_host.actions.requests import ActionQuery, Include, Scope
from executa_host.client import Client, Conflict, Forbidden, Gone, Invalid
from executa_protocol.actions import CancelOutcome, ResultStatus
from executa_protocol.chunks import ChunkKind
from tests.api.rigs import EngineRig

EVERYTHING = {Include.INPUT, Include.RESULT, Include.CHUNKS, Include.RECEIPTS}


async def test_a_sync_action_runs_and_answers_with_its_result(engine: EngineRig) -> None:
    engine.runner.auto["recall"] = lambda run: run.answer(["tea at five"])
    submitted = await engine.client().submit("notebook.recall", {"query": "tea"}, mode=Mode.SYNC)
    assert submitted.action.state is ActionState.COMPLETED
    assert submitted.result
    assert bytes(submitted.result.output or b"") == b'["tea at five"]'


async def test_input_that_does_not_fit_is_refused_by_its_path(engine: EngineRig) -> None:
    client = engine.client()
    wrong: list[tuple[dict[str, object], str]] = [
        ({"query": [7]}, "$.input.query"),
        ({"amount": "x"}, "$.input.amount"),
    ]
    for arguments, path in wrong:
        with pytest.raises(Invalid) as refused:
            await client.submit("notebook.recall", arguments)
        assert (refused.value.code, refused.value.path) == ("INVALID_INPUT", path)
        assert str(refused.value).count(path) == 1
    with pytest.raises(Invalid) as refused:
        await client.submit("bank.send", mode=Mode.STREAMING)
    assert refused.value.code == "MODE_NOT_OFFERED"
    assert engine.runner.runs == []


async def test_what_a_key_may_not_attach_is_forbidden_by_its_path(engine: EngineRig) -> None:
    client = engine.client("ada")
    with pytest.raises(Forbidden) as refused:
        await client.submit("notebook.recall", app=AppContext("app-1", "shop"))
    assert refused.value.code == "FORBIDDEN"
    with pytest.raises(Forbidden) as refused:
        await client.submit("notebook.recall", delegation=("eve", "ada"))
    assert refused.value.code == "DELEGATION_REFUSED"
    assert refused.value.path.startswith("$.delegation")
    with pytest.raises(Invalid) as told:
        await client.submit("notebook.recall", callback=Callback("http://127.0.0.1:1/x"))
    assert told.value.code == "CALLBACK_REFUSED"
    attesting = engine.client("shop", Scope.SUBMIT, Scope.ATTEST)
    submitted = await attesting.submit("notebook.recall", app=AppContext("app-1", "shop"))
    assert submitted.action.app == AppContext("app-1", "shop")


async def test_a_whole_life_is_read_with_input_chunks_receipts_and_result(
    engine: EngineRig,
) -> None:
    client = engine.client()
    submitted = await client.submit("notebook.recall", {"query": "tea"}, mode=Mode.STREAMING)
    action_id = submitted.action.action_id
    run = await engine.runner.begun(action_id)
    run.show(ChunkKind.PREVIEW, {"text": "te"})
    run.show(ChunkKind.DATA, {"text": "tea"})
    run.answer({"found": 1})
    outcome = await client.result(action_id, wait=30)
    assert outcome.result
    assert outcome.result.status is ResultStatus.COMPLETED
    view = await client.get(action_id, EVERYTHING)
    assert view
    assert bytes(view.action.input or b"") == b'{"query":"tea"}'
    assert view.chunks
    assert [chunk.kind for chunk in view.chunks] == ["preview", "data", "end"]
    assert view.receipts
    assert [receipt.kind for receipt in view.receipts] == ["acceptance", "outcome"]
    assert view.action.result
    bare = await client.get(action_id)
    assert bare
    members = (bare.action.result, bare.action.input, bare.chunks, bare.receipts)
    assert not any(members)


async def test_followers_see_everything_once_over_breaks_and_a_restart(engine: EngineRig) -> None:
    client = engine.client()
    action_id = (await client.submit("notebook.recall", mode=Mode.STREAMING)).action.action_id
    run = await engine.runner.begun(action_id)
    seen: list[EventRecord] = []
    async with asyncio.timeout(30), aclosing(client.follow(action_id)) as events:
        async for event in events:
            seen.append(event)
            if event.state == "running" and event.attempt == 1:
                run.show(ChunkKind.DATA, {"n": 1})
            chunks = [each for each in seen if each.chunk]
            if event.chunk and len(chunks) == 1:
                engine.break_connections()
                run.show(ChunkKind.DATA, {"n": 2})
            if event.chunk and len(chunks) == 2:
                # It only reads, so the next engine runs it again; what is committed stays.
                await engine.restart()
                again = await engine.runner.begun(action_id)
                again.show(ChunkKind.DATA, {"n": 1})
                again.answer(1)
    cursors = [event.cursor for event in seen]
    assert cursors == [event.cursor for event in await _log(client, action_id)]
    assert len(set(cursors)) == len(cursors)
    found = [event.chunk for event in seen if event.chunk]
    assert [chunk.sequence for chunk in found] == [1, 2, 3, 4]
    assert [chunk.attempt for chunk in found] == [1, 1, 2, 2]
    assert [event.state for event in seen if event.state][-1] == "completed"


async def _log(client: Client, subject: str) -> list[EventRecord]:
    found: list[EventRecord] = []
    after = ""
    while not (page := await client.events(subject, after, limit=3)).ended:
        found += page.events
        after = page.cursor
    return [*found, *page.events]


async def test_a_session_is_resumed_over_a_restart_with_what_was_missed(
    engine: EngineRig,
) -> None:
    client = engine.client()
    opened = await client.sessions.open("agent", label="holiday")
    session_id = opened.session.session_id
    engine.runner.auto["recall"] = lambda run: run.answer(1)
    first = await client.submit("notebook.recall", session_id=session_id)
    await client.result(first.action.action_id, wait=30)
    seen = await client.events(session_id)
    second = await client.submit("notebook.recall", session_id=session_id)
    await client.result(second.action.action_id, wait=30)
    await engine.restart()
    resumed = await client.sessions.resume(opened.resume_token, attempt_id="one", after=seen.cursor)
    assert resumed.replay
    assert {event.action_id for event in resumed.replay.events if event.action_id} == {
        second.action.action_id
    }
    assert resumed.session.cursor == resumed.replay.cursor
    again = await client.sessions.resume(opened.resume_token, attempt_id="one")
    assert again.resume_token == resumed.resume_token
    with pytest.raises(Conflict) as refused:
        await client.sessions.resume(opened.resume_token, attempt_id="two")
    assert refused.value.code == "RESUME_CONFLICT"
    after = await client.sessions.resume(resumed.resume_token)
    with pytest.raises((Conflict, Gone)):
        await client.sessions.resume(opened.resume_token, attempt_id="three")
    closed = await client.sessions.close(session_id)
    assert closed.state is SessionState.COMPLETED
    assert after.session.session_id == session_id
    with pytest.raises(Conflict) as refused:
        await client.submit("notebook.recall", session_id=session_id)
    assert refused.value.code == "SESSION_ENDED"


async def test_an_approval_outlives_a_restart_and_binds_to_its_content(engine: EngineRig) -> None:
    ada, judge = engine.client("ada"), engine.client("judge", Scope.APPROVE, Scope.READ)
    action_id = (await ada.submit("bank.pay", {"amount": 5})).action.action_id
    async with aclosing(ada.follow(action_id)) as events:
        async for event in events:
            if event.state == "pending_approval":
                break
    await engine.restart()
    page = await judge.list(ActionQuery(states=(ActionState.PENDING_APPROVAL,)))
    assert [record.action_id for record in page.records] == [action_id]
    approval = page.records[0].approval
    assert approval
    with pytest.raises(Conflict) as refused:
        await judge.approve(action_id, content="0" * 64)
    assert refused.value.code == "CONTENT_CHANGED"
    await judge.approve(action_id, content=approval.content, note="looks right")
    (await engine.runner.begun(action_id)).answer("paid")
    outcome = await ada.result(action_id, wait=30)
    assert outcome.action.approval
    assert (outcome.action.approval.decided_by, outcome.action.approval.note) == (
        "judge",
        "looks right",
    )


async def test_a_cancellation_is_told_to_the_plugin_and_recorded_as_it_ended(
    engine: EngineRig,
) -> None:
    client = engine.client()
    action_id = (await client.submit("bank.send")).action.action_id
    run = await engine.runner.begun(action_id)
    record = await client.cancel(action_id, "no longer needed")
    assert record.state is ActionState.CANCELLING
    async with asyncio.timeout(20):
        await run.cancelled.wait()
    assert run.reason == "no longer needed"
    run.acknowledge()
    outcome = await client.result(action_id, wait=30)
    assert outcome.action.state is ActionState.CANCELLED
    assert outcome.action.cancellation
    assert outcome.action.cancellation.outcome is CancelOutcome.CONFIRMED


async def test_a_dead_letter_is_redriven_once(engine: EngineRig) -> None:
    action_id = await engine.dead_letter()
    client = engine.client("ada", Scope.REDRIVE, Scope.READ, Scope.SUBMIT)
    outcome = await client.result(action_id)
    assert outcome.result
    assert outcome.result.status is ResultStatus.REQUIRES_HUMAN
    first = await client.redrive(action_id)
    assert first.action.redrive_of == action_id
    again = await client.redrive(action_id)
    assert again.replayed
    assert again.action.action_id == first.action.action_id
    (await engine.runner.begun(first.action.action_id)).answer()
    await client.result(first.action.action_id, wait=30)


async def test_racing_submissions_with_one_key_are_one_action(engine: EngineRig) -> None:
    client = engine.client()
    engine.runner.auto["recall"] = lambda run: run.answer(1)
    racers = [client.submit("notebook.recall", idempotency_key="k") for _ in range(20)]
    submitted = await asyncio.gather(*racers)
    assert len({each.action.action_id for each in submitted}) == 1
    assert sum(not each.replayed for each in submitted) == 1
    with pytest.raises(Conflict) as refused:
        await client.submit("notebook.recall", {"query": "else"}, idempotency_key="k")
    assert refused.value.code == "IDEMPOTENCY_CONFLICT"


async def test_a_listing_is_paged_without_loss_in_either_order(engine: EngineRig) -> None:
    client = engine.client()
    made = [(await client.submit("bank.pay")).action.action_id for _ in range(7)]
    for oldest_first in (True, False):
        query = ActionQuery(limit=3, oldest_first=oldest_first, capability="bank.pay")
        found: list[str] = []
        cursor = ""
        while True:
            page = await client.list(
                ActionQuery(
                    limit=query.limit,
                    oldest_first=oldest_first,
                    capability=query.capability,
                    cursor=cursor,
                )
            )
            found += [record.action_id for record in page.records]
            if not (cursor := page.next_cursor):
                break
        assert found == (made if oldest_first else made[::-1])
    for wrong in ("nonsense", "a1", "é"):
        with pytest.raises(Invalid) as refused:
            await client.list(ActionQuery(cursor=wrong))
        assert (refused.value.code, refused.value.path) == ("CURSOR_INVALID", "query.cursor")


async def test_cursors_that_are_none_or_of_the_future_say_so(engine: EngineRig) -> None:
    client = engine.client()
    action_id = (await client.submit("bank.pay")).action.action_id
    cursor = (await client.events(action_id)).cursor
    ahead = cursor[0] + str(int(cursor[1:]) + 1000)
    for wrong, code in (("nonsense", "CURSOR_INVALID"), (ahead, "CURSOR_AHEAD")):
        with pytest.raises(Invalid) as refused:
            await client.events(action_id, wrong)
        assert refused.value.code == code
        with pytest.raises(Invalid) as refused:
            async for _ in client.follow(action_id, wrong):
                pass
        assert refused.value.code == code
