"""`executa serve` as a process of its own, with a real plugin, on a folder of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import pytest

from executa_host.actions.requests import OWN_WORK, Scope
from executa_host.keys import KeyFile, keys_beside

ROOT = Path(__file__).parents[2]
SECONDS = 60

CONFIG = """
[nexus]
kind = "stub"
options = {{ open_to_all = true }}

[plugins.raw]
command = [{python}, {plugin}]

[plugins.notebook]
command = [{python}, "plugin.py"]
cwd = {notebook}
"""


def executa(
    *words: str, env: dict[str, str] | None = None, stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Run the command line; it never shows a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "executa_host.cli", *words],
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, **(env or {})},
    )
    assert "Traceback" not in done.stderr
    return done


class Served:
    """A host that serves. It can be ended in every way, and started again."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "state" / "actions.db"
        self.keys = KeyFile(keys_beside(self.store))
        self.config = folder / "host.toml"
        self.config.write_text(
            CONFIG.format(
                python=msgspec.json.encode(sys.executable).decode(),
                plugin=msgspec.json.encode(str(ROOT / "tests/support/raw_plugin.py")).decode(),
                notebook=msgspec.json.encode(str(ROOT / "examples/notebook")).decode(),
            )
        )
        self.program: tuple[str, ...] = (sys.executable, "-m", "executa_host.cli")
        self._log = folder / "log.txt"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        if self._process is None:
            self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.signal(signal.SIGKILL if fault else signal.SIGTERM)
            self.ended()

    def start(self, *options: str, port: int | None = 0, store: bool = True) -> None:
        """Start it, and wait until it takes requests.

        Without `port` and `store` they are what the configuration says.
        """
        words = ["serve", "--config", str(self.config), "--json", *options]
        words += [] if port is None else ["--port", str(port)]
        words += ["--store", str(self.store)] if store else []
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.program, *words],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.ended()
            pytest.fail(f"it did not start: {self.log}")
        self.url = msgspec.json.decode(line, type=dict[str, Any])["url"]

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def ended(self) -> int:
        """Wait for its end, and give its exit code."""
        process, self._process = self._process, None
        assert process is not None
        code = process.wait(SECONDS)
        assert process.stdout is not None
        process.stdout.close()
        return code

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def log(self) -> str:
        """What it wrote to stderr."""
        return self._log.read_text()

    def key(self, principal: str = "ada", scopes: frozenset[Scope] = OWN_WORK) -> str:
        """A new key."""
        return self.keys.create(principal, scopes=scopes).text

    def environment(self, key: str = "") -> dict[str, str]:
        """What a command needs to speak to it."""
        return {"EXECUTA_API_URL": self.url, "EXECUTA_API_KEY": key or self.key()}
