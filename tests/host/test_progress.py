"""Progress reaches whoever follows the invoke, within limits; the rest is dropped and counted."""

import asyncio
import json
import logging
from typing import Any

import pytest
from msgspec import Raw

from executa_protocol import transcript
from executa_protocol.limits import PROGRESS_MAX_BYTES, PROGRESS_PER_SECOND
from tests.host.clocks import HostClock
from tests.host.conftest import MakeRig, Rig


async def _progress(rig: Rig, count: int) -> list[Any]:
    got: list[Any] = []
    arguments = {"count": count}
    await rig.host.invoke(
        "raw", "progress", arguments, on_progress=lambda raw: got.append(json.loads(bytes(raw)))
    )
    return got


async def test_progress_comes_in_order_before_the_answer(rig: Rig) -> None:
    rig.add()
    assert await _progress(rig, 3) == [{"done": 0}, {"done": 1}, {"done": 2}]
    events = rig.seen(transcript.Progress)
    assert [bytes(event.params) for event in events] == [
        b'{"done": 0}',
        b'{"done": 1}',
        b'{"done": 2}',
    ]
    ended = rig.seen(transcript.InvokeEnded)[0]
    assert (ended.progress, ended.progress_dropped) == (3, 0)


async def test_fifty_events_a_second_pass_and_the_rest_is_counted(make_rig: MakeRig) -> None:
    rig = make_rig(clock=HostClock())  # which stands still
    rig.add()
    got = await _progress(rig, PROGRESS_PER_SECOND + 70)
    assert [event["done"] for event in got] == list(range(PROGRESS_PER_SECOND))
    ended = rig.seen(transcript.InvokeEnded)[0]
    assert (ended.progress, ended.progress_dropped) == (PROGRESS_PER_SECOND, 70)


async def test_each_invoke_has_a_rate_of_its_own(make_rig: MakeRig) -> None:
    rig = make_rig(clock=HostClock())
    rig.add()
    for _ in range(2):
        assert len(await _progress(rig, PROGRESS_PER_SECOND + 1)) == PROGRESS_PER_SECOND


def _notification(data: str, *, method: str = "executa/progress", invoke: str = "$INVOKE") -> str:
    params = f'{{"type":"progress","data":{data},"context":{{"invoke_id":"{invoke}"}}}}'
    return f'{{"jsonrpc":"2.0","method":"{method}","params":{params}}}'


async def _notified(rig: Rig, *lines: str) -> list[bytes]:
    got: list[Raw] = []
    answer = '{"jsonrpc":"2.0","id":$ID,"result":{"success":true,"data":null}}'
    arguments = {"line": "\n".join((*lines, answer))}
    await rig.host.invoke("raw", "raw", arguments, on_progress=got.append)
    return [bytes(raw) for raw in got]


async def test_an_event_at_the_limit_of_its_size_passes_and_one_byte_more_does_not(
    rig: Rig,
) -> None:
    rig.add()
    fits = '"' + "x" * (PROGRESS_MAX_BYTES - 2) + '"'
    assert await _notified(rig, _notification(fits)) == [fits.encode()]
    assert await _notified(rig, _notification(fits[:-1] + 'x"')) == []
    assert rig.seen(transcript.InvokeEnded)[-1].progress_dropped == 1


async def test_the_fields_short_name_and_types_are_read_in_tolerant_mode(rig: Rig) -> None:
    rig.add()
    assert await _notified(rig, _notification("1", method="progress")) == [b"1"]


async def test_strict_mode_takes_the_full_name_only(strict_rig: Rig) -> None:
    strict_rig.add()
    lines = (_notification("1", method="progress"), _notification("2"))
    assert await _notified(strict_rig, *lines) == [b"2"]


@pytest.mark.parametrize(
    "line",
    [
        _notification("1", invoke="0" * 32),
        _notification("1", method="executa/other"),
        '{"jsonrpc":"2.0","method":"executa/progress"}',
        '{"jsonrpc":"2.0","method":"executa/progress","params":[1]}',
    ],
    ids=["unknown-invoke", "unknown-method", "no-params", "array"],
)
async def test_what_belongs_to_nobody_is_dropped(rig: Rig, line: str) -> None:
    rig.add()
    assert await _notified(rig, line) == []


async def test_a_plugin_that_fell_back_has_no_progress(rig: Rig) -> None:
    rig.add("--v1")
    assert await _progress(rig, 3) == []


async def test_an_invoke_that_has_ended_gets_none_any_more(rig: Rig) -> None:
    rig.add()
    answer = '{"jsonrpc":"2.0","id":$ID,"result":{"success":true,"data":null}}'
    got: list[Raw] = []
    line = {"line": answer + "\n" + _notification("1")}
    await rig.host.invoke("raw", "raw", line, on_progress=got.append)
    await rig.host.invoke("raw", "echo", {"value": {}})
    assert got == []


async def test_a_callback_that_fails_is_told_in_the_log_and_harms_nothing(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.add()

    def fails(_: Raw) -> None:
        raise RuntimeError("I cannot take this")

    with caplog.at_level(logging.ERROR):
        outcome = await rig.host.invoke("raw", "progress", {"count": 3}, on_progress=fails)
    assert outcome.success
    assert outcome.ledger.progress == 3
    assert len(caplog.records) == 1
    await asyncio.sleep(0)
