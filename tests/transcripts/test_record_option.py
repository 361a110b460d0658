"""`--record` on the commands that run a plugin: one option, which never changes what they do."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from executa_host.transcripts.reading import read_transcript
from executa_protocol import transcript
from tests.support.sources import ROOT
from tests.transcripts.conftest import EXECUTA, executa

HELLO = str(ROOT / "examples" / "hello" / "plugin.py")
WITH_RECORD = ("demo", "describe", "invoke", "health", "why", "serve", "dev", "doctor")


@pytest.mark.parametrize("command", WITH_RECORD)
def test_every_command_that_runs_a_plugin_has_it(command: str) -> None:
    assert "--record" in executa(command, "--help").stdout


@pytest.mark.parametrize(
    "words",
    [
        ("describe", HELLO),
        ("health", HELLO),
        ("why", "sampling/createMessage", HELLO),
        ("invoke", "greet", "--args", '{"name": "Ada", "password": "swordfish99"}', HELLO),
        ("doctor", HELLO),
    ],
    ids=lambda words: words[0],
)
def test_what_a_command_does_is_recorded_whole(words: tuple[str, ...], tmp_path: Path) -> None:
    plain = executa(*words, "--json")
    path = tmp_path / "t.jsonl"
    recorded = executa(*words, "--json", "--record", str(path))
    assert recorded.returncode == plain.returncode
    assert json.loads(recorded.stdout).keys() == json.loads(plain.stdout).keys()
    found = read_transcript(path)
    assert found.remarks == []
    events = [line.event for part in found.parts for line in part.lines]
    assert any(isinstance(e, transcript.Frame) and e.method == "describe" for e in events)
    assert isinstance(events[-1], transcript.StateChanged | transcript.Exited)
    assert "swordfish99" not in path.read_text()
    assert found.parts[0].header.command[1] == words[0]


@pytest.mark.parametrize("name", ["no/such/folder/t.jsonl", "README.md"])
def test_a_file_that_cannot_be_recorded_to_is_told_before_anything_runs(name: str) -> None:
    before = (ROOT / "README.md").read_bytes()
    done = executa("invoke", "greet", "--args", '{"name": "x"}', HELLO, "--record", name)
    assert done.returncode == 2
    assert name in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert (ROOT / "README.md").read_bytes() == before


def test_a_disk_that_fills_up_is_told_and_the_command_goes_on() -> None:
    done = executa("invoke", "greet", "--args", '{"name": "x"}', HELLO, "--record", "/dev/full")
    assert done.returncode == 0
    assert "Hello, x!" in done.stdout
    assert "could not be recorded any further" in done.stderr


def test_ctrl_c_leaves_a_transcript_with_its_end(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with subprocess.Popen(
        [*EXECUTA, "demo", "--json", "--record", str(path)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert "Traceback" not in errors
    found = read_transcript(path)
    assert not found.cut
    assert sys.executable not in errors
