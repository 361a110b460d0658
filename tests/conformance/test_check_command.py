"""`executa check` and `python -m executa_conformance`, as programs and people use them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from executa_conformance.__main__ import main
from executa_conformance.registry import checks
from executa_host.cli.app import main as executa
from tests.conformance.conftest import STRANGER

ROOT = Path(__file__).parents[2]
CASES = {"echo": [{"text": "Tea is at four"}], "ask": [], "converse": [], "keep": [], "upload": []}


def python_m(*words: str) -> int:
    """`python -m executa_conformance`, in this process."""
    with pytest.raises(SystemExit) as left:
        sys.exit(main(list(words)))
    return left.value.code if isinstance(left.value.code, int) else 0


def executa_check(*words: str) -> int:
    """`executa check`, in this process."""
    with pytest.raises(SystemExit) as left:
        executa(["check", *words])
    return left.value.code if isinstance(left.value.code, int) else 0


both_ways = pytest.mark.parametrize("check", [python_m, executa_check])


def read(path: Path) -> Any:
    """A JSON report."""
    return json.loads(path.read_text(encoding="utf-8"))


@both_ways
def test_a_plugin_that_keeps_every_rule_conforms(
    check: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {name: tmp_path / "out" / name for name in ("json", "junit", "sarif", "html", "badge")}
    options = [word for name, path in files.items() for word in (f"--{name}", str(path))]

    assert check("plugin", *options, "--", *STRANGER) == 0
    said = capsys.readouterr().out
    assert "stranger 1.0 conforms to executa 2026-11 (plugin)" in said
    assert all(path.stat().st_size for path in files.values())
    report = read(files["json"])
    assert report["exit_code"] == report["failed_musts"] == 0
    assert set(report["levels"].values()) == {"pass"}
    assert len(report["checks"]) == len(checks("plugin"))
    assert {each["word"] for each in report["checks"]} == {"pass", "not-applicable"}
    assert all(each["evidence"] for each in report["checks"] if each["word"] == "pass")
    assert report["tour"]


@both_ways
def test_a_broken_must_is_told_with_its_lines(
    check: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "WIRE-010:stdout-is-for-frames"

    assert check("plugin", "--only", "WIRE-010", "--", *STRANGER, "--fault", name) == 1
    said = capsys.readouterr().out
    assert f"fail {name}" in said
    assert "DEBUG: sending" in said
    assert "does not conform" in said


def test_a_tolerated_spelling_passes_and_fails_under_strict(tmp_path: Path) -> None:
    words = ("--only", "HAND-*", "--json", str(tmp_path / "r.json"), "--", *STRANGER)
    fault = ("--fault", "HAND-001:server_info")

    assert python_m("plugin", *words, *fault) == 0
    assert read(tmp_path / "r.json")["summary"]["non-strict"] == 1
    assert python_m("plugin", "--strict", *words, *fault) == 1


def test_an_expected_failure_passes_and_a_stale_one_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = tmp_path / "known.txt"
    known.write_text("WIRE-010  # prints while it starts\n", encoding="utf-8")
    words = ("--only", "WIRE-010", "--expected-failures", str(known), "--", *STRANGER)

    assert python_m("plugin", *words, "--fault", "WIRE-010:stdout-is-for-frames") == 0
    assert python_m("plugin", *words) == 1
    assert "WIRE-010: expected to fail, and did not" in capsys.readouterr().out


def test_given_cases_take_the_place_of_generated_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = tmp_path / "cases.json"
    cases.write_text(json.dumps(CASES), encoding="utf-8")

    assert python_m("plugin", "--cases", str(cases), "--only", "SAMP-*", "--", *STRANGER) == 1
    assert "no tool called sampling/createMessage" in capsys.readouterr().out


def test_list_names_every_check_with_its_rule_and_runs_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert executa_check("plugin", "--list") == 0
    said = capsys.readouterr().out
    for check in checks("plugin"):
        assert f"{check.name}  [{check.level}, " in said
    assert "WIRE-148  [no check, must; R-11]" in said


@both_ways
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "no command"),
        (("--only", "LIVE-*", "--", "true"), "no check fits 'LIVE-*'; --list shows all of them"),
        (("--jobs", "0", "--", "true"), "--jobs must be at least 1"),
        (("--patience", "0", "--", "true"), "--patience is 0; it multiplies"),
        (("--expected-failures", "/no/such/file", "--", "true"), "/no/such/file cannot be read"),
        (("--cases", "/no/such/file", "--", "true"), "/no/such/file cannot be read"),
        (("--", "/no/such/program"), "/no/such/program cannot be started: No such file"),
    ],
    ids=["command", "only", "jobs", "patience", "expected", "cases", "program"],
)
def test_a_command_line_that_is_wrong_is_answered_with_a_sentence(
    check: Any, words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check("plugin", *words) == 2
    said = capsys.readouterr()
    assert told in " ".join((said.out + said.err).split())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "Expected `object`, got `array`"),
        ('{"echo": {}}', 'expected {"TOOL": [ARGUMENTS, ...]}'),
        ('{"shout": [{}]}', "--cases names shout, which the plugin does not have"),
    ],
)
def test_cases_of_another_shape_are_refused(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = tmp_path / "cases.json"
    cases.write_text(text, encoding="utf-8")

    assert python_m("plugin", "--cases", str(cases), "--only", "LIFE-001", "--", *STRANGER) == 2
    assert told in capsys.readouterr().err


def test_a_report_that_cannot_be_written_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--only", "LIFE-017", "--json", str(tmp_path), "--", *STRANGER)

    assert python_m("plugin", *words) == 2
    assert "cannot be written" in capsys.readouterr().err


@contextlib.contextmanager
def running(*words: str) -> Generator["subprocess.Popen[str]"]:
    """The kit as a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "executa_conformance", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_an_interrupted_run_leaves_no_plugin_behind(tmp_path: Path) -> None:
    # A plugin that says where it is, and then nothing more.
    pipe = tmp_path / "pids"
    os.mkfifo(pipe)
    plugin = f"import os; open({str(pipe)!r}, 'w').write(str(os.getpid())); input()"
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    with running("plugin", "--", sys.executable, "-I", "-S", "-c", plugin) as process:
        reader.join(30)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)

    assert process.returncode == 130, output
    assert "Traceback" not in output
    with pytest.raises(ProcessLookupError):
        os.kill(int(lines[0]), 0)


def test_on_no_terminal_there_is_no_colour_and_no_progress(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert python_m("plugin", "--only", "LIFE-017", "--", *STRANGER) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\r" not in said


def test_quiet_says_nothing_where_nothing_failed(capsys: pytest.CaptureFixture[str]) -> None:
    assert python_m("plugin", "--quiet", "--only", "LIFE-017", "--", *STRANGER) == 0
    assert capsys.readouterr().out == ""
