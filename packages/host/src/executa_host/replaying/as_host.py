"""Plays the host's side against a plugin: one process of it for every recorded launch."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Self

from msgspec import Raw, Struct

from executa_host.clock import SystemClock
from executa_host.filetransport import PrivateDir
from executa_host.process import ChildProcess, spawn
from executa_host.rate import RateLimit
from executa_host.replaying.comparing import MISSING, Difference
from executa_host.replaying.launches import Launch
from executa_host.replaying.player import Player
from executa_host.replaying.verdicts import Verdict
from executa_host.replaying.wire import Wire
from executa_host.spec import PluginSpec, build_env
from executa_host.stderr import StderrLog
from executa_protocol import codec
from executa_protocol.envelope import Malformed, parse
from executa_protocol.errors import ConnectionLost
from executa_protocol.limits import STDERR_PER_SECOND, STOP_GRACE
from executa_protocol.readings import TOLERANT


class PluginBroken(ConnectionLost):
    """The plugin ended before it had answered what it was asked."""


class Played(Struct):
    """What came of a replay."""

    launches: int = 0
    frames: int = 0
    verdict: Verdict | None = None


async def play_host(
    launches: Sequence[Launch], spec: PluginSpec, *, timeout: float, ignored: Sequence[str] = ()
) -> Played:
    """Play every launch in turn, up to the first difference.

    `timeout` is how many seconds the plugin may take for the next line beyond what it took when
    it was recorded. Raises `SpawnFailed` and `PluginBroken`.
    """
    played = Played()
    for launch in launches:
        player = Player(launch, "host", time.time, ignored)
        async with _Process(spec, launch) as process:
            played.verdict = await process.play(player, timeout)
        played.launches += 1
        played.frames += sum(step.done for step in player.steps)
        if played.verdict is not None:
            break
    return played


class _Process:
    """One process under replay."""

    def __init__(self, spec: PluginSpec, launch: Launch) -> None:
        self._spec = spec
        self._launch = launch
        self._dir = PrivateDir.create(spec.name)
        limit = RateLimit(STDERR_PER_SECOND, SystemClock().monotonic)
        self._stderr = StderrLog(limit, lambda _: None, lambda _: None)
        env = build_env(spec) | {"TMPDIR": str(self._dir.path)}
        try:
            self._child: ChildProcess = spawn(spec.command, self._stderr, cwd=spec.cwd, env=env)
        except BaseException:
            self._dir.sweep()
            raise
        self._wire = Wire(self._child.stdout_fd, self._child.stdin_fd)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            if not self._child.ended.done():
                await self._child.stop(self._wire.close_writing, STOP_GRACE)
        finally:
            self._wire.close()
            self._dir.sweep()

    async def play(self, player: Player, timeout: float) -> Verdict | None:
        """Play it to its end, or to the first difference."""
        for line in player.due():
            self._wire.send(line)
        while player.waiting is not None:
            found = await self._next(player, timeout)
            if found is not None:
                return found
            for line in player.due():
                self._wire.send(line)
        return await self._end(player)

    async def _next(self, player: Player, timeout: float) -> Verdict | None:
        try:
            line = await self._wire.line(timeout + _gap(player))
        except TimeoutError:
            return player.silence()
        if line is None:
            return await self._ended(player, timeout)
        answer = player.receive(line)
        if isinstance(answer, Verdict):
            return answer
        return await self._file(player, line)

    async def _file(self, player: Player, line: bytes) -> Verdict | None:
        """Take what a response file holds, if the line points to one (R-12)."""
        if b"__file_transport" not in line and b"__trans_file__" not in line:
            return None
        message = parse(line, TOLERANT)
        if message is None or isinstance(message, Malformed) or not message.pointer:
            return None
        loaded = await self._dir.load(message, TOLERANT, cwd=self._spec.cwd)
        content: dict[str, Any] = {"jsonrpc": "2.0", "id": loaded.id}
        for name, raw in (("result", loaded.result), ("error", loaded.error)):
            if isinstance(raw, Raw):
                content[name] = codec.decode_any(raw)
        return player.receive_file(content)

    async def _ended(self, player: Player, timeout: float) -> Verdict | None:
        """Its output has ended although something is owed."""
        code = await self._code(timeout)
        step = player.waiting
        if step is None:
            return None
        how = "closed its output" if code is None else f"ended with code {code}"
        said = " | ".join(list(self._stderr.lines)[-3:])
        text = f"{self._spec.name} {how} where {step.name} was expected (line {step.line.row})"
        raise PluginBroken(f"{text}; it said: {said}" if said else text, written=True)

    async def _end(self, player: Player) -> Verdict | None:
        """Everything is said: nothing more may come, and it has to end as it did."""
        launch = self._launch
        if launch.exit_code is None:
            return None  # it was cut off here, and what it would have said next is not known
        if launch.asked:
            self._wire.close_writing()
        while True:
            try:
                line = await self._wire.line(STOP_GRACE)
            except TimeoutError:
                return _exit(launch, "it still runs")
            if line is None:
                break
            found = player.receive(line)
            if isinstance(found, Verdict):
                return found
        code = await self._code(STOP_GRACE)
        return None if code == launch.exit_code else _exit(launch, code)

    async def _code(self, within: float) -> int | None:
        done, _ = await asyncio.wait((self._child.ended,), timeout=within)
        return self._child.ended.result() if done else None


def _exit(launch: Launch, got: object) -> Verdict:
    found = Difference("exit code", launch.exit_code, MISSING if got is None else got)
    return Verdict(launch.number, 0, "the end of the process", found)


def _gap(player: Player) -> float:
    """Seconds that passed, when it was recorded, before the line that is owed."""
    step = player.waiting
    if step is None:
        return 0.0
    index = player.steps.index(step)
    before = player.steps[index - 1].line.stamp.t if index else 0.0
    return max(0.0, step.line.stamp.t - before)
