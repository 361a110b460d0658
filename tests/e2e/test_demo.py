"""`executa demo` as a person and as a program meet it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXECUTA = (sys.executable, "-m", "executa_host.cli")
COUNTS = (
    "invokes",
    "sampling_calls",
    "storage_calls",
    "agent_runs",
    "frames",
    "nested_tool_calls",
)


def _executa(*arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*EXECUTA, *arguments],
        cwd=options.pop("cwd", ROOT),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def test_json_lines_end_with_ok_and_counts_above_zero() -> None:
    done = _executa("demo", "--json", "--file", "README.md")
    assert done.returncode == 0, done.stderr
    *events, totals = [json.loads(line) for line in done.stdout.splitlines()]
    assert totals["ok"] is True
    assert totals["failures"] == []
    for name in COUNTS:
        assert totals[name] > 0
    kinds = [event["event"] for event in events]
    assert kinds.count("invoke_end") == totals["invokes"]
    assert kinds.count("run_frame") == totals["frames"]
    assert kinds.count("exited") == 2
    assert totals["refused"] == 1
    nested = [event for event in events if event["event"] == "invoke" and event.get("parent")]
    assert len(nested) == totals["nested_tool_calls"]


def test_durable_work_goes_on_after_the_host_was_killed() -> None:
    totals, events = _totals()
    durable = totals["durable"]
    assert (durable["kills"], durable["attempts"]) == (1, 2)
    assert (durable["approved"], durable["cancelled"]) == (1, 1)
    steps = [event["step"] for event in events if event["event"] == "durable"]
    assert steps == [
        *("served", "submitted", "killed", "served", "resumed", "refused", "verified"),
        *("pending", "approved", "cancelled", "stopped"),
    ]
    records = [event["record"] for event in events if event["event"] == "action_event"]
    chunks = [record["chunk"] for record in records if "chunk" in record]
    (streamed,) = {event["action_id"] for event in events if event.get("step") == "submitted"}
    carried = [chunk for chunk in chunks if chunk["action_id"] == streamed]
    assert [chunk["sequence"] for chunk in carried] == list(range(1, len(carried) + 1))
    assert {chunk["attempt"] for chunk in carried} == {1, 2}
    assert carried[-1]["kind"] == "end"


def test_the_demo_needs_no_clone_of_the_repository(tmp_path: Path) -> None:
    done = _executa("demo", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["ok"] is True


def test_the_timeline_tells_who_called_whom_and_what_was_refused() -> None:
    done = _executa("demo", env={**os.environ, "NO_COLOR": "1", "COLUMNS": "40"})
    assert done.returncode == 0, done.stdout + done.stderr
    for words in (
        "→ brief.brief",
        "→ nested notebook.recall",
        "sampling/createMessage served",
        "refused at step manifest -32021",
        "frame final",
        "budget used",
        "ended after stdin with code 0",
        "SIGKILL after",
        "no gap, no repeat",
        "grace approved it",
        "the plugin confirmed the cancellation",
        "Every step did what it should",
    ):
        assert words in done.stdout
    assert "\x1b[" not in done.stdout


def _totals(*options: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    done = _executa("demo", "--json", *options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    *events, totals = [json.loads(line) for line in done.stdout.splitlines()]
    return totals, events


def _frames(events: list[dict[str, Any]]) -> list[Any]:
    return [event["frame"] for event in events if event["event"] == "run_frame"]


def test_nexus_as_a_process_of_its_own_gives_the_same_frames() -> None:
    here, events_here = _totals()
    there, events_there = _totals("--nexus", "http")
    for name in COUNTS:
        assert there[name] == here[name]
    assert _frames(events_here) == _frames(events_there)


@pytest.mark.parametrize("nexus", ["direct", "http"])
def test_a_seed_of_faults_is_survived_told_and_the_same_again(nexus: str) -> None:
    runs = [_totals("--faults", "seed=7", "--nexus", nexus) for _ in range(2)]
    faults = [[e for e in events if e["event"] == "fault"] for _, events in runs]
    assert faults[0] == faults[1]
    assert len(faults[0]) == runs[0][0]["faults"] > 0
    assert all(fault["answered"] for fault in faults[0])
    assert {"latency", "rate_limit", "slow_first_byte"} <= {fault["kind"] for fault in faults[0]}
    same = (*COUNTS, "ok", "tokens", "tried_again", "refused")
    assert [runs[0][0][name] for name in same] == [runs[1][0][name] for name in same]


def test_faults_that_are_no_faults_are_exit_code_2() -> None:
    done = _executa("demo", "--faults", "sed=7")
    assert done.returncode == 2
    assert "seed=N" in done.stderr


def test_a_file_that_is_not_there_is_a_sentence_and_exit_code_2() -> None:
    done = _executa("demo", "--file", "no/such/file.md")
    assert done.returncode == 2
    assert "no/such/file.md" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_file_fails_the_demo_and_says_so(tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.touch()
    done = _executa("demo", "--json", "--file", str(empty))
    assert done.returncode == 1
    totals = json.loads(done.stdout.splitlines()[-1])
    assert totals["ok"] is False
    assert any("empty.txt is empty" in failure for failure in totals["failures"])


def test_an_unknown_option_is_exit_code_2() -> None:
    done = _executa("demo", "--bogus")
    assert done.returncode == 2
    assert "--bogus" in done.stderr


@pytest.fixture
def running() -> Iterator["subprocess.Popen[str]"]:
    """A demo whose output is read by the test."""
    demo = subprocess.Popen(
        [*EXECUTA, "demo", "--json"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield demo
    finally:
        demo.kill()
        demo.communicate(timeout=20)


def test_ctrl_c_is_clean(running: "subprocess.Popen[str]") -> None:
    assert running.stdout is not None
    assert running.stdout.readline()
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=30)
    assert running.returncode in (0, 130)  # 0 if it was quicker
    assert "Traceback" not in errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_stopped_takes_its_host_with_it(
    running: "subprocess.Popen[str]", number: signal.Signals
) -> None:
    assert running.stdout is not None
    told = (json.loads(line) for line in running.stdout)
    served = next(event for event in told if event.get("step") == "served")
    running.send_signal(number)
    _, errors = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "Traceback" not in errors
    with pytest.raises(ProcessLookupError):
        os.kill(served["pid"], 0)


def test_a_reader_that_has_seen_enough_is_no_error(running: "subprocess.Popen[str]") -> None:
    assert running.stdout is not None
    assert running.stderr is not None
    assert running.stdout.readline()
    running.stdout.close()
    errors = running.stderr.read()
    running.wait(timeout=30)
    assert "Traceback" not in errors
    running.stdout = None
