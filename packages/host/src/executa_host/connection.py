"""One live plugin: its process, its peer, what was negotiated, and its invokes.

Brings a process up, hands what comes back from it to the gateway, and takes
everything down with it. When to start and to restart is decided elsewhere.
"""

import asyncio
import signal
import time
from typing import Final, Protocol

from executa_host import phases
from executa_host.filetransport import PrivateDir
from executa_host.invocation import ActiveInvoke
from executa_host.process import ChildProcess, spawn
from executa_host.restart import is_fault
from executa_host.spec import PluginSpec, build_env
from executa_protocol import transcript
from executa_protocol.aio.handler import Diagnostic
from executa_protocol.aio.peer import Peer
from executa_protocol.aio.streams import FdTransport
from executa_protocol.envelope import Message
from executa_protocol.errors import CallFailed, ConnectionLost
from executa_protocol.handshake import FALLBACK, HANDSHAKE_ID, Negotiated
from executa_protocol.manifest import Manifest
from executa_protocol.methods.core import HealthResult
from executa_protocol.readings import Finding, Reader
from executa_protocol.transcript import AnyEvent, Trace

DRAIN_AFTER_EXIT: Final = 1.0
"""Seconds in which the pipe of a process that has gone is read to its end. What it left there
counts; a daemon that keeps the pipe open does not hold the host (R-25, R-26)."""


NEWS_OF_EXIT: Final = 0.25
"""Seconds that calls in flight wait for the exit code of a process whose output has ended."""


class StartFailed(CallFailed):
    """The plugin could not be brought up; the message says in which phase, and its last words."""

    def __init__(self, message: str) -> None:
        super().__init__(message, written=False)


class Owner(Protocol):
    """Who runs connections. Nothing here may block or raise."""

    def on_reverse(self, connection: "Connection", request: Message) -> None:
        """A plugin calls back."""
        ...

    def on_notification(self, connection: "Connection", notification: Message) -> None:
        """A plugin notifies."""
        ...

    def on_gone(self, connection: "Connection") -> None:
        """The process has ended, its pipe has been read, its calls have failed. Once."""
        ...


