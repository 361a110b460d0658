"""Transcripts to look at: the demo's, recorded once, and made-up ones."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.sources import ROOT

EXECUTA = (sys.executable, "-m", "executa_host.cli")


def executa(*words: str, timeout: float = 120.0) -> "subprocess.CompletedProcess[str]":
    """Run the command in a process of its own."""
    return subprocess.run(
        [*EXECUTA, *words],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.fixture(scope="session")
def demo_transcript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The transcript of a whole demo."""
    folder = tmp_path_factory.mktemp("demo")
    path, briefed = folder / "t.jsonl", folder / "README.md"
    # A copy, because a replay reads it again.
    briefed.write_bytes((ROOT / "README.md").read_bytes())
    done = executa("demo", "--json", "--file", str(briefed), "--record", str(path))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return path


HEADER: dict[str, Any] = {
    "event": "transcript",
    "format": "executa-transcript",
    "version": 1,
    "protocol": "2.0",
    "at": 1_795_000_000.0,
}


def write(path: Path, events: Sequence[dict[str, Any]], *, end: bool = True) -> Path:
    """A transcript of these events, numbered, at a millisecond each unless they say when."""
    lines = [HEADER]
    for n, event in enumerate(events, start=1):
        members: dict[str, Any] = {"n": n, "t": n / 1000, "launch": 1, "at": 1.0, "plugin": "p"}
        lines.append(members | event)
    if end:
        lines.append({"event": "end", "at": 2.0, "n": len(lines), "lines": len(events)})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def frame(direction: str, line: Any, **members: Any) -> dict[str, Any]:
    """A frame event as the recorder writes it."""
    kind = "request" if "method" in line and "id" in line else "notification"
    if "method" not in line:
        kind = "error" if "error" in line else "response"
    found = {"event": "frame", "direction": direction, "kind": kind, "line": line}
    if "id" in line:
        found["id"] = line["id"]
    if "method" in line:
        found["method"] = line["method"]
    return found | members
