"""`executa show`: the timeline in a terminal, in a pipe and as JSON; filters; bad input."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import tempfile
import termios
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_host.transcripts.items import Item
from executa_host.transcripts.model import build_tree
from executa_host.transcripts.page import make_page
from executa_host.transcripts.reading import read_transcript
from tests.support.sources import ROOT
from tests.transcripts.conftest import EXECUTA, executa, frame, write

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def invoke_of(name: str, number: int, **members: Any) -> list[dict[str, Any]]:
    asked = {"jsonrpc": "2.0", "id": number, "method": "invoke", "params": {"tool": name}}
    return [
        {"event": "invoke", "invoke_id": f"i{number}", "tool": name, **members},
        frame("in", asked, invoke_id=f"i{number}"),
    ]


def ended(name: str, number: int, outcome: str = "ok") -> list[dict[str, Any]]:
    answer = {"jsonrpc": "2.0", "id": number, "result": {"success": True}}
    return [
        frame("out", answer, method="invoke", invoke_id=f"i{number}"),
        {
            "event": "invoke_end", "invoke_id": f"i{number}", "tool": name, "outcome": outcome,
            "ms": 1.0,
        },
    ]  # fmt: skip


def reverse(method: str, number: str, invoke: str, verdict: str = "served") -> list[dict[str, Any]]:
    asked = {"jsonrpc": "2.0", "id": number, "method": method}
    error = {"code": -32021, "message": "not granted"}
    outcome: dict[str, Any] = {"result": {}} if verdict == "served" else {"error": error}
    answer = {"jsonrpc": "2.0", "id": number, **outcome}
    step = {} if verdict == "served" else {"step": "manifest", "code": -32021, "message": "no"}
    return [
        frame("out", asked, invoke_id=invoke),
        {
            "event": "reverse_end", "method": method, "call": 1, "verdict": verdict, "ms": 1.0,
            "invoke_id": invoke, **step,
        },
        frame("in", answer, method=method, invoke_id=invoke),
    ]  # fmt: skip


NESTED = [
    {"event": "action", "action_id": "act_1", "attempt": 1, "invoke_id": "i1"},
    *invoke_of("outer", 1),
    *reverse("agent/session.run", "p1", "i1")[:1],
    *invoke_of("inner", 2, parent="i1"),
    *reverse("storage/get", "p2", "i2", "refused"),
    *ended("inner", 2),
    *reverse("agent/session.run", "p1", "i1")[1:],
    *ended("outer", 1),
]


def tree_of(path: Path) -> list[Item]:
    return build_tree(read_transcript(path)).roots


def outline(items: list[Item]) -> list[Any]:
    return [
        (item.kind, item.label, outline(item.children)) if item.children else item.label
        for item in items
        if item.kind != "frame"
    ]


def test_calls_are_nested_action_invoke_reverse_call_frames(tmp_path: Path) -> None:
    (action,) = tree_of(write(tmp_path / "t.jsonl", NESTED))
    (outer,) = action.children
    run = next(item for item in outer.children if item.kind == "reverse")
    inner = next(item for item in run.children if item.kind == "invoke")
    refused = next(item for item in inner.children if item.kind == "reverse")
    assert [action.label, outer.label, run.label] == ["act_1", "p.outer", "agent/session.run"]
    assert (inner.label, refused.label, refused.status) == ("p.inner", "storage/get", "refused")
    assert [child.arrow for child in refused.children] == ["←", "→"]
    assert refused.detail.startswith("refused at step manifest")
    assert action.end == outer.end > run.end > inner.end > refused.end


def test_the_answer_of_each_concurrent_call_goes_to_its_own(tmp_path: Path) -> None:
    first, second = (
        reverse("storage/get", "p1", "i1"),
        reverse("storage/get", "p2", "i1", "refused"),
    )
    events = [*invoke_of("t", 1), first[0], second[0], *second[1:], *first[1:], *ended("t", 1)]
    (invoke,) = tree_of(write(tmp_path / "t.jsonl", events))
    calls = [item for item in invoke.children if item.kind == "reverse"]
    assert [call.status for call in calls] == ["ok", "refused"]
    assert calls[0].end > calls[1].end


@given(st.lists(st.sampled_from(NESTED), max_size=20), st.booleans())
def test_whatever_the_order_of_lines_there_is_a_tree(
    events: list[dict[str, Any]], end: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = read_transcript(write(Path(folder) / "t.jsonl", events, end=end))
        tree = build_tree(found)
        page = make_page(found, tree, tree.roots)
    items = [item for root in tree.roots for item in root.walk()]
    assert all(item.start <= item.end for item in items)
    assert sum(item.kind == "frame" for item in items) == sum(
        event["event"] == "frame" for event in events
    )
    assert page.count("</script>") == 2


def test_what_was_cut_stays_open(tmp_path: Path) -> None:
    (action,) = tree_of(write(tmp_path / "t.jsonl", NESTED[:6], end=False))
    assert {i.status for i in action.walk() if i.kind in ("invoke", "reverse")} == {"open"}


def test_the_demo_has_every_invoke_in_its_tree(demo_transcript: Path) -> None:
    items = [item for root in tree_of(demo_transcript) for item in root.walk()]
    invokes = {item.label for item in items if item.kind == "invoke"}
    assert invokes == {
        "notebook.remember", "notebook.recall", "brief.brief", "brief.gist", "brief.overreach",
        "courier.carry", "courier.pay", "courier.wait",
    }  # fmt: skip
    run = next(item for item in items if item.label == "agent/session.run")
    assert "notebook.recall" in {child.label for child in run.children}
    actions = [item for item in items if item.kind == "action"]
    assert {child.label for action in actions for child in action.children} == {
        "courier.carry", "courier.pay", "courier.wait",
    }  # fmt: skip


# --- The command -------------------------------------------------------------------------------


def test_in_a_pipe_it_prints_plain_lines_and_what_there_was(demo_transcript: Path) -> None:
    done = executa("show", str(demo_transcript))
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "storage/get" in done.stdout
    assert "refused at step manifest" in done.stdout
    assert re.search(r"\d+ invokes, \d+ reverse calls, ", done.stdout.splitlines()[-1])


@pytest.mark.parametrize("columns", [40, 132])
def test_in_a_terminal_no_line_is_wider_than_it(demo_transcript: Path, columns: int) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    with subprocess.Popen(
        [*EXECUTA, "show", str(demo_transcript)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env=environment | {"TERM": "xterm-256color"},
    ) as child:
        os.close(theirs)
        output = b""
        while True:
            try:
                chunk = os.read(ours, 1 << 16)
            except OSError:  # its end, as Linux tells it
                break
            if not chunk:
                break
            output += chunk
        assert child.wait(timeout=60) == 0
    os.close(ours)
    text = output.decode()
    assert "\x1b[1;31m" in text, "a refusal is red"
    lines = COLOURS.sub("", text).splitlines()
    assert max(map(len, lines)) <= columns
    assert any("brief.overreach" in line for line in lines)


def test_json_is_one_object_with_the_tree(demo_transcript: Path) -> None:
    done = executa("show", str(demo_transcript), "--json")
    document = json.loads(done.stdout)
    assert document["ok"]
    assert document["totals"]["refused"] == 1
    assert [part["whole"] for part in document["parts"]] == [True, False, True]
    assert any(item["label"] == "brief.brief" for item in document["items"])


@pytest.mark.parametrize(
    ("options", "there", "gone"),
    [
        (("--plugin", "courier"), "courier.pay", "brief.brief"),
        (("--invoke", "brief.gist"), "agent/complete", "storage/set"),
        (("--errors",), "brief.overreach", "notebook.remember"),
        (("--depth", "1"), "brief.brief", "sampling/createMessage"),
    ],
)
def test_filters_leave_what_was_asked_for(
    demo_transcript: Path, options: tuple[str, ...], there: str, gone: str
) -> None:
    done = executa("show", str(demo_transcript), *options)
    assert done.returncode == 0
    assert there in done.stdout
    assert gone not in done.stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--plugin", "notebok"), "no plugin 'notebok'"),
        (("--invoke", "zzz"), "no invoke 'zzz'"),
        (("--depth", "0"), "--depth: expected 1 or more"),
        (("--html", "no/such/folder/t.html"), "cannot be written"),
    ],
)
def test_a_wrong_option_is_a_sentence_and_exit_code_2(
    demo_transcript: Path, options: tuple[str, ...], told: str
) -> None:
    done = executa("show", str(demo_transcript), *options)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    told_as_json = executa("show", str(demo_transcript), *options, "--json")
    assert told_as_json.returncode == 2
    assert told in json.loads(told_as_json.stdout)["error"]["message"]


def test_a_page_never_takes_the_place_of_its_transcript(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", NESTED)
    before = path.read_bytes()
    done = executa("show", str(path), "--html", str(path))
    assert done.returncode == 2
    assert "is the transcript itself" in done.stderr
    assert path.read_bytes() == before


def test_a_foreign_file_is_a_sentence_and_exit_code_2() -> None:
    done = executa("show", "README.md")
    assert done.returncode == 2
    assert "is no transcript" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_has_seen_enough_is_no_error(demo_transcript: Path) -> None:
    command = f"{EXECUTA[0]} -m executa_host.cli show {demo_transcript} | head -n 1"
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""


def test_control_characters_never_reach_the_terminal(tmp_path: Path) -> None:
    evil = {"event": "stderr", "line": "a\u001b[2Jb\u202ec"}
    done = executa("show", str(write(tmp_path / "t.jsonl", [evil])))
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
