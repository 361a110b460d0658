"""From acceptance to the end: what an action goes through (seed actions-and-sessions)."""

import pytest

from executa_host.actions.interface import Actions
from executa_host.actions.records import ActionState, Mode
from executa_protocol.chunks import ChunkKind
from tests.actions.rig import ANA, Rig, output_of

S = ActionState


def test_the_engine_is_what_the_interface_promises(rig: Rig) -> None:
    actions: Actions = rig.engine
    assert actions is rig.engine


async def test_an_action_is_accepted_queued_run_and_completed(rig: Rig) -> None:
    record = await rig.submit("p.read", {"text": "hello"})
    run = await rig.runner.begun(record.action_id)
    run.answer({"heard": "hello"})
    outcome = await rig.engine.result(ANA, record.action_id, wait=30)

    assert record.state is S.ACCEPTED
    assert bytes(run.attempt.input) == b'{"text":"hello"}'
    assert outcome.action.state is S.COMPLETED
    assert outcome.result is not None
    assert bytes(outcome.result.output) == b'{"heard":"hello"}'  # type: ignore[arg-type]
    assert await rig.states(record.action_id) == ["accepted", "queued", "running", "completed"]


async def test_chunks_of_a_streaming_action_make_it_stream(rig: Rig) -> None:
    action_id, run = await rig.running("p.read", mode=Mode.STREAMING)
    run.show(ChunkKind.PREVIEW, {"text": "he"})
    await rig.until(action_id, S.STREAMING)
    run.show(ChunkKind.PREVIEW, {"text": "llo"})
    run.answer("hello")
    record = await rig.until(action_id, S.COMPLETED)

    chunks = await rig.store.chunks(action_id, 0, 100)
    assert [(chunk.sequence, chunk.kind) for chunk in chunks] == [
        (1, ChunkKind.PREVIEW),
        (2, ChunkKind.PREVIEW),
        (3, ChunkKind.END),
    ]
    assert record.chunks == 3
    assert output_of(record) == b'"hello"'
    assert (await rig.states(action_id))[-3:] == ["running", "streaming", "completed"]


async def test_an_async_action_keeps_its_chunks_and_does_not_stream(rig: Rig) -> None:
    action_id, run = await rig.running("p.read")
    run.show(ChunkKind.PROGRESS, {"percent": 50})
    run.answer()
    await rig.until(action_id, S.COMPLETED)

    assert "streaming" not in await rig.states(action_id)
    assert len(await rig.store.chunks(action_id, 0, 100)) == 2


async def test_a_failure_in_the_tools_own_words_fails_the_action(rig: Rig) -> None:
    action_id, run = await rig.running("p.send")
    run.fail("TOOL_FAILED")
    record = await rig.until(action_id, S.FAILED)

    assert record.result is not None
    chunks = await rig.store.chunks(action_id, 0, 100)
    assert [chunk.kind for chunk in chunks] == [ChunkKind.ERROR, ChunkKind.END]


@pytest.mark.parametrize("count", [200])
async def test_many_actions_at_once_all_end(rig: Rig, count: int) -> None:
    rig.runner.auto["read"] = lambda run: run.answer(run.attempt.action_id)
    records = [await rig.submit() for _ in range(count)]
    for record in records:
        done = await rig.until(record.action_id, S.COMPLETED)
        assert output_of(done).decode().strip('"') == record.action_id
