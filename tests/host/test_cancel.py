"""A cancellation is a request, and what became of it is known (R-45)."""

import asyncio
import contextlib
import json

import pytest

from executa_host import CancelOutcome, InvokeHandle, InvokeTimeout, Patience
from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.faults import FaultConfig, FaultRule
from executa_protocol import transcript
from executa_protocol.errors import (
    CallCancelled,
    ConnectionLost,
    NotEncodable,
    RpcError,
    UsageError,
)
from executa_protocol.lifecycle import State
from executa_protocol.transcript import AnyEvent
from tests.host.clocks import HostClock
from tests.host.conftest import MakeRig, Rig, soon

TAKES = ("--take", "cancellation")
QUICK = Patience(cancel=0.2, stop=0.2)


def _waits(event: AnyEvent) -> bool:
    """The plugin's tool has begun and waits to be cancelled."""
    return isinstance(event, transcript.Stderr) and event.line.startswith("waiting")


def _told(rig: Rig) -> list[str]:
    """The reasons that reached the plugin."""
    lines = [event.line for event in rig.seen(transcript.Stderr)]
    return [line.removeprefix("told ") for line in lines if line.startswith("told")]


async def _begun(rig: Rig, mode: str) -> InvokeHandle:
    handle = rig.host.begin("raw", "cancelled", {"mode": mode})
    await rig.until(_waits)
    return handle


# --- Handles ---------------------------------------------------------------------------------


async def test_a_handle_gives_the_result_to_as_many_as_ask(rig: Rig) -> None:
    rig.add()
    handle = rig.host.begin("raw", "echo", {"value": {"a": 1}})
    assert len(handle.invoke_id) == 32
    assert not handle.done
    outcomes = await asyncio.gather(handle.result(), handle.result())
    assert outcomes[0] is outcomes[1] is await handle.result()
    assert outcomes[0].invoke_id == handle.invoke_id
    assert (handle.done, handle.written, handle.cancel_outcome) == (True, True, None)
    assert (handle.plugin, handle.tool) == ("raw", "echo")
    assert handle.invoke_id in repr(handle)
    assert handle.ledger.bytes_in > 0


async def test_an_invoke_that_was_begun_runs_though_nobody_waits(rig: Rig) -> None:
    rig.add()
    rig.host.begin("raw", "echo", {"value": {}})
    await rig.until(lambda event: isinstance(event, transcript.InvokeEnded))


async def test_cancelling_a_wait_for_the_result_does_not_cancel_the_invoke(rig: Rig) -> None:
    rig.add(*TAKES)
    handle = await _begun(rig, "complete")
    waiting = asyncio.ensure_future(handle.result())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(waiting)
    assert not handle.done
    assert await handle.cancel() is CancelOutcome.COMPLETED_FIRST
    assert (await handle.result()).data == "done all the same"


async def test_what_is_wrong_with_the_call_itself_is_said_at_once(rig: Rig) -> None:
    rig.add()
    with pytest.raises(UsageError, match="no plugin is named"):
        rig.host.begin("other", "echo")
    with pytest.raises(NotEncodable):
        rig.host.begin("raw", "echo", {"value": float("nan")})
    with pytest.raises(RpcError, match="no tool"):
        await rig.host.begin("raw", "ecco").result()


# --- Verdicts --------------------------------------------------------------------------------


async def test_a_plugin_that_acknowledges_confirms_the_cancellation(rig: Rig) -> None:
    rig.add(*TAKES)
    handle = await _begun(rig, "confirm")
    assert await handle.cancel("the user changed his mind") is CancelOutcome.CONFIRMED
    assert _told(rig) == ["the user changed his mind"]
    with pytest.raises(CallCancelled, match="changed his mind") as cancelled:
        await handle.result()
    assert cancelled.value.written is True
    assert handle.cancel_outcome is CancelOutcome.CONFIRMED
    (ended,) = rig.seen(transcript.CancelEnded)
    assert (ended.outcome, ended.reason) == ("confirmed", "the user changed his mind")
    assert rig.seen(transcript.InvokeEnded)[-1].outcome == "CallCancelled"


async def test_an_answer_that_still_comes_counts(rig: Rig) -> None:
    rig.add(*TAKES)
    handle = await _begun(rig, "complete")
    assert await handle.cancel("too late") is CancelOutcome.COMPLETED_FIRST
    assert (await handle.result()).data == "done all the same"
    assert rig.seen(transcript.InvokeEnded)[-1].outcome == "ok"


