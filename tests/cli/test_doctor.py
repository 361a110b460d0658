"""`executa doctor`: for each pitfall of the field a plugin that fell into it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from executa_host.cli import main
from executa_host.cli.doctor.trial import candidates, example_arguments
from executa_protocol.manifest_reading import read_manifest
from tests.cli.shell import NOTEBOOK, ROOT, executa

FAULTY = str(Path(__file__).with_name("faulty_plugin.py"))


class Doctor:
    """Runs the command in this process."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def run(self, *words: str) -> tuple[int, str]:
        """Exit code and standard output."""
        with pytest.raises(SystemExit) as end:
            main(["doctor", *words])
        out, errors = self._capfd.readouterr()
        assert "Traceback" not in errors
        return int(end.value.code or 0), out

    def examine(self, fault: str, *words: str, more: tuple[str, ...] = ()) -> dict[str, Any]:
        """The checks of a plugin with this fault, by name."""
        command = ("--", sys.executable, FAULTY, fault, *more)
        code, out = self.run("--json", *words, *command)
        told = json.loads(out)
        assert told["ok"] is (code == 0)
        assert told["checks"][0]["name"] == "command"
        return {check["name"]: check for check in told["checks"]}


@pytest.fixture
def doctor(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Doctor:
    monkeypatch.setenv("COLUMNS", "400")
    return Doctor(capfd)


ORDER = [
    "command", "start", "initialize", "stdout", "describe", "health", "invoke", "reverse call",
    "stop",
]  # fmt: skip


def test_a_plugin_that_is_well_passes_every_check_in_order(doctor: Doctor) -> None:
    checks = doctor.examine("")
    assert list(checks) == ORDER
    assert {check["status"] for check in checks.values()} == {"ok"}
    assert "storage/get was served" in checks["reverse call"]["found"]


FAILURES = {
    "at_once": ("start", "no licence was found", "by hand"),
    "no_module": ("start", "a_module_that_nobody_has", "install what it imports"),
    "one_answer": ("lifetime", "answered initialize, then exited with code 0", "in a loop"),
    "one_call": ("invoke", "and then ended", "in a loop"),
    "banner": ("stdout", "Faulty 1.0 is ready!", "to stderr"),
    "prints": ("invoke", "working on it...", "to stderr"),
    "indented": ("stdout", "over several lines", "one line"),
    "headers": ("stdout", "Content-Length", "without headers"),
    "input_schema": ("describe", "MANI-004", "in parameters"),
    "wrapped": ("describe", "MANI-001", "the manifest itself"),
    "no_tools": ("describe", "tools: required", "path"),
    "no_success": ("invoke", "CORE-005", '"success": true'),
    "bare": ("invoke", "CORE-004", '"success": true'),
    "dies": ("invoke", "it was too much", "must not end the process"),
    "v1": ("initialize", "declares aps.kv, which needs 2.0", "protocolVersion"),
    "undeclared": ("reverse call", "refused at step manifest", "executa why storage/get"),
}


@pytest.mark.parametrize("fault", FAILURES)
def test_each_pitfall_is_named_with_what_to_do_and_ends_the_examination(
    doctor: Doctor, fault: str
) -> None:
    name, found, advice = FAILURES[fault]
    checks = doctor.examine(fault, "--patience", "0.6", "--timeout", "20")
    last = list(checks.values())[-1]
    assert (last["name"], last["status"]) == (name, "failed"), checks
    assert found in last["found"]
    assert advice in last["advice"]
    assert not any(check["status"] == "failed" for check in list(checks.values())[:-1])


def test_output_that_is_buffered_is_told_from_silence(doctor: Doctor) -> None:
    last = list(doctor.examine("buffered", "--patience", "0.5").values())[-1]
    assert (last["name"], last["status"]) == ("start", "failed")
    assert "buffered" in last["found"]
    assert "flush" in last["advice"]
    last = list(doctor.examine("silent", "--patience", "0.05").values())[-1]
    assert (last["name"], last["status"]) == ("start", "failed")
    assert "no answer" in last["found"]


@pytest.mark.slow
def test_a_cold_start_is_told_from_silence(doctor: Doctor) -> None:
    """Slower than `initialize` may be, and slower than that and `describe` together."""
    for seconds, name in (("3", "initialize"), ("6", "start")):
        last = list(doctor.examine("cold", "--patience", "0.4", more=(seconds,)).values())[-1]
        assert (last["name"], last["status"]) == (name, "failed"), last
        assert "binary" in last["advice"]


def test_a_tool_that_never_sees_the_answer_to_its_reverse_call_is_found_out(
    doctor: Doctor,
) -> None:
    last = list(doctor.examine("deaf", "--timeout", "2", "--patience", "0.2").values())[-1]
    assert (last["name"], last["status"]) == ("invoke", "failed")
    assert "its storage/get was answered (served), and its tool never ended" in last["found"]
    assert "read stdin while a tool runs" in last["advice"]


def test_an_answer_with_another_id_is_found_out(doctor: Doctor) -> None:
    last = list(doctor.examine("other_id", "--timeout", "2").values())[-1]
    assert (last["name"], last["status"]) == ("invoke", "failed")
    assert "answer" in last["found"]


def test_a_plugin_that_stays_when_its_stdin_has_ended_is_found_out(doctor: Doctor) -> None:
    last = list(doctor.examine("stays", "--patience", "0.4").values())[-1]
    assert (last["name"], last["status"]) == ("stop", "failed")
    assert "SIGTERM" in last["found"]


@pytest.mark.parametrize(
    ("fault", "name", "found"),
    [
        ("spelling", "spelling", "HAND-001"),
        ("json_schema", "describe", "MANI-011"),
        ("unwell", "health", "error"),
        ("fails", "invoke", "the example is no good"),
        ("error", "invoke", "KeyError"),
    ],
)
def test_what_hosts_can_live_with_is_a_warning(
    doctor: Doctor, fault: str, name: str, found: str
) -> None:
    checks = doctor.examine(fault)
    assert checks[name]["status"] == "warning"
    assert found in checks[name]["found"]
    assert checks["stop"]["status"] == "ok"


def test_only_harmless_tools_are_called_unless_one_is_named(doctor: Doctor) -> None:
    checks = doctor.examine("final")
    assert checks["invoke"]["status"] == "skipped"
    assert "--tool NAME" in checks["invoke"]["advice"]
    named = doctor.examine("final", "--tool", "deleteEverything", "--args", '{"text": "x"}')
    assert named["invoke"]["status"] == "ok"
    assert doctor.examine("", "--no-invoke")["invoke"]["status"] == "skipped"
    assert doctor.examine("quiet")["reverse call"]["status"] == "skipped"


def test_the_order_of_trial_is_read_only_first_and_what_cannot_be_undone_never() -> None:
    def tool(name: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "description": "", "parameters": [], **more}

    parameters = [
        {"name": "a", "type": "string"},
        {"name": "b", "type": "integer", "default": 7},
        {"name": "c", "type": "string", "enum": ["x", "y"]},
        {"name": "d", "type": "object", "required": False},
    ]
    manifest = read_manifest(
        {
            "name": "n",
            "version": "1",
            "description": "",
            "tools": [
                tool("write"),
                tool("sendMail"),
                tool("drop_table"),
                tool("send_report", effect="read"),
                tool("look", effect="read", parameters=parameters),
                tool("buy", effect="idempotent"),
                tool("ask", effect="read", approval=True),
            ],
        }
    )
    found = list(candidates(manifest))
    assert [each.name for each in found] == ["send_report", "look", "buy", "write"]
    assert example_arguments(found[1]) == {"a": "example", "b": 7, "c": "x"}


def test_a_person_reads_signs_names_and_advice(doctor: Doctor) -> None:
    code, out = doctor.run(str(ROOT / NOTEBOOK))
    assert code == 0
    assert "✓ reverse call" in out
    assert out.endswith("notebook is well\n")
    code, out = doctor.run("--", sys.executable, FAULTY, "wrapped")
    assert code == 3
    assert "✗ describe" in out
    assert "→ answer describe with the manifest itself" in out
    assert out.endswith("faulty fails at: describe\n")


def test_a_command_line_that_is_wrong_is_code_2() -> None:
    for words, told in (
        (("doctor", "/no/such"), "no folder"),
        (("doctor", NOTEBOOK, "--patience", "0"), "--patience"),
        (("doctor", NOTEBOOK, "--args", "{"), "--args"),
    ):
        done = executa(*words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert told in done.stderr
    assert executa("doctor", "--", "/no/such/program").returncode == 2
