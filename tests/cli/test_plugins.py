"""`executa plugins` and `executa logs` at a host that serves."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from queue import Queue
from threading import Thread
from typing import IO

import pytest

from executa_host.actions.requests import ALL_SCOPES
from tests.api.served import ROOT, Served
from tests.api.shell import Shell

SECONDS = 60


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("host")) as served:
        yield served


@pytest.fixture
def admin(served: Served) -> dict[str, str]:
    """The environment of somebody who may do everything."""
    return served.environment(served.key("root", ALL_SCOPES))


@pytest.fixture
def shell(
    admin: dict[str, str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.setenv("COLUMNS", "200")
    for name, value in admin.items():
        monkeypatch.setenv(name, value)
    return Shell(capfd)


def _die(shell: Shell, code: int) -> None:
    """Let the plugin `raw` write a line to stderr and end with this code."""
    given = json.dumps({"code": code})
    words = ("actions", "submit", "raw.die", "--input", given, "--mode", "sync")
    assert shell.run(*words) == 1


def test_plugins_are_listed_restarted_and_reloaded(shell: Shell) -> None:
    told = shell.json("plugins", "status")
    assert {each["plugin"] for each in told["plugins"]} == {"raw", "notebook"}
    assert shell.run("plugins", "status") == 0
    assert "notebook" in shell.out
    started = shell.json("plugins", "restart", "notebook")["plugin"]
    assert started["state"] == "ready"
    assert shell.run("plugins", "status", "notebook") == 0
    assert "notebook ready" in shell.out
    assert f"process    {started['pid']}" in shell.out
    reloaded = shell.json("plugins", "reload", "notebook")["plugin"]
    assert reloaded["launches"] == started["launches"] + 1
    assert reloaded["pid"] != started["pid"]
    assert shell.run("plugins", "reload", "notebook") == 0
    assert "notebook ready" in shell.out


def test_what_is_wrong_is_a_sentence_and_a_code(
    shell: Shell, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shell.run("plugins", "restart", "nobody") == 2
    assert "no plugin has this name" in shell.said
    assert shell.run("logs", "nobody") == 2
    assert shell.run("logs", "raw", "--lines", "0") == 2
    assert "--lines" in shell.said
    told = shell.json("plugins", "status", "nobody", code=2)
    assert told["error"]["code"] == "UNKNOWN_PLUGIN"
    monkeypatch.setenv("EXECUTA_API_KEY", served.key())
    assert shell.run("plugins", "status") == 4
    assert "admin" in shell.said
    monkeypatch.setenv("EXECUTA_API_URL", "http://127.0.0.1:9")
    assert shell.run("logs", "raw") == 3
    assert "executa serve" in shell.said


def test_the_last_lines_of_stderr_are_shown(shell: Shell) -> None:
    assert shell.run("plugins", "restart", "raw") == 0
    _die(shell, 3)
    assert shell.run("logs", "raw", "--lines", "1") == 0
    assert shell.out == "about to die\n"
    assert shell.run("logs", "raw", "--json") == 0
    *_, last = map(json.loads, shell.out.splitlines())
    assert (last["plugin"], last["line"]) == ("raw", "about to die")


def _pass_on(stream: IO[str], lines: "Queue[str]") -> None:
    for line in stream:
        lines.put(line)


def test_a_log_is_followed_across_restarts_until_ctrl_c(
    shell: Shell, admin: dict[str, str]
) -> None:
    assert shell.run("plugins", "restart", "raw") == 0
    _die(shell, 4)
    words = ("logs", "raw", "-f", "--json", "--lines", "1")
    child = subprocess.Popen(
        [sys.executable, "-m", "executa_host.cli", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **admin},
    )
    lines: Queue[str] = Queue()
    assert child.stdout
    reading = Thread(target=_pass_on, args=(child.stdout, lines))
    reading.start()
    try:
        first = json.loads(lines.get(timeout=SECONDS))
        assert shell.run("plugins", "restart", "raw") == 0
        _die(shell, 5)
        second = json.loads(lines.get(timeout=SECONDS))
        assert (first["line"], second["line"]) == ("about to die", "about to die")
        child.send_signal(signal.SIGINT)
        assert child.wait(SECONDS) == 130
    finally:
        child.kill()
        reading.join(SECONDS)
        assert child.stderr
        assert "Traceback" not in child.stderr.read()
        child.stdout.close()
        child.stderr.close()
        child.wait()


def test_following_ends_when_nobody_reads_any_more(shell: Shell, admin: dict[str, str]) -> None:
    assert shell.run("plugins", "restart", "raw") == 0
    _die(shell, 6)
    child = subprocess.Popen(
        [sys.executable, "-m", "executa_host.cli", "logs", "raw", "-f", "--lines", "1"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **admin},
    )
    assert child.stdout
    try:
        assert child.stdout.readline() == "about to die\n"
        child.stdout.close()
        assert shell.run("plugins", "restart", "raw") == 0
        _die(shell, 7)
        assert child.wait(SECONDS) == 0
    finally:
        child.kill()
        child.wait()


def test_a_narrow_terminal_shows_names_and_states(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert shell.run("plugins", "status") == 0
    assert max(map(len, shell.out.splitlines())) <= 40
    assert "notebook" in shell.out
