"""A recording holds every frame both ways and every event, in order, and survives a crash."""

import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from executa_host import Host, PluginSpec
from executa_host.transcripts import recorder as recording
from executa_host.transcripts.recorder import Recorder
from executa_nexus_stub import NexusStub
from executa_protocol import transcript
from executa_protocol.errors import ExecutaError, UsageError
from tests.host.conftest import raw_command

NOISE = transcript.Noise(at=1.0, kind="k", message="m")


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def frames_of(path: Path, direction: str = "") -> list[dict[str, Any]]:
    return [
        line
        for line in lines_of(path)
        if line["event"] == "frame" and direction in ("", line["direction"])
    ]


async def record(path: Path, *calls: tuple[str, dict[str, Any]], **spec: Any) -> list[Any]:
    recorder = Recorder(path)
    outcomes: list[Any] = []
    try:
        async with Host(NexusStub(), recorder=recorder) as host:
            host.add(PluginSpec(name="raw", command=raw_command(), **spec))
            for tool, arguments in calls:
                try:
                    outcomes.append(await host.invoke("raw", tool, arguments))
                except ExecutaError as fault:
                    outcomes.append(fault)
    finally:
        recorder.close()
    return outcomes


async def test_every_frame_is_there_both_ways_with_what_it_belongs_to(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    reverse = {"method": "storage/get", "params": {"key": "k", "scope": "tool"}}
    (outcome,) = await record(path, ("reverse", reverse))
    header, *events, end = lines_of(path)
    assert (header["event"], header["format"]) == ("transcript", "executa-transcript")
    assert header["protocol"] == "2.0"
    assert end["event"] == "end"
    assert end["lines"] == len(events)
    assert [event["n"] for event in events] == list(range(1, len(events) + 1))
    assert [event["t"] for event in events] == sorted(event["t"] for event in events)
    shape = [(f["direction"], f["kind"], f["method"], f.get("id")) for f in frames_of(path)]
    assert shape[:4] == [
        ("in", "request", "initialize", 0),
        ("out", "response", "initialize", 0),
        ("in", "request", "describe", 1),
        ("out", "response", "describe", 1),
    ]
    asked, called, answered, returned = frames_of(path)[4:]
    assert (asked["kind"], asked["method"]) == ("request", "invoke")
    assert (called["kind"], called["method"]) == ("request", "storage/get")
    assert (answered["direction"], answered["method"]) == ("in", "storage/get")
    assert (returned["kind"], returned["method"]) == ("response", "invoke")
    same = {frame["invoke_id"] for frame in (asked, called, answered, returned)}
    assert same == {outcome.invoke_id}
    assert {event["launch"] for event in events if event["event"] == "frame"} == {1}
    kinds = [event["event"] for event in events]
    assert kinds.index("spawned") < kinds.index("frame") < kinds.index("exited")


async def test_lines_are_recorded_as_they_crossed(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    line = '{"id":$ID, "jsonrpc" : "2.0","result":{"success":true,"data":[1.10,1e2,"\\u00e9"]}}'
    await record(path, ("raw", {"line": line}))
    assert '"result":{"success":true,"data":[1.10,1e2,"\\u00e9"]}' in path.read_text()


async def test_a_line_that_is_no_json_is_kept_as_text(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    line = (
        'Loading model... token=abcdefgh1234\n{"id":$ID,"jsonrpc":"2.0","result":{"success":true}}'
    )
    await record(path, ("raw", {"line": line}))
    texts = [frame["text"] for frame in frames_of(path, "out") if "text" in frame]
    assert len(texts) == 1
    assert re.fullmatch(r"Loading model\.\.\. token=\[redacted:token:\d+\]", texts[0])


async def test_a_process_that_dies_is_recorded_to_its_exit(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    await record(path, ("die", {"code": 3}))
    exits = [line for line in lines_of(path) if line["event"] == "exited"]
    assert [(e["code"], e["fault"], e["launch"]) for e in exits] == [(3, True, 1)]


async def test_credentials_of_the_spec_and_its_environment_are_known(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    await record(
        path,
        ("echo", {"value": "swordfish and zanzibar and letmein99"}),
        credentials={"A": "swordfish"},
        env={"MY_PASSWORD": "letmein99", "PLAIN": "zanzibar"},
        secret_env=("PLAIN",),
    )
    text = path.read_text()
    for secret in ("swordfish", "zanzibar", "letmein99"):
        assert secret not in text
    assert "[redacted:A:" in text


# --- The file --------------------------------------------------------------------------------


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    Recorder(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_transcript_is_replaced_or_continued(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    for append in (False, False, True):
        Recorder(path, append=append).close()
    assert [line["event"] for line in lines_of(path)] == ["transcript", "end"] * 2


def test_another_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "host.toml"
    path.write_text("[plugins.a]\n")
    with pytest.raises(UsageError, match="is no transcript; it was left alone"):
        Recorder(path)
    assert path.read_text() == "[plugins.a]\n"


def test_two_recordings_into_one_file_are_refused(tmp_path: Path) -> None:
    first = Recorder(tmp_path / "t.jsonl")
    with pytest.raises(UsageError, match="being recorded"):
        Recorder(tmp_path / "t.jsonl")
    first.close()


@pytest.mark.parametrize("name", ["", "no/such/folder/t.jsonl"])
def test_a_file_that_cannot_be_had_is_a_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be recorded to: "):
        Recorder(tmp_path / name)


def test_the_command_line_goes_without_its_secrets(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    words = ("executa", "serve", "--api-key", "hunter2222", "--token=hunter3333", "--port", "1")
    Recorder(path, command=words).close()
    command = lines_of(path)[0]["command"]
    assert "hunter" not in str(command)
    assert command[:3] == ["executa", "serve", "--api-key"]
    assert command[-2:] == ["--port", "1"]


def test_parts_of_child_processes_follow_whole_or_cut_off(tmp_path: Path) -> None:
    path, whole, cut = tmp_path / "t.jsonl", tmp_path / "whole", tmp_path / "cut"
    Recorder(whole).close()
    cut.write_bytes(whole.read_bytes().splitlines()[0] + b'\n{"n":1,"ev')
    Recorder(path).close([cut, whole, tmp_path / "never-began"])
    _, _, header, half, *third = path.read_bytes().splitlines()
    assert b'"transcript"' in header
    assert half == b'{"n":1,"ev'
    assert [json.loads(line)["event"] for line in third] == ["transcript", "end"]
    assert not whole.exists()
    assert not cut.exists()


# --- Crashes, slow disks, broken disks -----------------------------------------------------------

CRASH = """
import os, sys, time
from executa_host.transcripts.recorder import Recorder
from executa_protocol import transcript
recorder = Recorder(sys.argv[1])
for n in range(1000):
    recorder.take(transcript.Noise(at=1.0, kind="k", message=str(n)))
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_killed_host_leaves_a_transcript_that_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    child = subprocess.Popen(
        [sys.executable, "-c", CRASH, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdin is not None
    child.stdout.readline()
    for _ in range(2000):  # at most ten seconds
        if path.read_bytes().count(b"\n") > 10:
            break
        threading.Event().wait(0.005)
    child.send_signal(signal.SIGKILL)
    child.wait(timeout=20)
    child.stdout.close()
    child.stdin.close()
    *whole, last = path.read_bytes().split(b"\n")
    events = [json.loads(line) for line in whole]
    assert events[0]["event"] == "transcript"
    assert len(events) > 10
    assert [event["n"] for event in events[1:]] == list(range(1, len(events)))
    assert last == b"" or not last.endswith(b"}")


def test_a_disk_that_is_too_slow_drops_lines_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "QUEUE_BYTES", 4 * recording.EVENT_BYTES)
    monkeypatch.setattr(recording, "ROOM_WAIT", 0.0)
    gate = threading.Event()
    recorder = Recorder(tmp_path / "t.jsonl")

    def block(writer: object) -> list[bytes]:
        del writer
        gate.wait(20)
        return []

    recorder.put(recording.EVENT_BYTES, block)
    for _ in range(20):
        recorder.take(NOISE)
    gate.set()
    recorder.close()
    *_, told, end = lines_of(recorder.path)
    assert told["kind"] == "unrecorded"
    assert end["dropped"] >= 16


def test_a_full_disk_ends_the_recording_and_nothing_else() -> None:
    recorder = Recorder(Path("/dev/full"))
    for _ in range(10):
        recorder.take(NOISE)
    recorder.close()
    assert "could not be recorded any further: No space left" in recorder.fault


def test_a_closed_recorder_takes_nothing_more(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "t.jsonl")
    recorder.close()
    size = recorder.path.stat().st_size
    recorder.take(NOISE)
    recorder.close()
    assert recorder.path.stat().st_size == size
