"""How what a host raises reads as the end of an attempt, and what too many chunks come to."""

from typing import Any

import pytest
from msgspec import Raw

from executa_host.actions import streaming
from executa_host.actions.host_runner import ended_of
from executa_host.actions.records import ActionState
from executa_host.actions.runner import Ended
from executa_host.invocation import CancelOutcome, InvokeRefused, InvokeTimeout
from executa_protocol.chunks import ChunkKind
from executa_protocol.errors import (
    CallCancelled,
    ConnectionLost,
    DecodeFailure,
    ExecutaError,
    FrameTooLarge,
    RpcError,
    UsageError,
    WriteQueueFull,
)
from tests.actions.rig import Rig, output_of

S = ActionState


@pytest.mark.parametrize(
    ("fault", "cancelled", "kind", "written", "acknowledged", "code", "retryable"),
    [
        (RpcError(-32603, "x"), None, "answered", True, False, "INTERNAL_ERROR", None),
        (RpcError(-1, "own code"), None, "answered", True, False, "RPC_1", False),
        (
            RpcError(-32000, "x", {"errorCode": "INVOKE_CANCELLED"}),
            None,
            "cancelled",
            True,
            True,
            "INVOKE_CANCELLED",
            None,
        ),
        (
            RpcError(-32602, "x", {"errorCode": "INVALID_PARAMS", "path": "$.a", "more": 1}),
            None,
            "answered",
            True,
            False,
            "INVALID_PARAMS",
            None,
        ),
        (InvokeRefused(-32601, "x"), None, "refused", False, False, "METHOD_NOT_FOUND", None),
        (InvokeTimeout("x", written=True), None, "timed_out", True, False, "TIMED_OUT", True),
        (InvokeTimeout("x", written=False), None, "timed_out", False, False, "TIMED_OUT", True),
        (ConnectionLost("x", written=True), None, "lost", True, False, "CONNECTION_LOST", True),
        (ConnectionLost("x"), None, "lost", True, False, "CONNECTION_LOST", True),
        (ConnectionLost("x", written=False), None, "lost", False, False, "CONNECTION_LOST", True),
        (
            CallCancelled("x", written=True),
            CancelOutcome.CONFIRMED,
            "cancelled",
            True,
            True,
            "CANCELLED",
            False,
        ),
        (
            CallCancelled("x", written=True),
            CancelOutcome.UNANSWERED,
            "cancelled",
            True,
            False,
            "CANCELLED",
            False,
        ),
        (
            CallCancelled("x", written=False),
            CancelOutcome.CONFIRMED,
            "cancelled",
            False,
            True,
            "CANCELLED",
            False,
        ),
        (WriteQueueFull(9, 8), None, "refused", False, False, "PLUGIN_BUSY", True),
        (FrameTooLarge(9, 8), None, "refused", False, False, "NOT_SENDABLE", False),
        (UsageError("x"), None, "refused", False, False, "NOT_SENDABLE", False),
        (DecodeFailure("x"), None, "answered", True, False, "UNREADABLE_ANSWER", False),
    ],
)
def test_what_a_host_raises_ends_an_attempt(
    fault: ExecutaError,
    cancelled: CancelOutcome | None,
    kind: str,
    *,
    written: bool,
    acknowledged: bool,
    code: str,
    retryable: bool | None,
) -> None:
    ended = ended_of(fault, cancelled)
    assert (ended.kind, ended.written, ended.acknowledged) == (kind, written, acknowledged)
    assert ended.error
    assert ended.error.code == code
    if retryable is not None:
        assert ended.error.retryable is retryable
    if "path" in getattr(fault, "data", {}):
        assert ended.error.path == "$.a"
        assert ended.error.data == {"more": 1}


# --- Chunks. --------------------------------------------------------------------------------------


async def test_too_many_chunks_at_a_time_lose_progress_and_no_data(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "CHUNKS_WAITING", 10)
    action_id, run = await rig.running()
    for number in range(30):
        run.show(ChunkKind.PROGRESS, number)
    for number in range(30):
        run.show(ChunkKind.DATA, number)
    run.answer()
    await rig.until(action_id, S.COMPLETED)
    chunks = await rig.store.chunks(action_id, 0, 100)
    kinds = [chunk.kind for chunk in chunks]

    assert kinds.count(ChunkKind.PROGRESS) == 10
    assert kinds.count(ChunkKind.DATA) == 30


@pytest.mark.parametrize("late", [False, True])
async def test_a_chunk_that_is_no_json_costs_the_action_nothing_but_the_chunk(
    rig: Rig, *, late: bool
) -> None:
    action_id, run = await rig.running()
    run.emit_chunk(ChunkKind.DATA, Raw(b"{nonsense"))
    if not late:
        await rig.store.counts()
    run.answer("fine")
    record = await rig.until(action_id, S.COMPLETED, S.FAILED)
    assert output_of(record) == b'"fine"'


async def test_an_answer_that_is_no_json_fails_the_action(rig: Rig) -> None:
    action_id, run = await rig.running()
    run.end(Ended(kind="answered", output=Raw(b"{nonsense")))
    record = await rig.until(action_id, S.COMPLETED, S.FAILED)
    assert record.state is S.FAILED
    assert record.result
    assert record.result.error
    assert "cannot be kept" in record.result.error.message


async def test_what_an_attempt_shows_after_its_end_is_dropped(rig: Rig) -> None:
    action_id, run = await rig.running()
    run.answer("done")
    record = await rig.until(action_id, S.COMPLETED)
    run.show(ChunkKind.DATA, "late")
    assert output_of(record) == b'"done"'
    assert (await rig.record(action_id)).chunks == 1


async def test_more_chunks_than_fit_one_transaction_are_all_kept_in_order(rig: Rig) -> None:
    action_id, run = await rig.running()
    for number in range(1000):
        run.show(ChunkKind.DATA, number)
    run.answer()
    await rig.until(action_id, S.COMPLETED)
    found: list[Any] = []
    while page := await rig.store.chunks(action_id, len(found), 300):
        found += page
    assert [bytes(chunk.data) for chunk in found[:-1]] == [b"%d" % n for n in range(1000)]
