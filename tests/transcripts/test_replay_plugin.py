"""The plugin's side of a transcript, played to a host: ours, another command, or by hand."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.sources import ROOT
from tests.transcripts.conftest import EXECUTA, executa
from tests.transcripts.test_replay import record

SIDE = ("--side", "plugin")


def report_of(*words: str) -> dict[str, Any]:
    done = executa("replay", "--json", *words)
    assert "Traceback" not in done.stderr
    return {"code": done.returncode, "stderr": done.stderr, **json.loads(done.stdout)}


def changed(path: Path, before: str, after: str, folder: Path) -> Path:
    """A transcript in which something was otherwise."""
    text = path.read_text(encoding="utf-8")
    assert before in text
    made = folder / "changed.jsonl"
    made.write_text(text.replace(before, after, 1), encoding="utf-8")
    return made


def test_our_own_host_says_again_what_it_said_in_the_demo(demo_transcript: Path) -> None:
    report = report_of(str(demo_transcript), *SIDE)
    assert (report["code"], report["difference"]) == (0, None)
    assert report["launches"] == 4


def test_what_a_host_says_otherwise_is_exactly_that(demo_transcript: Path, tmp_path: Path) -> None:
    other = changed(demo_transcript, '"generation":1,', '"generation":9,', tmp_path)
    report = report_of(str(other), *SIDE)
    difference = report["difference"]
    assert report["code"] == 1
    assert (difference["plugin"], difference["frame"]) == ("notebook", "answer to storage/set")
    assert (difference["path"], difference["expected"], difference["got"]) == (
        "result.generation", 9, 1,
    )  # fmt: skip


async def test_restarts_and_deaths_are_done_again(tmp_path: Path) -> None:
    path = await record(tmp_path / "t.jsonl", "echo", "stop", "twice", "die")
    report = report_of(str(path), *SIDE)
    assert (report["code"], report["difference"]) == (0, None)


async def test_any_host_can_be_tested_by_its_command(tmp_path: Path) -> None:
    path = await record(tmp_path / "t.jsonl", "echo")
    host = (*EXECUTA, "invoke", "echo", "--args", '{"n": 1.5}', "--credential", "API_KEY", "--")
    report = report_of(str(path), *SIDE, "--", "env", "API_KEY=x", *host, "{plugin}")
    assert (report["code"], report["difference"]) == (0, None)
    other = (*EXECUTA, "invoke", "echo", "--args", '{"n": 2}', "--credential", "API_KEY", "--")
    report = report_of(str(path), *SIDE, "--", "env", "API_KEY=x", *other, "{plugin}")
    assert report["code"] == 1
    assert report["difference"]["path"] == "params.arguments.n"


def speak(path: Path, messages: list[Any]) -> "subprocess.CompletedProcess[str]":
    """Say lines to a replayer, and close its input."""
    return subprocess.run(
        [*EXECUTA, "replay", str(path), *SIDE, "--stdio", "--ignore", "params.context.*"],
        cwd=ROOT,
        input="".join(f"{json.dumps(message)}\n" for message in messages),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def test_on_stdin_and_stdout_it_is_a_plugin(tmp_path: Path) -> None:
    path = await record(tmp_path / "t.jsonl", "echo")
    text = path.read_text()
    sent = [json.loads(line)["line"] for line in text.splitlines() if '"direction":"in"' in line]
    for message in sent:
        message.get("params", {}).get("context", {}).pop("storage_token", None)
    sent[-1]["id"] = 99
    done = speak(path, sent)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [0, 1, 99]
    assert answers[-1]["result"]["data"]["word"] == "tea"
    assert "everything is played" in done.stderr


async def test_a_host_that_ends_too_soon_is_told(tmp_path: Path) -> None:
    path = await record(tmp_path / "t.jsonl", "echo")
    done = executa("replay", str(path), *SIDE, "--stdio")
    assert done.returncode == 1
    assert re.search(r"request initialize .*\n.*\n\s+got\s+nothing", done.stderr)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--stdio",), "--stdio is for --side plugin"),
        ((*SIDE, "--", sys.executable, "-c", ""), "needs the word {plugin}"),
        ((*SIDE, "--timeout", "0"), "--timeout: expected more than 0 seconds"),
    ],
)
async def test_misuse_is_a_sentence(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    path = await record(tmp_path / "t.jsonl", "echo")
    done = executa("replay", str(path), *words)
    assert done.returncode == 2
    assert told in done.stderr


async def test_a_host_that_never_starts_its_plugin_is_told(tmp_path: Path) -> None:
    path = await record(tmp_path / "t.jsonl", "echo")
    done = executa("replay", str(path), *SIDE, "--", sys.executable, "-c", "", "{plugin}")
    assert done.returncode == 1
    assert "never started its plugin" in done.stderr
