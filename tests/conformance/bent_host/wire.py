"""Stands between a host and a plugin's process and bends one thing: ``wire.py FAULT COMMAND...``.

Runs by its path with the standard library alone, once for each plugin of a faulty host.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.conformance.bent_host.wire_fault import Fault
from tests.conformance.bent_host.wire_faults import FAULTS


class Wire:
    """One plugin's process, its faulty host around it."""

    def __init__(self, fault: Fault, command: list[str]) -> None:
        self._fault = fault
        self._command = command
        self._lock = threading.Lock()
        self._first: list[bytes] = []
        self._child = self._spawn()

    def _spawn(self) -> "subprocess.Popen[bytes]":
        fault = self._fault
        stderr = {"inherit": None, "null": subprocess.DEVNULL, "stuck": subprocess.PIPE}
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr[fault.stderr],
            env=fault.environment(dict(os.environ)),
            start_new_session=fault.leaves_group,
        )

    def run(self) -> int:
        """Until the plugin has gone; the exit code that the host is shown."""
        signal.signal(signal.SIGTERM, self._terminated)
        self._fault.attach(self._down, self._up, self._end)
        threading.Thread(target=self._feed, daemon=True).start()
        while True:
            self._drain(self._child)
            code = self._child.wait()
            if not (self._fault.respawns and code):
                return self._fault.exit_code(code)
            self._respawn()

    def _respawn(self) -> None:
        """A new process is told what the first was told, and nobody hears what it answers."""
        child = self._spawn()
        with self._lock:
            self._child = child
        for line in self._first:
            self._write(line)
            if child.stdout is not None:
                child.stdout.readline()

    def _terminated(self, number: int, frame: object) -> None:
        """The host ends the whole group; the plugin decides when that is."""

    def _end(self, code: int) -> None:
        self._child.kill()
        os._exit(code)

    def _feed(self) -> None:
        for line in sys.stdin.buffer:
            if len(self._first) < 2:
                self._first.append(line)
            for sent in self._fault.down(line):
                self._write(sent)
        for sent in self._fault.before_end():
            self._write(sent)
        if self._child.stdin is not None:
            self._child.stdin.close()
        for number in self._fault.at_end:
            self._child.send_signal(number)

    def _down(self, line: bytes) -> None:
        self._write(line)

    def _write(self, line: bytes) -> None:
        with self._lock:
            try:
                if self._child.stdin is not None:
                    self._child.stdin.write(line)
                    self._child.stdin.flush()
            except (BrokenPipeError, ValueError):
                return

    def _drain(self, child: "subprocess.Popen[bytes]") -> None:
        if child.stdout is not None:
            for line in child.stdout:
                for sent in self._fault.up(line):
                    self._up(sent)

    def _up(self, line: bytes) -> None:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def main() -> int:
    """The program."""
    name, *command = sys.argv[1:]
    return Wire(FAULTS[name](), command).run()


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    if status < 0:
        os.kill(os.getpid(), -status)
    os._exit(status & 0xFF)
