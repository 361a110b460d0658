"""One plugin of one user, kept running: cold start, restart after faults, stop (R-25).

Owns the lifecycle state and the current connection. Which invokes use it is not its
business.
"""

import asyncio
import random
import time
from collections.abc import Callable

from executa_host.connection import Connection, Owner, StartFailed
from executa_host.restart import RestartPolicy
from executa_host.spec import PluginSpec
from executa_protocol import transcript
from executa_protocol.errors import CallFailed
from executa_protocol.lifecycle import Event, State, move
from executa_protocol.manifest import Manifest
from executa_protocol.transcript import Trace


class PluginFaulted(CallFailed):
    """The plugin failed too often and is left alone until someone restarts it (R-25)."""

    def __init__(self, name: str, why: str) -> None:
        text = f"{name} has failed too often and is not started again by itself; restart it"
        super().__init__(f"{text} ({why})" if why else text, written=False)


class Supervisor:
    """Keeps one plugin of one user. `owner` is told of reverse calls and of ends."""

    def __init__(
        self,
        spec: PluginSpec,
        user_id: str,
        owner: Owner,
        *,
        strict: bool = False,
        trace: Trace | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.spec = spec
        self.user_id = user_id
        self.state = State.STOPPED
        self.manifest: Manifest | None = None
        """The last manifest, also while no process runs."""
        self.launches = 0
        self.last_fault = ""
        self._owner = owner
        self._strict = strict
        self._trace = trace
        self._jitter = jitter
        self._policy = RestartPolicy()
        self._connection: Connection | None = None
        self._started_at = 0.0
        self._bringing_up: asyncio.Task[Connection] | None = None

    @property
    def connection(self) -> Connection | None:
        """The live connection, None while there is none that takes calls."""
        connection = self._connection
        return connection if connection is not None and connection.alive else None

    async def ready(self) -> Connection:
        """A connection that takes calls: the live one, or one after a start or a restart.

        Raises `PluginFaulted`, `StartFailed` and `SpawnFailed`.
        """
        connection = self._connection
        if connection is not None:
            if connection.alive and self._bringing_up is None:
                return connection
            if self._bringing_up is None:
                # It is on its way out; what comes after it is decided when it has gone.
                await connection.gone()
        if self.state is State.FAULTED:
            raise PluginFaulted(self.spec.name, self.last_fault)
        if self._bringing_up is None:
            self._begin(0.0)
        return await self._wait_for_start()

    async def restart(self) -> Connection:
        """Stop it, forget its faults, and start it anew."""
        await self.stop()
        self._policy.reset()
        return await self.ready()

    async def stop(self) -> None:
        """Bring it down, whatever it is doing. Idempotent."""
        starting = self._bringing_up
        if starting is not None:
            starting.cancel()
            await asyncio.wait((starting,))
            self._bringing_up = None
        if self._connection is not None:
            if not self._connection.stopping:
                self._move(Event.STOP, "asked to stop")
            await self._connection.stop()
        elif self.state in (State.RESTARTING, State.FAULTED):
            self._move(Event.STOP, "asked to stop")

    def on_gone(self, connection: Connection) -> None:
        """The owner says that this supervisor's connection has ended."""
        self._connection = None
        code = connection.exit_code or 0
        if connection.stopping or not connection.faulted:
            self._move(Event.EXITED, f"exit code {code}")
            return
        self.last_fault = connection.epitaph
        self._fault(time.monotonic() - self._started_at)

    # --- Starting ------------------------------------------------------------------------

    def _begin(self, delay: float) -> None:
        loop = asyncio.get_running_loop()
        self._bringing_up = task = loop.create_task(self._bring_up(delay))
        task.add_done_callback(self._brought_up)

    async def _wait_for_start(self) -> Connection:
        # A caller that gives up must not take the start away from the others.
        starting = self._bringing_up
        if starting is None:
            return await self.ready()
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            if starting.cancelled():
                raise StartFailed(f"{self.spec.name} was stopped while it started") from None
            raise

    async def _bring_up(self, delay: float) -> Connection:
        if delay:
            await asyncio.sleep(delay)
        self.launches += 1
        self._move(Event.START, f"launch {self.launches}")
        self._started_at = time.monotonic()
        try:
            connection = Connection(
                self.spec,
                self.user_id,
                self._owner,
                strict=self._strict,
                trace=self._trace,
                launch=self.launches,
            )
        except CallFailed as fault:
            # There is nothing to wait for: the command is wrong, not the plugin's luck.
            self.last_fault = str(fault)
            self._move(Event.EXITED, str(fault))
            raise
        self._connection = connection
        await connection.open()
        self.manifest = connection.manifest
        self._move(
            Event.NEGOTIATED if connection.negotiated.is_v2 else Event.FELL_BACK,
            f"protocol {connection.negotiated.version}",
        )
        return connection

    def _brought_up(self, task: "asyncio.Task[Connection]") -> None:
        if self._bringing_up is task:
            self._bringing_up = None
        if not task.cancelled():
            task.exception()  # told to whoever waited; a restart may have nobody waiting

    def _fault(self, ran_for: float) -> None:
        delay = self._policy.fault(ran_for, self._jitter())
        if delay is None:
            self._move(Event.LAST_FAULT, self.last_fault)
            return
        self._move(Event.FAULT, f"{self.last_fault}; restart in {delay:.1f} s")
        self._begin(delay)

    def _move(self, event: Event, reason: str) -> None:
        self.state = move(self.state, event)
        if self._trace is not None:
            changed = transcript.StateChanged(
                at=time.time(), plugin=self.spec.name, state=self.state.value, reason=reason
            )
            self._trace(changed)