async def test_a_failure_of_its_own_is_an_end_of_its_own(rig: Rig) -> None:
    rig.add(*TAKES)
    handle = await _begun(rig, "fail")
    assert await handle.cancel() is CancelOutcome.COMPLETED_FIRST
    with pytest.raises(RpcError, match="it broke"):
        await handle.result()


async def test_silence_after_the_grace_means_that_nobody_knows(make_rig: MakeRig) -> None:
    rig = make_rig(patience=QUICK)
    rig.add(*TAKES)
    handle = await _begun(rig, "ignore")
    assert await handle.cancel("enough") is CancelOutcome.UNANSWERED
    with pytest.raises(CallCancelled, match="nobody knows") as cancelled:
        await handle.result()
    assert cancelled.value.written is True
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success


async def test_a_plugin_that_did_not_take_the_capability_is_not_told(make_rig: MakeRig) -> None:
    rig = make_rig(patience=QUICK)
    rig.add()
    handle = await _begun(rig, "confirm")
    assert await handle.cancel("silently") is CancelOutcome.UNANSWERED
    assert _told(rig) == []


async def test_a_process_that_dies_of_it_leaves_nobody_knowing(rig: Rig) -> None:
    rig.add(*TAKES)
    handle = await _begun(rig, "die")
    assert await handle.cancel() is CancelOutcome.UNANSWERED
    with pytest.raises(ConnectionLost):
        await handle.result()


async def test_cancelling_twice_or_what_has_ended_changes_nothing(rig: Rig) -> None:
    rig.add(*TAKES)
    handle = await _begun(rig, "confirm")
    outcomes = await asyncio.gather(handle.cancel("first"), handle.cancel("second"))
    assert outcomes == [CancelOutcome.CONFIRMED, CancelOutcome.CONFIRMED]
    assert _told(rig) == ["first"]
    assert await handle.cancel("third") is CancelOutcome.CONFIRMED
    done = rig.host.begin("raw", "echo", {"value": {}})
    await done.result()
    assert await done.cancel() is CancelOutcome.COMPLETED_FIRST


# --- Never written ---------------------------------------------------------------------------


async def test_an_invoke_that_waits_for_its_plugin_was_never_written(make_rig: MakeRig) -> None:
    rig = make_rig(clock=HostClock())
    rig.add()
    with pytest.raises(ConnectionLost):
        await rig.host.invoke("raw", "die")
    handle = rig.host.begin("raw", "echo", {"value": {}})
    await asyncio.sleep(0)
    assert rig.host.state("raw") is State.RESTARTING
    assert await handle.cancel("waited enough") is CancelOutcome.CONFIRMED
    with pytest.raises(CallCancelled, match="waited enough") as cancelled:
        await handle.result()
    assert cancelled.value.written is False


async def test_an_invoke_that_is_cancelled_before_its_first_step_was_never_written(
    rig: Rig,
) -> None:
    rig.add()
    handle = rig.host.begin("raw", "echo", {"value": {}})
    assert await handle.cancel("at once") is CancelOutcome.CONFIRMED
    with pytest.raises(CallCancelled) as ended:
        await handle.result()
    assert ended.value.written is False
    assert handle.cancel_outcome is CancelOutcome.CONFIRMED


async def test_an_invoke_that_waits_for_nexus_was_never_written_and_is_closed_there(
    make_rig: MakeRig,
) -> None:
    rule = FaultRule(kind="latency", endpoint="open_invoke", seconds=60)
    nexus = NexusStub(StubConfig(faults=FaultConfig(rules=(rule,))))
    rig = make_rig(nexus)
    rig.add()
    await rig.host.start("raw")
    handle = rig.host.begin("raw", "echo", {"value": {}})
    await rig.until(lambda event: isinstance(event, transcript.InvokeStarted))
    assert await handle.cancel() is CancelOutcome.CONFIRMED
    with pytest.raises(CallCancelled):
        await handle.result()
    assert not handle.written
    await rig.host.close()
    assert nexus.open_invokes == 0


