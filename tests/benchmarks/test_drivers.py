"""Contenders in their own processes: what they answer, and what becomes of those that fail."""

import os
import signal

import pytest

from benchmarks import machine
from benchmarks.drivers.contender import Task, text
from benchmarks.drivers.parent import driver
from benchmarks.drivers.pool import Ask, Pool, Wanted
from benchmarks.drivers.registry import REGISTRY, Entry
from benchmarks.model import Absent, Report, WrongAnswer
from benchmarks.scale import Scale

SHORT = 0.02
LIAR = {"peer": "../../tests/benchmarks/lying"}


def test_texts_have_their_size_and_no_two_are_the_same() -> None:
    made = [text(number, 200) for number in range(50)]
    assert {len(each) for each in made} == {200}
    assert len(set(made)) == 50
    assert text(1, 3) == "00000001"


@pytest.mark.parametrize("name", ["executa", "uvloop pipe", "blocking pipe", "action store"])
async def test_a_driver_measures_wall_cpu_and_memory(name: str) -> None:
    task = {"executa": Task("inline"), "action store": Task("accept")}.get(name, Task("echo"))
    async with driver(name, {"warm": False}) as opened:
        sample = await opened.measure(task, 1, SHORT)
    assert sample["checked"] >= 1
    for measure in ("rate_per_s", "p50_us", "p99_us", "cpu_client_us", "peak_client_mib"):
        assert sample[measure] > 0
    assert sample["p50_us"] <= sample["p99_us"]


async def test_the_floors_lines_are_as_long_as_ours() -> None:
    # What a floor moves is held to what an invoke of ours has on the line.
    from benchmarks.contenders import floors  # noqa: PLC0415 - it asks for a loop
    from executa_protocol import envelope  # noqa: PLC0415

    params = (
        b'{"tool":"inline","arguments":{"text":"%b"},"context":{"invoke_id":"%b",'
        b'"deadline_ms":1790000000000},"invoke_id":"%b"}'
    ) % (b"x" * 200, b"0" * 32, b"0" * 32)
    request = envelope.request_frame(12_345, "invoke", params)
    answer = envelope.result_frame(
        12_345, b'{"success":true,"data":"%b","duration_ms":0.003}' % (b"x" * 200)
    )
    assert abs(len(request) - 200 - floors.REQUEST_EXTRA) <= 5
    assert abs(len(answer) - 200 - floors.ANSWER_EXTRA) <= 5


async def test_a_large_text_comes_back_through_every_pipe() -> None:
    task = Task("echo", size=300_000)
    async with driver("uvloop pipe") as first, driver("blocking pipe") as second:
        assert (await first.measure(task, 4, SHORT))["checked"] >= 4
        assert (await second.measure(task, 1, SHORT))["checked"] >= 1


async def test_a_wrong_answer_voids_the_row_of_who_gave_it() -> None:
    report, scale = Report("suite"), Scale.tiny()
    async with Pool(report, scale) as pool:
        await pool.open(Wanted("liar", "executa", LIAR), Wanted("executa", "executa"))
        asks = [Ask(name, Task("inline"), 8) for name in ("liar", "executa")]
        series = await pool.rounds("8 in flight", asks)
    rows = {row.contender: row for row in report.rows}
    assert rows["liar"].void.startswith("plugin000.inline answered 'something else'")
    assert rows["liar"].values == {}
    assert rows["executa"].void == ""
    assert series.values("liar", "p50_us") is None


async def test_an_answer_that_does_not_come_is_a_wrong_one() -> None:
    async with driver("executa", LIAR) as opened:
        with pytest.raises(WrongAnswer, match="an operation failed: ConnectionLost"):
            await opened.measure(Task("async"), 8, SHORT)


async def test_a_driver_that_dies_is_told() -> None:
    async with driver("uvloop pipe") as opened:
        for pid in machine.children():
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(WrongAnswer, match="the driver of uvloop pipe has ended"):
            await opened.measure(Task(), 1, SHORT)


async def test_a_task_that_a_contender_does_not_know_is_told() -> None:
    async with driver("executa") as opened:
        with pytest.raises(WrongAnswer, match="KeyError: 'nothing'"):
            await opened.measure(Task("nothing"), 1, SHORT)


async def test_what_cannot_be_opened_is_void_and_the_others_go_on() -> None:
    report = Report("suite")
    async with Pool(report, Scale.tiny()) as pool:
        await pool.open(
            Wanted("nobody", "executa", {"peer": "no_such"}), Wanted("pipe", "uvloop pipe")
        )
        await pool.rounds("1 in flight", [Ask("nobody", Task("inline")), Ask("pipe", Task())])
    assert [(row.contender, bool(row.void)) for row in report.rows] == [
        ("nobody", True),
        ("pipe", False),
    ]


def test_a_package_that_is_not_installed_makes_its_contender_absent() -> None:
    entry = Entry("benchmarks.contenders.executa", "open_executa", ("no_such_package",))
    with pytest.raises(Absent, match="no_such_package is not installed; `uv sync --extra bench`"):
        entry.load()


def test_our_own_contenders_need_nothing_of_the_extra() -> None:
    ours = {name for name, entry in REGISTRY.items() if not entry.needs}
    assert ours == {
        "executa",
        "uvloop pipe",
        "blocking pipe",
        "action store",
        "fdatasync of a page",
        "api",
        "aiohttp echo",
    }


@pytest.mark.skipif(not machine.usable_cores(), reason="cores cannot be chosen on this system")
async def test_a_pinned_contender_and_its_plugin_share_a_core() -> None:
    core = machine.usable_cores()[-1]
    async with driver("executa", core=core) as opened:
        await opened.measure(Task("inline"), 4, SHORT)
        for pid in machine.children():
            for one in (pid, *machine.descendants(pid)):
                assert os.sched_getaffinity(one) == {core}