class Connection:
    """A plugin's process from spawn to exit. `Connection.open` gives one that is ready."""

    def __init__(
        self,
        spec: PluginSpec,
        user_id: str,
        owner: Owner,
        *,
        strict: bool = False,
        trace: Trace | None = None,
        launch: int = 1,
    ) -> None:
        """Spawn the process. Raises `SpawnFailed`."""
        self.spec = spec
        self.user_id = user_id
        self.launch = launch
        self.strict = strict
        self.negotiated: Negotiated = FALLBACK
        self.manifest: Manifest | None = None
        self.invokes: dict[str, ActiveInvoke] = {}
        self.reverse_tasks: set[asyncio.Task[None]] = set()
        self.stopping = False
        self.faulted = False
        """Whether its end counts against the plugin (R-25); known once it has gone."""
        self.epitaph = ""
        """How it ended, in words."""
        self._owner = owner
        self._trace = trace
        self._deaf = asyncio.Event()  # nothing more can be heard of it
        self._private_dir = PrivateDir.create(spec.name)
        try:
            env = build_env(spec) | {"TMPDIR": str(self._private_dir.path)}
            self._process: ChildProcess = spawn(spec.command, cwd=spec.cwd, env=env)
        except CallFailed:
            self._private_dir.sweep()
            raise
        self.emit(transcript.Spawned(at=time.time(), plugin=spec.name, pid=self.pid, launch=launch))
        if trace is not None:
            self._process.on_stderr = self._said
        self.peer = Peer(
            FdTransport(self._process.stdout_fd, self._process.stdin_fd),
            self,
            strict=strict,
            first_id=HANDSHAKE_ID,
            load_pointer=self._load_pointer if spec.file_transport else None,
            on_eof=self._deaf.set,
        )
        self.peer.start()
        self._life = asyncio.get_running_loop().create_task(self._follow())

    # --- What others see -----------------------------------------------------------

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it takes calls: the process runs, its pipe is open, nobody is stopping it."""
        return not (self._deaf.is_set() or self._process.ended.done() or self.stopping)

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self._process.ended.result() if self._process.ended.done() else None

    @property
    def last_words(self) -> list[str]:
        """The last lines that it wrote to stderr."""
        return list(self._process.last_words)

    def emit(self, event: AnyEvent) -> None:
        """Add to the trace, if anybody follows it."""
        if self._trace is not None:
            self._trace(event)

    # --- Up -----------------------------------------------------------------------------

    async def open(self) -> None:
        """Initialize and describe. Raises `StartFailed`, having stopped the process."""
        try:
            await self._bring_up()
        except phases.PhaseFailed as fault:
            if fault.gone:
                await self.gone()
            else:
                await self.stop()
            code = self.exit_code
            how = f" ({describe_exit(code)})" if fault.gone and code is not None else ""
            raise StartFailed(self._quoting(f"{self.name}: {fault}{how}")) from fault
        except BaseException:
            await self.stop()
            raise

    async def _bring_up(self) -> None:
        one_file = self.spec.type == "binary" and self.launch == 1
        handshake = await self._negotiate()
        manifest, ms = await phases.describe(
            self.peer, self.reader(), fallback_name=self.spec.tool_id, slow=one_file
        )
        self.manifest = manifest
        self.emit(
            transcript.Described(
                at=time.time(),
                plugin=self.name,
                version=manifest.version,
                tools=tuple(tool.name for tool in manifest.tools),
                host_capabilities=tuple(manifest.host_capabilities),
                ms=ms,
            )
        )
        if one_file and handshake.timed_out:
            # It was still unpacking itself when it was asked.
            await self._negotiate()

    async def _negotiate(self) -> phases.Handshake:
        handshake = await phases.initialize(
            self.peer, self.reader(), file_transport=self.spec.file_transport
        )
        self.negotiated = handshake.negotiated
        if handshake.why:
            self._noise("fallback", f"protocol 1.1: {handshake.why}")
        self.emit(
            transcript.Negotiated(
                at=time.time(),
                plugin=self.name,
                version=handshake.negotiated.version,
                capabilities=tuple(sorted(handshake.negotiated.keys)),
                ms=handshake.ms,
            )
        )
        return handshake

    async def health(self) -> HealthResult:
        """Probe the plugin (seed lifecycle, Health probe). Raises as `phases.health` does."""
        return await phases.health(self.peer, self.reader())

    def reader(self) -> Reader:
        """How this plugin's spellings are read; what is tolerated goes to the trace."""
        return Reader(strict=self.strict, report=self._tolerated)

    async def _load_pointer(self, pointer: Message) -> Message:
        return await self._private_dir.load(pointer, self.reader(), cwd=self.spec.cwd)

    # --- Down ---------------------------------------------------------------------------

    async def stop(self) -> None:
        """Walk the stop ladder and wait until everything of this process has gone (R-26)."""
        if not self.stopping:
            self.stopping = True
            await self._process.stop(self.peer.close_writing)
        await self.gone()

    async def gone(self) -> None:
        """Wait until the process has ended and has been cleaned up."""
        await asyncio.shield(self._life)

    async def _follow(self) -> None:
        ended = self._process.ended
        deaf = asyncio.ensure_future(self._deaf.wait())
        await asyncio.wait((ended, deaf), return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            # Its output has ended, so it is about to go, and then it is known how.
            await asyncio.wait((ended,), timeout=NEWS_OF_EXIT)
        if not ended.done():
            self.peer.close(ConnectionLost(self._quoting("the plugin closed its output")))
            await asyncio.wait((ended,), timeout=DRAIN_AFTER_EXIT)
            if not (ended.done() or self.stopping):
                await self._process.stop(self.peer.close_writing)
        code = await ended
        # What is in the pipe still counts, and is read before any call fails.
        await asyncio.wait((deaf,), timeout=DRAIN_AFTER_EXIT)
        deaf.cancel()
        self._take_down(code)
        if self.reverse_tasks:
            await asyncio.wait(self.reverse_tasks)
        self._owner.on_gone(self)

    def _take_down(self, code: int) -> None:
        in_flight = self.peer.pending_count + self.peer.lost_calls > 0
        self.faulted = is_fault(code, asked=self.stopping, in_flight=in_flight)
        self.epitaph = self._quoting(f"the plugin {describe_exit(code)}")
        self.peer.close(ConnectionLost(self.epitaph))
        for task in self.reverse_tasks:
            task.cancel()
        self._private_dir.sweep()
        self.emit(
            transcript.Exited(
                at=time.time(),
                plugin=self.name,
                code=code,
                fault=self.faulted,
                rung=self._process.rung,
            )
        )

    def _quoting(self, text: str) -> str:
        words = self.last_words[-3:]
        return f"{text}; it said: {' | '.join(words)}" if words else text

    # --- What the peer and the process tell ------------------------------------------------

    def on_request(self, request: Message) -> None:
        self._owner.on_reverse(self, request)

    def on_notification(self, notification: Message) -> None:
        self._owner.on_notification(self, notification)

    def on_diagnostic(self, diagnostic: Diagnostic) -> None:
        self._noise(diagnostic.kind, diagnostic.message, diagnostic.sample)

    def on_closed(self, reason: Exception | None) -> None:
        del reason
        self._deaf.set()

    def _tolerated(self, finding: Finding) -> None:
        self._noise("tolerated", f"{finding.requirement}: {finding.message}")

    def _noise(self, kind: str, message: str, sample: bytes = b"") -> None:
        event = transcript.Noise(
            at=time.time(),
            plugin=self.name,
            kind=kind,
            message=message,
            sample=sample.decode(errors="replace"),
        )
        self.emit(event)

    def _said(self, line: str) -> None:
        self.emit(transcript.Stderr(at=time.time(), plugin=self.name, line=line))


def describe_exit(code: int) -> str:
    """An exit code in words: "exited with code 3", "was killed by SIGKILL"."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}"