async def test_a_request_that_still_waits_in_the_queue_is_taken_back(make_rig: MakeRig) -> None:
    rig = make_rig(patience=QUICK)
    rig.add("--manifest", json.dumps({"host_capabilities": []}), "--deaf")
    await rig.host.start("raw")
    big = rig.host.begin("raw", "echo", {"value": {"text": "x" * 300_000}})
    small = rig.host.begin("raw", "echo", {"value": {"text": "never seen"}})
    await rig.until(lambda _: len(rig.seen(transcript.InvokeStarted)) == 2)
    assert await small.cancel() is CancelOutcome.CONFIRMED
    assert not small.written
    assert big.written
    await rig.host.stop("raw")
    with pytest.raises(ConnectionLost):
        await big.result()


async def test_an_abandoned_request_that_still_waits_in_the_queue_is_taken_back_too(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(patience=QUICK)
    rig.add("--manifest", json.dumps({"host_capabilities": []}), "--deaf")
    await rig.host.start("raw")
    big = rig.host.begin("raw", "echo", {"value": {"text": "x" * 300_000}})
    waiting = asyncio.ensure_future(rig.host.invoke("raw", "echo", {"value": {}}))
    await rig.until(lambda _: len(rig.seen(transcript.InvokeStarted)) == 2)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(waiting)
    assert rig.seen(transcript.CancelEnded)[0].outcome == "confirmed"
    await rig.host.stop("raw")
    with pytest.raises(ConnectionLost):
        await big.result()


# --- Without a handle ------------------------------------------------------------------------


async def test_cancelling_the_task_that_waits_cancels_the_invoke(rig: Rig) -> None:
    rig.add(*TAKES)
    waiting = asyncio.ensure_future(rig.host.invoke("raw", "cancelled", {"mode": "confirm"}))
    await rig.until(_waits)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(waiting)
    await rig.until(lambda event: isinstance(event, transcript.CancelEnded))
    assert rig.seen(transcript.CancelEnded)[0].outcome == "confirmed"
    assert _told(rig) == ["whoever asked for it has gone"]
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success


async def test_what_comes_of_an_abandoned_invoke_is_told_to_followers(make_rig: MakeRig) -> None:
    rig = make_rig(patience=QUICK)
    rig.add(*TAKES)
    for mode in ("complete", "ignore"):
        rig.events.clear()
        waiting = asyncio.ensure_future(rig.host.invoke("raw", "cancelled", {"mode": mode}))
        await rig.until(_waits)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(waiting)
        await rig.until(lambda event: isinstance(event, transcript.CancelEnded))
        expected = "completed_first" if mode == "complete" else "unanswered"
        assert rig.seen(transcript.CancelEnded)[0].outcome == expected
    # What still came was no surprise.
    assert not any("late" in event.message for event in rig.seen(transcript.Noise))


async def test_an_invoke_can_be_cancelled_by_its_id(rig: Rig) -> None:
    rig.add(*TAKES)
    waiting = asyncio.ensure_future(rig.host.invoke("raw", "cancelled", {"mode": "confirm"}))
    await rig.until(_waits)
    invoke_id = rig.seen(transcript.InvokeStarted)[0].invoke_id
    outcomes = await asyncio.gather(
        rig.host.cancel(invoke_id, "by id"), rig.host.cancel(invoke_id, "again")
    )
    assert outcomes == [CancelOutcome.CONFIRMED, CancelOutcome.CONFIRMED]
    with pytest.raises(CallCancelled, match="by id"):
        await soon(waiting)
    with pytest.raises(UsageError, match="no invoke"):
        await rig.host.cancel(invoke_id)


async def test_an_invoke_that_was_begun_can_be_cancelled_by_its_id_too(rig: Rig) -> None:
    rig.add(*TAKES)
    handle = await _begun(rig, "confirm")
    assert await rig.host.cancel(handle.invoke_id, "by id") is CancelOutcome.CONFIRMED
    with pytest.raises(CallCancelled):
        await handle.result()


# --- What goes with it -----------------------------------------------------------------------


async def test_reverse_calls_of_a_cancelled_invoke_are_cancelled_and_answered(
    make_rig: MakeRig,
) -> None:
    rule = FaultRule(kind="latency", endpoint="sample", seconds=60)
    rig = make_rig(NexusStub(StubConfig(faults=FaultConfig(rules=(rule,)))))
    rig.add()
    sample = {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}]}
    asked = {"method": "sampling/createMessage", "params": sample | {"maxTokens": 5}}
    handle = rig.host.begin("raw", "reverse", asked)
    await rig.until(lambda event: isinstance(event, transcript.ReverseStarted))
    # The plugin learns of it by the answer to its call, and answers in its turn.
    assert await handle.cancel() is CancelOutcome.COMPLETED_FIRST
    answer = (await handle.result()).data
    assert answer["error"]["code"] == -32000
    assert answer["error"]["data"]["errorCode"] == "INVOKE_CANCELLED"
    assert handle.ledger.sampling_calls == 1
    assert handle.ledger.tokens == 0


