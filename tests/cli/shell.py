"""Running the `executa` command as a person or a program does."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
NOTEBOOK: Final = "examples/notebook"
RAW: Final = ("--", sys.executable, "tests/support/raw_plugin.py")


def executa(
    *words: str, stdin: str = "", cwd: Path = ROOT, env: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """The command's end. A traceback anywhere fails the test."""
    done = subprocess.run(
        [sys.executable, "-m", "executa_host.cli", *words],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env=None if env is None else {**os.environ, **env},
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def executa_json(*words: str) -> tuple[int, dict[str, Any]]:
    """Exit code and the one JSON object of a command with ``--json``."""
    cut = words.index("--") if "--" in words else len(words)
    done = executa(*words[:cut], "--json", *words[cut:])
    (line,) = done.stdout.splitlines()
    return done.returncode, json.loads(line)


def said(done: "subprocess.CompletedProcess[str]") -> str:
    """What stood on stderr, on one line."""
    return " ".join(done.stderr.split())
