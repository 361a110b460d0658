"""Plugins that break: each fault fails what it must, at once, and nothing else."""

import asyncio
import os
import signal

import pytest

from executa_host import InvokeRefused, InvokeTimeout
from executa_protocol import transcript
from executa_protocol.errors import ConnectionLost, RpcError
from executa_protocol.lifecycle import State
from tests.host.conftest import Rig


async def _hanging(rig: Rig) -> "asyncio.Task[object]":
    """An invoke that the plugin has begun and will never answer."""
    task = asyncio.ensure_future(rig.host.invoke("raw", "hang"))
    await rig.until(lambda event: isinstance(event, transcript.InvokeStarted))
    await rig.host.invoke("raw", "echo", {"value": {}})  # so the request before it was read
    return task


async def test_sigkill_in_an_invoke_fails_it_at_once_and_the_next_one_works(rig: Rig) -> None:
    rig.add()
    task = await _hanging(rig)
    pid = rig.host.pid("raw")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(5):
        with pytest.raises(ConnectionLost, match=r"after the request was written.*SIGKILL") as lost:
            await task
    assert lost.value.written is True
    outcome = await rig.host.invoke("raw", "echo", {"value": {"again": True}}, timeout=20)
    assert outcome.data == {"value": {"again": True}}
    assert rig.host.pid("raw") != pid


async def test_an_exit_with_a_code_quotes_the_last_words(rig: Rig) -> None:
    rig.add()
    with pytest.raises(ConnectionLost, match=r"exited with code 9.*about to die"):
        await rig.host.invoke("raw", "die", {"code": 9})
    assert rig.host.state("raw") is State.RESTARTING


async def test_exit_zero_with_the_answer_still_in_the_pipe_is_an_answer(rig: Rig) -> None:
    rig.add()
    outcome = await rig.host.invoke("raw", "answer_and_exit")
    assert outcome.data == "last words"
    await rig.until(lambda event: isinstance(event, transcript.Exited))
    assert rig.host.state("raw") is State.STOPPED
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success


async def test_exit_zero_in_the_middle_of_a_call_is_a_fault(rig: Rig) -> None:
    rig.add()
    with pytest.raises(ConnectionLost, match="exited with code 0"):
        await rig.host.invoke("raw", "die", {"code": 0})
    assert rig.seen(transcript.Exited)[0].fault


async def test_a_time_out_fails_its_call_and_no_other(rig: Rig) -> None:
    rig.add()
    other = await _hanging(rig)
    with pytest.raises(InvokeTimeout):
        await rig.host.invoke("raw", "hang", timeout=0.05)
    assert not other.done()
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success
    other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await other


async def test_second_answers_and_reverse_calls_after_the_end_are_counted_and_answered(
    rig: Rig,
) -> None:
    rig.add()
    outcome = await rig.host.invoke("raw", "late")
    assert outcome.data == "first"
    await rig.until(
        lambda event: isinstance(event, transcript.Stderr) and "UNKNOWN_INVOKE" in event.line
    )
    assert any("late or duplicate" in event.message for event in rig.seen(transcript.Noise))


async def test_an_answer_with_its_id_as_a_string_is_accepted_and_reported(rig: Rig) -> None:
    rig.add("--ids", "str")
    assert (await rig.host.invoke("raw", "echo", {"value": {"a": 1}})).success
    assert any("WIRE-007" in event.message for event in rig.seen(transcript.Noise))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"jsonrpc":"2.0","id":$ID,"result":{"success":true,"data":NaN}}', "malformed"),
        ('{"jsonrpc":"2.0","id":$ID,"result":{"success":true,"data":1e999}}', "out of range"),
        ('{"jsonrpc":"2.0","id":$ID,"result":"\\ud800"}', "truncated"),
        ('{"jsonrpc":"2.0","id":$ID}', "neither"),
        ('{"jsonrpc":"2.0","id":$ID,"result":1,"error":{"code":1,"message":"x"}}', "both"),
        ('{"jsonrpc":"2.0","id":$ID,"result":' + "[" * 200 + "]" * 200 + "}", "deeper"),
        ('{"jsonrpc":"2.0","id":$ID,"__file_transport":"relative.json"}', "absolute"),
        ('{"jsonrpc":"2.0","id":$ID,"__file_transport":"/etc/hostname"}', "file"),
        ('{"jsonrpc":"2.0","id":$ID,"__file_transport":"/dev/zero"}', "regular"),
    ],
    ids=[
        "nan",
        "infinite",
        "surrogate",
        "neither",
        "both",
        "deep",
        "relative",
        "foreign",
        "device",
    ],
)
async def test_an_answer_that_cannot_be_read_fails_its_call_alone(
    rig: Rig, line: str, told: str
) -> None:
    rig.add()
    with pytest.raises(Exception, match=told):
        await rig.host.invoke("raw", "raw", {"line": line}, timeout=10)
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success


async def test_a_tools_own_failure_is_an_outcome(rig: Rig) -> None:
    rig.add()
    outcome = await rig.host.invoke("raw", "fail")
    assert not outcome.success
    assert outcome.error == "it did not work"


async def test_an_error_answer_is_raised_with_its_code(rig: Rig) -> None:
    rig.add()
    line = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"no","data":{"path":"x"}}}'
    with pytest.raises(RpcError, match="no") as refused:
        await rig.host.invoke("raw", "raw", {"line": line})
    assert refused.value.code == -32602
    assert refused.value.data == {"path": "x"}


async def test_an_unknown_tool_is_refused_with_the_names_there_are(rig: Rig) -> None:
    rig.add()
    with pytest.raises(InvokeRefused, match="echo") as refused:
        await rig.host.invoke("raw", "ecco")
    assert refused.value.code == -32601


async def test_a_result_over_four_mebibytes_inline_is_refused(rig: Rig) -> None:
    rig.add()
    text = "x" * (4 * 1024 * 1024 + 1)
    with pytest.raises(RpcError, match="inline") as refused:
        await rig.host.invoke("raw", "echo", {"value": {"text": text}})
    assert refused.value.symbol == "RESULT_TOO_LARGE"
    assert not isinstance(refused.value, InvokeRefused)  # which means that it was never called
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success


async def test_faults_in_a_row_end_in_a_plugin_that_is_left_alone(rig: Rig) -> None:
    """Covered in time by `test_restart`; here: what a caller is told."""
    rig.add()
    with pytest.raises(ConnectionLost):
        await rig.host.invoke("raw", "die")
    await rig.host.stop("raw")
    assert rig.host.state("raw") is State.STOPPED
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success