async def test_a_time_out_tells_a_plugin_that_can_be_told(rig: Rig) -> None:
    rig.add(*TAKES)
    await rig.host.start("raw")
    with pytest.raises(InvokeTimeout):
        await rig.host.invoke("raw", "cancelled", {"mode": "confirm"}, timeout=0.3)
    await rig.until(lambda _: _told(rig) == ["timeout"])


async def test_a_host_that_closes_ends_what_was_begun(make_rig: MakeRig) -> None:
    rig = make_rig(patience=QUICK)
    rig.add("--ignore-eof")
    handle = await _begun(rig, "ignore")
    await rig.host.close()
    with pytest.raises(ConnectionLost):
        await handle.result()


async def test_an_abandoned_invoke_does_not_hold_a_host_that_closes(make_rig: MakeRig) -> None:
    rig = make_rig(patience=Patience(cancel=60))
    rig.add()
    waiting = asyncio.ensure_future(rig.host.invoke("raw", "hang"))
    await rig.until(lambda event: isinstance(event, transcript.InvokeStarted))
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await soon(waiting)
    async with asyncio.timeout(5):
        await rig.host.close()
    assert rig.seen(transcript.CancelEnded)[0].outcome == "unanswered"


# --- In one turn of the loop -----------------------------------------------------------------


ANSWER = '{"jsonrpc":"2.0","id":$ID,"result":{"success":true,"data":1}}'
PROGRESS = '{"jsonrpc":"2.0","method":"progress","params":{"context":{"invoke_id":"$INVOKE"}}}'


@pytest.mark.parametrize("first", ["cancel", "answer"])
async def test_an_answer_and_a_cancel_in_one_turn_are_an_answer(rig: Rig, first: str) -> None:
    """What the plugin writes at once is read at once, and in between the task is cancelled."""
    rig.add(*TAKES)
    lines = f"{PROGRESS}\n{ANSWER}" if first == "cancel" else f"{ANSWER}\nnonsense"

    def cancel(event: AnyEvent) -> None:
        if isinstance(event, transcript.Progress | transcript.Noise):
            waiting.cancel()

    await rig.host.start("raw")
    rig.host.follow(cancel)
    waiting = asyncio.ensure_future(rig.host.invoke("raw", "raw", {"line": lines}))
    with pytest.raises(asyncio.CancelledError):
        await soon(waiting)
    await rig.until(lambda event: isinstance(event, transcript.CancelEnded))
    assert rig.seen(transcript.CancelEnded)[0].outcome == "completed_first"


async def test_a_call_whose_invoke_is_cancelled_before_its_turn_begins_and_ends(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(patience=QUICK)
    params = {"context": {"invoke_id": "$INVOKE"}, "key": "k", "scope": "tool"}
    call = {"jsonrpc": "2.0", "id": "late", "method": "storage/get", "params": params}
    rig.add()
    await rig.host.start("raw")

    def cancel(event: AnyEvent) -> None:
        if isinstance(event, transcript.Noise):  # read with the call, which has not had its turn
            canceller, active = handle._canceller, handle._active  # pyright: ignore[reportPrivateUsage] - `cancel` would let the turn pass
            canceller.cancel(active, "")

    rig.host.follow(cancel)
    handle = rig.host.begin("raw", "raw", {"line": f"{json.dumps(call)}\nnonsense"})
    with pytest.raises(CallCancelled):
        await soon(handle.result())
    await rig.until(lambda event: isinstance(event, transcript.ReverseEnded))
    begun, ended = rig.seen(transcript.ReverseStarted), rig.seen(transcript.ReverseEnded)
    assert [each.call for each in begun] == [each.call for each in ended] == [1]
