"""A terminal with a program in it: what a person would see and type.

Reads the program's output until something stands there, within a bound. Nothing is drawn:
what moves the cursor is taken out, the rest is the text in the order in which it came.
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

PATIENCE: Final = 45.0
CTRL_C: Final = "\x03"
CTRL_D: Final = "\x04"
TAB: Final = "\t"
UP: Final = "\x1b[A"

_LAUNCH: Final = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # the terminal is its session's: Ctrl-C is a signal
os.execv(sys.executable, [sys.executable, "-m", "executa_host.cli", *sys.argv[1:]])
"""
_ESCAPES: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[@-Z\\-_=>]|\r")


class Terminal:
    """Runs ``executa WORDS`` on a pseudo-terminal of `columns` columns."""

    def __init__(
        self,
        *words: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        columns: int = 100,
    ) -> None:
        self._fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        # Without an answer to "where is the cursor" one prompt would wait for it.
        plain = {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "COLUMNS": str(columns)}
        self._child = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, *words],
            cwd=cwd,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**os.environ, **plain, **(env or {})},
        )
        os.close(theirs)
        self.raw = ""
        """All that came."""
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait(timeout=PATIENCE)
        os.close(self._fd)

    @property
    def text(self) -> str:
        """All that came, as text."""
        return _ESCAPES.sub("", self.raw)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._fd, text.encode())

    def enter(self, line: str) -> None:
        """Type a line and press Enter."""
        self.type(f"{line}\r")

    def until(self, pattern: str, *, again: str = "") -> str:
        """Read until `pattern` stands after what was waited for before; the text up to its end.

        `again` are keys that are pressed anew each second in which nothing comes.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            text = self.text
            found = re.compile(pattern).search(text, self._seen)
            if found is not None:
                start, self._seen = self._seen, found.end()
                return text[start : found.end()]
            came = self._more(min(deadline, time.monotonic() + 1) if again else deadline)
            if not came and again and time.monotonic() < deadline:
                self.type(again)
                continue
            assert came, f"{pattern!r} did not come; last came:\n{text[self._seen :][-2000:]}"

    def end(self) -> int:
        """Read to the end, and give the exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._more(deadline):
            pass
        return self._child.wait(timeout=max(0.1, deadline - time.monotonic()))

    def signal(self, number: int) -> None:
        """Send the program a signal."""
        self._child.send_signal(number)

    def _more(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # what Linux says when the other end has closed
            return False
        self.raw += data.decode(errors="replace")
        return bool(data)
