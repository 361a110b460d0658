"""`executa replay`: no difference where there is none, and exactly the one there is."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from executa_host import Host, PluginSpec
from executa_host.transcripts.recorder import Recorder
from executa_nexus_stub import NexusStub
from executa_protocol.errors import ExecutaError
from tests.transcripts.conftest import executa

PLUGIN = (sys.executable, str(Path(__file__).with_name("plugins.py")))
EXAMPLE = (sys.executable, "-P", "-m")


async def record(path: Path, *tools: str, name: str = "p") -> Path:
    """A transcript of calls of the plugin of `plugins.py`, one launch after another."""
    recorder = Recorder(path)
    spec = PluginSpec(name=name, command=PLUGIN, credentials={"API_KEY": "open-sesame-42"})
    async with Host(NexusStub(), recorder=recorder) as host:
        host.add(spec)
        for tool in tools:
            if tool == "stop":
                await host.stop(name)
                continue
            try:
                await host.invoke(name, tool, {"n": 1.50})
            except ExecutaError:
                assert tool == "die"
    recorder.close()
    return path


def replay(path: Path, *options: str, words: tuple[str, ...] = PLUGIN) -> dict[str, Any]:
    """The report of a replay, and its exit code as `code`."""
    at, _, after = " ".join(options).partition(" -- ")
    done = executa("replay", str(path), *at.split(), "--json", "--", *words, *after.split())
    assert "Traceback" not in done.stderr
    return {"code": done.returncode, **json.loads(done.stdout)}


# --- The demo ----------------------------------------------------------------------------------


@pytest.mark.parametrize("plugin", ["notebook", "brief", "courier"])
def test_each_plugin_of_the_demo_replays_without_a_difference(
    demo_transcript: Path, plugin: str
) -> None:
    words = (*EXAMPLE, f"executa_sdk.examples.{plugin}")
    report = replay(demo_transcript, "--plugin", plugin, words=words)
    assert (report["code"], report["difference"]) == (0, None)
    assert report["launches"] == (2 if plugin == "courier" else 1)


def test_a_changed_field_of_the_demos_notebook_is_exactly_that(
    demo_transcript: Path, tmp_path: Path
) -> None:
    changed = tmp_path / "changed.py"
    changed.write_text(
        "from executa_sdk.examples import notebook\n"
        "import json, os\n"
        "from executa_protocol import codec\n"
        "encode = codec.encode\n"
        "def changed(value):\n"
        "    return encode(value).replace(b'\"notes\":2', b'\"notes\":7')\n"
        "codec.encode = changed\n"
        "notebook.plugin.run()\n"
    )
    report = replay(demo_transcript, "--plugin", "notebook", words=(sys.executable, str(changed)))
    assert report["code"] == 1
    difference = report["difference"]
    assert difference["frame"] == "answer to invoke remember"
    assert difference["path"] == "result.data.notes"
    assert (difference["expected"], difference["got"]) == (2, 7)


# --- One plugin, in every way --------------------------------------------------------------------


async def test_ids_times_and_redacted_values_of_its_own_are_left_aside(tmp_path: Path) -> None:
    path = await record(tmp_path / "t.jsonl", "echo", "stop", "twice", "echo")
    assert "open-sesame-42" not in path.read_text()
    report = replay(path)
    assert (report["code"], report["launches"], report["difference"]) == (0, 2, None)


async def test_concurrent_calls_may_come_in_another_order(tmp_path: Path) -> None:
    path = await record(tmp_path / "t.jsonl", "twice")
    assert replay(path, " -- --reversed")["code"] == 0


@pytest.mark.parametrize(
    ("option", "frame", "path"),
    [
        ("--changed", "answer to invoke echo", "result.data.word"),
        ("--chatty", "answer to invoke echo", ""),
        ("--more", "the end", ""),
        ("--other-exit", "the end of the process", "exit code"),
    ],
)
async def test_whatever_is_otherwise_is_the_difference(
    tmp_path: Path, option: str, frame: str, path: str
) -> None:
    transcript = await record(tmp_path / "t.jsonl", "echo")
    report = replay(transcript, f" -- {option}")
    assert report["code"] == 1
    assert (report["difference"]["frame"], report["difference"]["path"]) == (frame, path)


async def test_a_difference_is_told_to_a_person_with_both_sides(tmp_path: Path) -> None:
    path = await record(tmp_path / "t.jsonl", "echo")
    done = executa("replay", str(path), "--", *PLUGIN, "--changed")
    assert done.returncode == 1
    for words in ("result.data.word", 'expected "tea"', 'got      "ice"', "line "):
        assert words in done.stdout


async def test_an_ignored_path_may_differ(tmp_path: Path) -> None:
    path = await record(tmp_path / "t.jsonl", "echo")
    assert replay(path, "--ignore result.data.word -- --changed")["code"] == 0


async def test_a_plugin_that_says_nothing_is_waited_for_in_bounds(tmp_path: Path) -> None:
    path = await record(tmp_path / "t.jsonl", "echo")
    report = replay(path, "--timeout 0.5 -- --silent")
    assert report["code"] == 1
    assert report["difference"]["frame"] == "answer to invoke echo"
    assert "got" not in report["difference"]


async def test_a_plugin_that_dies_is_broken_and_its_last_words_are_told(tmp_path: Path) -> None:
    path = await record(tmp_path / "t.jsonl", "echo")
    report = replay(path, " -- --dies")
    assert report["code"] == 3
    assert "ended with code 3" in report["error"]["message"]
    assert "I die now" in report["error"]["message"]


async def test_a_death_that_was_recorded_is_expected(tmp_path: Path) -> None:
    path = await record(tmp_path / "t.jsonl", "die")
    assert replay(path)["code"] == 0
    report = replay(path, "--timeout 0.5 -- --immortal")
    assert report["code"] == 1


async def test_a_transcript_that_was_cut_is_replayed_up_to_there(tmp_path: Path) -> None:
    path = await record(tmp_path / "t.jsonl", "echo", "echo")
    lines = path.read_bytes().splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if b'"method":"invoke"' in line)
    path.write_bytes(b"".join(lines[:last]) + lines[last][:40])
    report = replay(path)
    assert (report["code"], report["cut"]) == (0, True)
    assert "cut off" in report["remarks"][0]


# --- Bad input -----------------------------------------------------------------------------------


async def test_several_plugins_ask_for_one(demo_transcript: Path) -> None:
    report = replay(demo_transcript)
    assert report["code"] == 2
    assert "name one with --plugin: brief, courier, notebook" in report["error"]["message"]
    report = replay(demo_transcript, "--plugin notebok")
    assert report["code"] == 2
    assert "did you mean notebook?" in report["error"]["message"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("README.md", "--", "python"), 2, "is no transcript"),
        (("no/such.jsonl", "--", "python"), 2, "cannot be read"),
    ],
)
def test_a_wrong_file_is_a_sentence(words: tuple[str, ...], code: int, told: str) -> None:
    done = executa("replay", *words)
    assert done.returncode == code
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_no_command_and_no_such_command_are_usage(demo_transcript: Path) -> None:
    for words in ((), ("--", "no-such-command-anywhere")):
        done = executa("replay", str(demo_transcript), "--plugin", "brief", *words)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_a_command_that_exits_at_once_is_a_broken_plugin(demo_transcript: Path) -> None:
    words = (sys.executable, "-c", "import sys; print('no config', file=sys.stderr); sys.exit(9)")
    report = replay(demo_transcript, "--plugin notebook", words=words)
    assert report["code"] == 3
    assert "no config" in report["error"]["message"]


# --- Response files ------------------------------------------------------------------------------

BIG = """
from executa_sdk import Plugin
plugin = Plugin("big", "1.0.0")

@plugin.tool
def big(n: int) -> str:
    "A text of n characters."
    return "x" * n + {last!r}

plugin.run()
"""


async def test_large_results_by_file_are_recorded_compared_and_played(tmp_path: Path) -> None:
    same, other = tmp_path / "same.py", tmp_path / "other.py"
    same.write_text(BIG.format(last="x"))
    other.write_text(BIG.format(last="y"))
    path = tmp_path / "t.jsonl"
    recorder = Recorder(path)
    async with Host(NexusStub(), recorder=recorder) as host:
        host.add(PluginSpec(name="big", command=(sys.executable, str(same))))
        await host.invoke("big", "big", {"n": 700_000})
    recorder.close()
    assert '"file":true' in path.read_text()
    assert replay(path, words=(sys.executable, str(same)))["code"] == 0
    report = replay(path, words=(sys.executable, str(other)))
    assert report["code"] == 1
    assert report["difference"]["frame"] == "response file of invoke"
    assert report["difference"]["path"] == "result.data"
    done = executa("replay", str(path), "--", sys.executable, str(other))
    assert len(done.stdout) < 2000
    assert 'xxxy"' in done.stdout
    assert executa("replay", str(path), "--side", "plugin").returncode == 0
