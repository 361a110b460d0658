"""One live plugin: its process, its peer, what was negotiated, and its invokes.

Brings a process up, hands what comes back from it to the gateway, and takes
everything down with it. When to start and to restart is decided elsewhere.
"""

import asyncio
import logging
import time
from typing import Final

from executa_host.filetransport import PrivateDir
from executa_host.occupancy import Occupancy
from executa_host.owner import Owner
from executa_host.phases import PhaseFailed, Phases
from executa_host.process import spawn
from executa_host.restart import describe_exit, is_fault
from executa_host.routing import ToolRoute, routes_of
from executa_host.runtime import Runtime
from executa_host.spec import PluginSpec, build_env
from executa_host.telling import Telling
from executa_protocol import transcript
from executa_protocol.aio.handler import Diagnostic
from executa_protocol.aio.peer import Peer
from executa_protocol.aio.streams import FdTransport
from executa_protocol.envelope import Message
from executa_protocol.errors import CallFailed, ConnectionLost
from executa_protocol.gate import Refusal
from executa_protocol.handshake import FALLBACK, HANDSHAKE_ID, Negotiated
from executa_protocol.manifest import Manifest
from executa_protocol.methods.plain_answer import read_plain_answer
from executa_protocol.nexus import Grants
from executa_protocol.transcript import AnyEvent

_log: Final = logging.getLogger(__name__)

NEWS_OF_EXIT: Final = 0.25
"""Seconds that calls in flight wait for the exit code of a process whose output has ended."""

LINGER: Final = 1.0
"""Seconds in which a process that has closed its output may leave by itself."""


class StartFailed(CallFailed):
    """The plugin could not be brought up; the message says in which phase, and its last words."""

    def __init__(self, message: str) -> None:
        super().__init__(message, written=False)


