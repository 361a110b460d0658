"""One plugin of one user, kept running: cold start, restart after faults, stop (R-25).

Owns the lifecycle state and the current connection. Which invokes use it is not its
business.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from executa_host.clock import sleep
from executa_host.connection import Connection, StartFailed
from executa_host.idleness import IdleTimer
from executa_host.invocation import ActiveInvoke
from executa_host.owner import Owner
from executa_host.process import SpawnFailed
from executa_host.restart import RestartPolicy
from executa_host.runtime import Runtime
from executa_host.spec import PluginSpec
from executa_host.suspicion import Finding, find_out
from executa_protocol import transcript
from executa_protocol.errors import CallFailed, ExecutaError
from executa_protocol.lifecycle import RUNNING, Event, State, move
from executa_protocol.limits import STDERR_LINES
from executa_protocol.manifest import Manifest

EXITS_KEPT: Final = 10
"""Exit codes that are kept of one plugin."""


class PluginFaulted(CallFailed):
    """The plugin failed too often and is left alone until someone restarts it (R-25)."""

    def __init__(self, name: str, why: str) -> None:
        text = f"{name} has failed too often and is not started again by itself; restart it"
        super().__init__(f"{text} ({why})" if why else text, written=False)


class Supervisor:
    """Keeps one plugin of one user. `owner` is told of reverse calls and of ends."""

    def __init__(self, spec: PluginSpec, user_id: str, owner: Owner, runtime: Runtime) -> None:
        self.spec = spec
        self.user_id = user_id
        self.state = State.STOPPED
        self.manifest: Manifest | None = None
        """The last manifest, also while no process runs."""
        self.launches = 0
        self.last_fault = ""
        self.exit_codes: deque[int] = deque(maxlen=EXITS_KEPT)
        self.last_words: deque[str] = deque(maxlen=STDERR_LINES)
        """What the processes that have gone wrote to stderr last."""
        self.stderr_lines = 0
        """How many lines they wrote in all."""
        self.connection: Connection | None = None
        """The process there is, whether it takes calls or not."""
        self.ready_at: float | None = None
        self._owner = owner
        self._runtime = runtime
        self._policy = RestartPolicy()
        self._fresh = True  # no process of this spec was ever launched
        self._starting: asyncio.Task[Connection] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._probing: asyncio.Task[None] | None = None
        self._idle: IdleTimer | None = None
        self._closed: ExecutaError | None = None

    @property
    def faults(self) -> int:
        """Faults in a row (R-25)."""
        return self._policy.faults

    async def ready(self, inside: Sequence[ActiveInvoke] = ()) -> Connection:
        """A connection that takes calls: the live one, or one after a start or a restart.

        `inside` are invokes that wait for this call: a process that only waits for one of
        them takes it still. Raises `PluginFaulted`, `StartFailed`, `SpawnFailed`, and what
        `close` was given.
        """
        while True:
            connection = self.connection
            if connection is not None:
                if connection.takes_calls:
                    return connection
                if connection.retiring and any(i.invoke_id in connection.invokes for i in inside):
                    return connection
            if self._closed is not None:
                raise self._closed
            if self._stopping is not None:
                await asyncio.wait((self._stopping,))
            elif self._starting is not None:
                await self._come_up(self._starting)
            elif connection is not None:
                # It is on its way out; what comes after it is decided when it has gone.
                await connection.gone()
            elif self.state is State.FAULTED:
                raise PluginFaulted(self.spec.name, self.last_fault)
            else:
                self._begin(0.0)

    # --- By hand -------------------------------------------------------------------------

    async def stop(self, drain: float = 0.0) -> None:
        """Bring it down, whatever it is doing; its faults are forgotten. Idempotent.

        With `drain` it takes no new calls and its invokes have that many seconds to end.
        """
        if self._stopping is None:
            if self.connection is not None:
                self.connection.retire()
            self._stopping = asyncio.get_running_loop().create_task(self._stop(drain))
            self._stopping.add_done_callback(self._stopped)
        elif not drain and self.connection is not None:
            self.connection.begin_stop()  # somebody has less patience
        await asyncio.shield(self._stopping)

    async def restart(self, drain: float = 0.0) -> Connection:
        """Stop it, forget its faults, and start it anew."""
        await self.stop(drain)
        return await self.ready()

    async def reload(self, spec: PluginSpec, drain: float) -> Connection | None:
        """Run by another spec from now on; None if it did not run before."""
        self.spec = spec
        self._fresh = True
        ran = self.connection is not None or self._starting is not None
        await self.stop(drain)
        return await self.ready() if ran else None

    def close(self, why: ExecutaError) -> None:
        """Take no more calls: from now on `ready` raises `why`. Stopping it comes next."""
        self._closed = why
        if self.connection is not None:
            self.connection.retire()

    async def _stop(self, drain: float) -> None:
        starting = self._starting
        if starting is not None:
            starting.cancel()
            await asyncio.wait((starting,))
        connection = self.connection
        if connection is not None:
            if drain and connection.retiring:
                await connection.drain(drain)
            if self.state in RUNNING and self.state is not State.STOPPING:
                self._move(Event.STOP, "asked to stop")
            await connection.stop()
        elif self.state in (State.RESTARTING, State.FAULTED):
            self._move(Event.STOP, "asked to stop")
        self._policy.reset()

    def _stopped(self, task: "asyncio.Task[None]") -> None:
        self._stopping = None
        if not task.cancelled():
            task.exception()

    # --- What connections tell --------------------------------------------------------------

    def on_gone(self, connection: Connection) -> None:
        """The owner says that this supervisor's connection has ended."""
        self.connection = None
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        code = connection.exit_code or 0
        self.exit_codes.append(code)
        self.last_words.extend(connection.telling.last_words)
        self.stderr_lines += connection.telling.stderr.count
        started, self.ready_at = self.ready_at, None
        if self._stopping is not None or not connection.faulted:
            self._move(Event.EXITED, f"exit code {code}")
            return
        self.last_fault = connection.condemned or connection.epitaph
        ran_for = 0.0 if started is None else self._runtime.clock.monotonic() - started
        self._fault(ran_for)

    def suspect(self, connection: Connection) -> None:
        """An invoke was not answered in time: find out whether the plugin answers at all (R-24)."""
        if self._probing is None and connection is self.connection and connection.takes_calls:
            self._probing = asyncio.get_running_loop().create_task(self._probe(connection))
            self._probing.add_done_callback(self._probed)

    # --- Starting ------------------------------------------------------------------------

    def _begin(self, delay: float) -> None:
        loop = asyncio.get_running_loop()
        due = self._runtime.clock.monotonic() + delay
        self._starting = task = loop.create_task(self._bring_up(due))
        task.add_done_callback(self._brought_up)

    async def _come_up(self, starting: "asyncio.Task[Connection]") -> None:
        # A caller that gives up must not take the start away from the others.
        await asyncio.wait((starting,))
        if starting.cancelled():
            raise StartFailed(f"{self.spec.name} was stopped while it started")
        fault = starting.exception()
        if fault is not None:
            raise fault

    async def _bring_up(self, due: float) -> Connection:
        delay = due - self._runtime.clock.monotonic()
        if delay > 0:
            await sleep(self._runtime.clock, delay)
        async with self._runtime.starts:
            self.launches += 1
            self._move(Event.START, f"launch {self.launches}")
            self.connection = connection = self._spawned()
            await connection.open()
        self.manifest = connection.manifest
        self.ready_at = connection.occupancy.last_used = self._runtime.clock.monotonic()
        version = connection.negotiated.version
        agreed = Event.NEGOTIATED if connection.negotiated.is_v2 else Event.FELL_BACK
        self._move(agreed, f"protocol {version}")
        self._watch_idleness(connection)
        return connection

    def _spawned(self) -> Connection:
        first, self._fresh = self._fresh, False
        try:
            return Connection(
                self.spec,
                self.user_id,
                self._owner,
                self._runtime,
                launch=self.launches,
                first=first,
            )
        except Exception as fault:
            # There is nothing to wait for: the command is wrong, not the plugin's luck.
            self.last_fault = str(fault)
            self._move(Event.EXITED, self.last_fault)
            if isinstance(fault, OSError):  # no room for its private directory, for instance
                raise SpawnFailed(f"{self.spec.name} could not be started: {fault}") from fault
            raise

    def _brought_up(self, task: "asyncio.Task[Connection]") -> None:
        if self._starting is task:
            self._starting = None
        if not task.cancelled():
            task.exception()  # told to whoever waited; a restart may have nobody waiting

    def _fault(self, ran_for: float) -> None:
        delay = self._policy.fault(ran_for, self._runtime.jitter())
        if delay is None:
            self._move(Event.LAST_FAULT, self.last_fault)
            return
        self._move(Event.FAULT, f"{self.last_fault}; restart in {delay:.1f} s")
        self._begin(delay)

    # --- Probes --------------------------------------------------------------------------

    async def _probe(self, connection: Connection) -> None:
        finding = await find_out(connection, self._runtime.patience.health, self._missed)
        if finding is Finding.SILENT:
            name = self.spec.name
            connection.condemn(f"{name} let a call time out and then missed a health probe")
        elif finding is Finding.ANSWERS and self.state is State.UNHEALTHY:
            v2 = connection.negotiated.is_v2
            self._move(Event.ANSWERED if v2 else Event.ANSWERED_V1, "answers again")

    def _missed(self) -> None:
        if self.state in (State.READY, State.V1):
            self._move(Event.MISSED_PROBE, "no answer to a health probe")

    def _probed(self, task: "asyncio.Task[None]") -> None:
        self._probing = None
        if not task.cancelled():
            task.exception()

    # --- Idleness ------------------------------------------------------------------------

    def _watch_idleness(self, connection: Connection) -> None:
        own = self.spec.idle_after
        after = self._runtime.idle_after if own is None else own
        if after is not None:
            monotonic = self._runtime.clock.monotonic

            def idle_for() -> float:
                return 0.0 if connection.busy else monotonic() - connection.occupancy.last_used

            def stop() -> None:
                if connection.takes_calls:
                    self._move(Event.STOP, f"idle for {after:g} s")
                    connection.begin_stop()

            self._idle = IdleTimer(self._runtime.clock, after, idle_for, stop)

    def _move(self, event: Event, reason: str) -> None:
        self.state = move(self.state, event)
        if self._runtime.followers.callbacks:
            changed = transcript.StateChanged(
                at=time.time(), plugin=self.spec.name, state=self.state.value, reason=reason
            )
            changed.user_id = self._runtime.shown_user(self.user_id)
            self._runtime.emit(changed)
