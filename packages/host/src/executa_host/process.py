"""One child process: spawned on real pipes, drained, stopped by a bounded ladder.

The child leads a session and a process group of its own, so that a signal from the
terminal reaches the host alone and a wrapper's children can be ended with it (R-26).
Knows nothing of what is said over the pipes.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from executa_host.stderr import StderrLog
from executa_protocol.errors import CallFailed
from executa_protocol.limits import KILL_WAIT, PIPE_BYTES, POLL_READS, READ_CHUNK, STOP_GRACE

_log: Final = logging.getLogger(__name__)


class SpawnFailed(CallFailed):
    """The command could not be started; the message says why and what to check."""

    def __init__(self, message: str) -> None:
        super().__init__(message, written=False)


class ChildProcess:
    """A running child. `stdin_fd` and `stdout_fd` are our ends; whoever takes them closes them.

    `ended` is done with the exit code (negative for a signal) once the process and what
    is left of its group have gone. `stderr` gets what it writes there.
    """

    def __init__(
        self,
        popen: "subprocess.Popen[bytes]",
        stdin_fd: int,
        stdout_fd: int,
        stderr_fd: int,
        stderr: StderrLog,
    ) -> None:
        self._popen = popen
        self._loop = asyncio.get_running_loop()
        self.stdin_fd = stdin_fd
        self.stdout_fd = stdout_fd
        self.pid = popen.pid
        self.ended: asyncio.Future[int] = self._loop.create_future()
        self.rung = ""
        """The last rung of the stop ladder that was taken; empty if it was never stopped."""
        self._stderr = stderr
        self._stderr_fd = stderr_fd
        os.set_blocking(stderr_fd, False)
        self._loop.add_reader(stderr_fd, self._drain_stderr)
        self._pidfd = _open_pidfd(self.pid)
        if self._pidfd >= 0:
            self._loop.add_reader(self._pidfd, self._exited)
        else:  # nothing to wait on but the process itself, so a thread does
            name = f"executa-wait-{self.pid}"
            threading.Thread(target=self._wait, name=name, daemon=True).start()

    # --- Signals ------------------------------------------------------------------

    def signal_group(self, number: int) -> None:
        """Send a signal to the child and everything in its group. Harmless once it has gone."""
        # Not after the reaping: the number of a reaped group may be another's.
        if not self.ended.done():
            _kill_group(self.pid, number)

    async def stop(
        self,
        close_stdin: Callable[[], None],
        grace: float = STOP_GRACE,
        kill_wait: float = KILL_WAIT,
    ) -> None:
        """Walk the ladder until the child has gone (R-26).

        stdin is closed, after `grace` seconds SIGTERM, after as long again SIGKILL. A child
        that even the kernel does not let go within `kill_wait` counts as gone.
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
        if not await self._gone_within(kill_wait):
            _log.error("process %d cannot be killed and is left alone", self.pid)
            self._finish(-signal.SIGKILL)

    async def _gone_within(self, seconds: float) -> bool:
        done, _ = await asyncio.wait((self.ended,), timeout=seconds)
        return bool(done)

    # --- The end --------------------------------------------------------------------

    def _exited(self) -> None:
        """The leader has exited: end the rest of its group, then collect it."""
        # Before the leader is collected its number cannot belong to anyone else.
        _kill_group(self.pid, signal.SIGKILL)
        self._finish(self._popen.wait())

    def _wait(self) -> None:
        code = self._popen.wait()
        _kill_group(self.pid, signal.SIGKILL)
        with contextlib.suppress(RuntimeError):  # the loop has closed, so nobody wants to know
            self._loop.call_soon_threadsafe(self._finish, code)

    def _finish(self, code: int) -> None:
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        # What it said last is still in the pipe; a child of its own may go on for ever.
        for _ in range(POLL_READS):
            if self._drain_stderr() < READ_CHUNK:
                break
        self._close_stderr()
        if not self.ended.done():
            self.ended.set_result(code)

    # --- Stderr -----------------------------------------------------------------------

    def _drain_stderr(self) -> int:
        """Read once; how many bytes there were."""
        if self._stderr_fd < 0:
            return 0
        try:
            data = os.read(self._stderr_fd, READ_CHUNK)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            data = b""
        if data:
            self._stderr.feed(data)
        else:
            self._close_stderr()
        return len(data)

    def _close_stderr(self) -> None:
        if self._stderr_fd >= 0:
            self._loop.remove_reader(self._stderr_fd)
            fd, self._stderr_fd = self._stderr_fd, -1
            os.close(fd)
            self._stderr.close()


def spawn(
    command: Sequence[str],
    stderr: StderrLog,
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> ChildProcess:
    """Start a child on three pipes of its own. Raises `SpawnFailed`.

    Our ends are close-on-exec, so that no other child keeps them open.
    """
    fds: list[int] = []
    try:
        child_in, our_in = _wide_pipe(fds)
        our_out, child_out = _wide_pipe(fds)
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
    return ChildProcess(popen, our_in, our_out, our_err, stderr)


def _pipe(fds: list[int]) -> tuple[int, int]:
    ends = os.pipe()
    fds.extend(ends)
    return ends


def _wide_pipe(fds: list[int]) -> tuple[int, int]:
    """A pipe that takes more than the usual 64 KiB, where the system lets us."""
    ends = _pipe(fds)
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(ends[0], fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return ends


def _open_pidfd(pid: int) -> int:
    """A descriptor that becomes readable when the process ends; -1 where there is none."""
    if hasattr(os, "pidfd_open"):
        # An old kernel, a sandbox that forbids it, or no descriptor left.
        with contextlib.suppress(OSError):
            return os.pidfd_open(pid)
    return -1


def _kill_group(pid: int, number: int) -> None:
    """Signal the group that `pid` leads, or `pid` alone if it has left its own group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            os.kill(pid, number)


def _why(command: Sequence[str], cwd: str | None, fault: Exception) -> str:
    if cwd is not None and not Path(cwd).is_dir():
        return f"the working directory {cwd} does not exist"
    if isinstance(fault, FileNotFoundError):
        return f"command not found: {command[0]}; check the spelling and the PATH"
    if isinstance(fault, PermissionError):
        return f"{command[0]} may not be executed; check its permissions"
    return f"{command[0]} could not be started: {fault}"
