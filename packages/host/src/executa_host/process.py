"""One child process: spawned on real pipes, drained, stopped by a bounded ladder.

The child leads a session and a process group of its own, so that a signal from the
terminal reaches the host alone and a wrapper's children can be ended with it (R-26).
Knows nothing of what is said over the pipes.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from executa_protocol.errors import CallFailed
from executa_protocol.limits import KILL_WAIT, STOP_GRACE

LAST_LINES: Final = 200
"""Lines of stderr that are kept for whoever asks what the plugin said last."""

LAST_LINE_CHARS: Final = 2000
"""Characters of one kept line; a longer one is cut."""


class SpawnFailed(CallFailed):
    """The command could not be started; the message says why and what to check."""

    def __init__(self, message: str) -> None:
        super().__init__(message, written=False)


class ChildProcess:
    """A running child. `stdin_fd` and `stdout_fd` are our ends; whoever takes them closes them.

    `ended` is done with the exit code (negative for a signal) once the process and what
    is left of its group have gone. `on_stderr` gets each line that it writes there.
    """

    def __init__(
        self, popen: "subprocess.Popen[bytes]", stdin_fd: int, stdout_fd: int, stderr_fd: int
    ) -> None:
        self._popen = popen
        self._loop = asyncio.get_running_loop()
        self.stdin_fd = stdin_fd
        self.stdout_fd = stdout_fd
        self.pid = popen.pid
        self.ended: asyncio.Future[int] = self._loop.create_future()
        self.last_words: deque[str] = deque(maxlen=LAST_LINES)
        self.on_stderr: Callable[[str], None] | None = None
        self.rung = ""
        """The last rung of the stop ladder that was taken; empty if it was never stopped."""
        self._stderr_fd = stderr_fd
        self._stderr_rest = b""
        os.set_blocking(stderr_fd, False)
        self._loop.add_reader(stderr_fd, self._drain_stderr)
        self._watch: asyncio.Task[None] | None = None
        self._pidfd = -1
        if hasattr(os, "pidfd_open"):
            self._pidfd = os.pidfd_open(self.pid)
            self._loop.add_reader(self._pidfd, self._reap)
        else:  # macOS: nothing to wait on but the process itself, so a thread does
            self._watch = self._loop.create_task(self._wait_in_thread())

    # --- Signals ------------------------------------------------------------------

    def signal_group(self, number: int) -> None:
        """Send a signal to the child and everything in its group. Harmless once it has gone."""
        # Not after the reaping: the number of a reaped group may be another's.
        if not self.ended.done():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    async def stop(self, close_stdin: Callable[[], None], grace: float = STOP_GRACE) -> None:
        """Walk the ladder until the child has gone (R-26).

        stdin is closed, after `grace` seconds SIGTERM, after as long again SIGKILL.
        """
        self.rung = "stdin"
        close_stdin()
        if await self._gone_within(grace):
            return
        self.rung = "SIGTERM"
        self.signal_group(signal.SIGTERM)
        if await self._gone_within(grace):
            return
        self.rung = "SIGKILL"
        self.signal_group(signal.SIGKILL)
        await self._gone_within(KILL_WAIT)

    async def _gone_within(self, seconds: float) -> bool:
        done, _ = await asyncio.wait((self.ended,), timeout=seconds)
        return bool(done)

    # --- The end --------------------------------------------------------------------

    def _reap(self) -> None:
        """The leader has exited: end the rest of its group, then collect it."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = -1
        # Before the leader is collected its number cannot belong to anyone else.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._finish(self._popen.wait())

    async def _wait_in_thread(self) -> None:
        code = await asyncio.to_thread(self._popen.wait)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._finish(code)

    def _finish(self, code: int) -> None:
        self._drain_stderr()
        self._close_stderr()
        if not self.ended.done():
            self.ended.set_result(code)

    # --- Stderr -----------------------------------------------------------------------

    def _drain_stderr(self) -> None:
        if self._stderr_fd < 0:
            return
        try:
            data = os.read(self._stderr_fd, 65536)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._close_stderr()
            return
        *lines, rest = (self._stderr_rest + data).split(b"\n")
        # A line without an end is cut rather than kept whole.
        self._stderr_rest = rest[: 4 * LAST_LINE_CHARS]
        for line in lines:
            self._said(line)

    def _said(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip("\r")[:LAST_LINE_CHARS]
        self.last_words.append(text)
        if self.on_stderr is not None:
            self.on_stderr(text)

    def _close_stderr(self) -> None:
        if self._stderr_fd < 0:
            return
        if self._stderr_rest:
            self._said(self._stderr_rest)
            self._stderr_rest = b""
        self._loop.remove_reader(self._stderr_fd)
        fd, self._stderr_fd = self._stderr_fd, -1
        os.close(fd)


def spawn(
    command: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None
) -> ChildProcess:
    """Start a child on three pipes of its own. Raises `SpawnFailed`.

    Our ends are close-on-exec, so that no other child keeps them open.
    """
    fds: list[int] = []
    try:
        child_in, our_in = _pipe(fds)
        our_out, child_out = _pipe(fds)
        our_err, child_err = _pipe(fds)
        popen = subprocess.Popen(  # noqa: S603 - running a configured command is the purpose
            list(command),
            stdin=child_in,
            stdout=child_out,
            stderr=child_err,
            cwd=cwd,
            env=None if env is None else dict(env),
            start_new_session=True,
        )
    except (OSError, ValueError) as fault:
        for fd in fds:
            os.close(fd)
        raise SpawnFailed(_why(command, cwd, fault)) from None
    for fd in (child_in, child_out, child_err):
        os.close(fd)
    return ChildProcess(popen, our_in, our_out, our_err)


def _pipe(fds: list[int]) -> tuple[int, int]:
    ends = os.pipe()
    fds.extend(ends)
    return ends


def _why(command: Sequence[str], cwd: str | None, fault: Exception) -> str:
    if cwd is not None and not Path(cwd).is_dir():
        return f"the working directory {cwd} does not exist"
    if isinstance(fault, FileNotFoundError):
        return f"command not found: {command[0]}; check the spelling and the PATH"
    if isinstance(fault, PermissionError):
        return f"{command[0]} may not be executed; check its permissions"
    return f"{command[0]} could not be started: {fault}"