class Connection:
    """A plugin's process from spawn to exit. `open` makes it ready.

    `takes_calls` says whether new invokes may be written to it, `retiring` that it is to
    stop once those that run have ended, `condemned` why it is replaced although it runs
    (R-24). `faulted` and `epitaph`, known once it has gone, say whether its end counts
    against the plugin (R-25), and how it ended.
    """

    def __init__(
        self,
        spec: PluginSpec,
        user_id: str,
        owner: Owner,
        runtime: Runtime,
        *,
        launch: int,
        first: bool,
    ) -> None:
        """Spawn the process; `first` says that this spec never was. Raises `SpawnFailed`."""
        self.spec = spec
        self.name = spec.name
        self.user_id = user_id
        self.owner = owner
        self._first = first
        self._up = False
        self.negotiated: Negotiated = FALLBACK
        self.manifest: Manifest | None = None
        self.declared: tuple[str, ...] = ()
        self.credentials: tuple[str, ...] = ()  # their names
        self.routes: dict[str, ToolRoute] = {}
        self.needs_nexus = False
        """Whether its invokes are opened at nexus: it declares capabilities or credentials."""
        self.grants: Grants | None = None
        """What the user allowed it when nexus was last asked."""
        self.occupancy = Occupancy(runtime.clock.monotonic())
        self.invokes = self.occupancy.invokes
        """The invokes that reverse calls may belong to."""
        self.gate: dict[str, Refusal | None] = {}  # by method, for the life of the process
        self.reverse_tasks: set[asyncio.Task[None]] = set()
        self.takes_calls = False
        self.stopping = False
        self.retiring = False
        self.condemned = ""
        self.faulted = False
        self.epitaph = ""
        self.telling = Telling(runtime, spec.name, user_id)
        self.reader = self.telling.reader
        self.followers = runtime.followers
        self._runtime = runtime
        self._deaf = asyncio.Event()  # nothing more can be heard of it
        self._ladder: asyncio.Task[None] | None = None
        self._private_dir = PrivateDir.create(spec.name)
        env = build_env(spec, secrets=runtime.hidden) | {"TMPDIR": str(self._private_dir.path)}
        try:
            self._process = spawn(spec.command, self.telling.stderr, cwd=spec.cwd, env=env)
        except CallFailed:
            self._private_dir.sweep()
            raise
        self.pid = self._process.pid
        self._transport = FdTransport(
            self._process.stdout_fd, self._process.stdin_fd, turns=runtime.turns
        )
        recorder, user = runtime.recorder, self.telling.user
        record = None if recorder is None else recorder.process(spec, user, launch, env)
        self._record = record
        self.peer = Peer(
            self._transport,
            self,
            strict=runtime.strict,
            first_id=HANDSHAKE_ID,
            load_pointer=self._load_pointer if spec.file_transport else None,
            on_eof=self._heard_last,
            tap=None if record is None else record.tap,
        )
        self.emit(transcript.Spawned(at=time.time(), pid=self.pid, launch=launch))
        self.peer.start()
        self._life = asyncio.get_running_loop().create_task(self._follow())
        runtime.background.keep(self._life)

    # --- What others see -----------------------------------------------------------

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self._process.ended.result() if self._process.ended.done() else None

    @property
    def busy(self) -> bool:
        """Whether an invoke runs in it, or a call waits for its answer."""
        return self.occupancy.accepted > 0 or self.peer.pending_count > 0

    def emit(self, event: AnyEvent) -> None:
        """Give an event of this plugin to whoever follows."""
        self.telling.emit(event)

    # --- Up -----------------------------------------------------------------------------

    async def open(self) -> None:
        """Initialize and describe. Raises `StartFailed`, and then the process has gone."""
        try:
            self.manifest = manifest = await Phases(
                self.peer,
                self.spec,
                self.telling,
                self._runtime.patience,
                first=self._first,
                agreed=self._agreed,
            ).bring_up()
        except PhaseFailed as fault:
            if fault.how == "silent":
                self.condemn(f"{self.name}: {fault}")
            elif fault.how == "unusable":
                self.begin_stop()
            await self.gone()
            ended = fault.how == "gone" and self.exit_code is not None
            how = f" ({describe_exit(self.exit_code or 0)})" if ended else ""
            raise StartFailed(self.telling.quoting(f"{self.name}: {fault}{how}")) from fault
        except BaseException:
            await self.stop()
            raise
        self.declared = tuple(sorted(manifest.declared()))
        self.credentials = tuple(each.name for each in manifest.credentials)
        self.gate.clear()
        self.needs_nexus = bool(self.declared or manifest.credentials)
        self.routes = routes_of(manifest, self.spec.tool_timeouts)
        self.peer.quick = self._quick
        self._up = True
        # It may have ended between its last answer and now.
        ended = self._deaf.is_set() or self._process.ended.done()
        self.takes_calls = not ended and self._ladder is None

    def _agreed(self, negotiated: Negotiated) -> None:
        self.negotiated = negotiated
        self.gate.clear()

    async def _load_pointer(self, pointer: Message) -> Message:
        message = await self._private_dir.load(pointer, self.reader, cwd=self.spec.cwd)
        if self._record is not None:
            self._record.file(message)
        return message

    # --- Down ---------------------------------------------------------------------------

    def retire(self) -> None:
        """Take no new invokes, except those that running ones wait for."""
        if self.takes_calls:
            self.takes_calls = False
            self.retiring = True

    async def drain(self, within: float) -> None:
        """Wait for the invokes that run, at most `within` seconds, or until it stops."""
        try:
            async with asyncio.timeout(within):
                await self.occupancy.until(lambda: not (self.busy and self.retiring))
        except TimeoutError:
            count = self.occupancy.accepted
            self.telling.noise("drain", f"{count} invokes ran on after {within:g} s")

    async def stop(self) -> None:
        """Walk the stop ladder and wait until everything of this process has gone (R-26)."""
        self.begin_stop()
        await self.gone()

    def begin_stop(self) -> None:
        """Begin the stop ladder, which then goes on whoever waits for it."""
        if not self._process.ended.done():
            self.stopping = True
        self._end()

    def condemn(self, why: str) -> None:
        """Replace it: its calls fail now, and it is taken down as faulty."""
        if self._ladder is None and not self._process.ended.done():
            self.condemned = why
            self.peer.fail_calls(ConnectionLost(self.telling.quoting(why)))
            self._end()

    def _end(self) -> None:
        self.takes_calls = self.retiring = False
        self.occupancy.look_again()
        if self._ladder is None and not self._process.ended.done():
            patience = self._runtime.patience
            ladder = self._process.stop(self.peer.close_writing, patience.stop, patience.kill)
            self._ladder = asyncio.get_running_loop().create_task(ladder)

    async def gone(self) -> None:
        """Wait until the process has ended and has been cleaned up."""
        await asyncio.shield(self._life)

    async def _follow(self) -> None:
        try:
            self._take_down(await self._ended())
        except Exception:  # noqa: BLE001 - the supervisor must hear of the end
            _log.exception("taking %s down failed", self.name)
        self.occupancy.end()
        try:
            self.owner.on_gone(self)
        finally:
            await self._clean_up()

    async def _ended(self) -> int:
        """Wait until the process has gone, and help it to go if it can no longer be heard."""
        ended = self._process.ended
        deaf = asyncio.get_running_loop().create_task(self._deaf.wait())
        await asyncio.wait((ended, deaf), return_when=asyncio.FIRST_COMPLETED)
        deaf.cancel()
        self.takes_calls = False
        if not ended.done():
            # Its output has ended, so it is about to go, and then it is known how.
            await asyncio.wait((ended,), timeout=NEWS_OF_EXIT)
        if not ended.done():
            why = self.telling.quoting("the plugin closed its output")
            self.peer.fail_calls(ConnectionLost(why))
            await asyncio.wait((ended,), timeout=LINGER)
            self._end()
        return await ended

    def _take_down(self, code: int) -> None:
        # What is in the pipe still counts, and is read before any call fails. There is
        # no waiting for its end: a daemon that has left the group may keep it open.
        self._transport.poll()
        # One that has not come up yet owes an answer, whether or not it was asked already.
        in_flight = not self._up or self.peer.pending_count + self.peer.lost_calls > 0
        asked = self.stopping and not self.condemned
        self.faulted = bool(self.condemned) or is_fault(code, asked=asked, in_flight=in_flight)
        self.epitaph = self.telling.quoting(f"the plugin {describe_exit(code)}")
        self.peer.close(ConnectionLost(self.condemned or self.epitaph))
        for task in list(self.reverse_tasks):
            task.cancel()
        rung = self._process.rung
        self.emit(transcript.Exited(at=time.time(), code=code, fault=self.faulted, rung=rung))

    async def _clean_up(self) -> None:
        await asyncio.to_thread(self._private_dir.sweep)
        if self.reverse_tasks:
            within = self._runtime.patience.cleanup
            if (await asyncio.wait(self.reverse_tasks, timeout=within))[1]:
                _log.error("reverse calls of %s do not end", self.name)

    # --- What the peer tells --------------------------------------------------------------

    def _quick(self, line: bytes) -> bool:
        answer = read_plain_answer(line)
        return answer is not None and self.peer.settle(answer)

    def on_request(self, request: Message) -> None:
        self.owner.on_reverse(self, request)

    def on_notification(self, notification: Message) -> None:
        self.owner.on_notification(self, notification)

    def on_diagnostic(self, diagnostic: Diagnostic) -> None:
        self.telling.diagnostic(diagnostic)

    def on_closed(self, reason: Exception | None) -> None:
        del reason
        self._heard_last()

    def _heard_last(self) -> None:
        self.takes_calls = False
        self._deaf.set()
