"""The host: plugins by name, invokes, and the reverse calls that they make.

The facade over plugins, invoker, gateway and nexus: it puts them together, and the parts do
the rest.
"""

import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec import Raw

from executa_host.administration import Administration
from executa_host.agent_sessions import AgentSessionEntry, AgentSessions
from executa_host.calls import Calls
from executa_host.clock import Clock
from executa_host.connection import Connection
from executa_host.handle import InvokeHandle
from executa_host.invocation import ActiveInvoke, CancelOutcome, InvokeOutcome
from executa_host.invoker import Invoker
from executa_host.nesting import Nesting
from executa_host.patience import Patience
from executa_host.plugins import Plugins
from executa_host.request import new_invoke_id
from executa_host.reverse.agent import AgentCalls
from executa_host.reverse.gateway import Gateway
from executa_host.reverse.routes import routes
from executa_host.reverse.tokens import Tokens
from executa_host.runtime import LOCAL_USER, Runtime
from executa_host.transcripts.recorder import Recorder
from executa_protocol import codec
from executa_protocol.limits import STARTS_AT_ONCE
from executa_protocol.nexus import AppContext, Nexus
from executa_protocol.transcript import ActionAttempt, Trace


class Host(Administration):
    """Runs plugins against a `nexus`.

    ::

        async with Host(nexus) as host:
            host.add(PluginSpec(name="notebook", command=("python", "plugin.py")))
            outcome = await host.invoke("notebook", "recall", {"query": "tea"})

    `strict` accepts the seeds' spelling only (R-03). `trace` is the first to follow
    everything that the host sees and does; `follow` adds others. `closes_nexus` lets go of
    the nexus with the host. `hide_env` are environment variables that no plugin gets (R-27),
    `idle_after` the seconds after which an idle process is stopped, and its agent sessions
    with it (None: never), `starts_at_once` how many plugins start at the same time.
    `patience` holds all time-outs; `clock` and `jitter` (numbers from 0 to 1) are there for
    tests to replace. `recorder` writes a transcript of every frame and event, and stays whose it
    was: whoever made it closes it after the host.
    """

    def __init__(
        self,
        nexus: Nexus,
        *,
        strict: bool = False,
        trace: Trace | None = None,
        closes_nexus: bool = False,
        hide_env: tuple[str, ...] = (),
        idle_after: float | None = None,
        starts_at_once: int = STARTS_AT_ONCE,
        patience: Patience | None = None,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        recorder: Recorder | None = None,
    ) -> None:
        runtime = Runtime(
            strict=strict,
            clock=clock,
            patience=patience,
            hidden=hide_env,
            idle_after=idle_after,
            starts_at_once=starts_at_once,
            jitter=jitter,
            recorder=recorder,
        )
        if trace is not None:
            runtime.followers.follow(trace)
        self._closes_nexus = closes_nexus
        self._tokens = tokens = Tokens(nexus, runtime)
        self._sessions = AgentSessions(clock=runtime.clock.now, on_evicted=self._forget)
        self._agent_calls = AgentCalls(nexus, self._sessions, runtime)
        gateway = Gateway(runtime, tokens)
        super().__init__(Plugins(runtime, gateway, self._process_ended), nexus, runtime)
        invoker = Invoker(nexus, runtime, tokens)
        nesting = Nesting(self._plugins, invoker, runtime)
        gateway.serve(routes(nexus, self._sessions, self._agent_calls, nesting, runtime))
        self._calls = Calls(self._plugins, invoker, runtime)

    @classmethod
    def from_config(
        cls, path: str | Path, *, trace: Trace | None = None, recorder: Recorder | None = None
    ) -> "Host":
        """The host that a configuration file describes. Raises `ConfigError`, `UsageError`."""
        # Not above: a configuration builds its host, and would import itself.
        from executa_host.config import read_config  # noqa: PLC0415

        return read_config(path).build(trace=trace, recorder=recorder)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop every plugin and wait for everything that is under way. Idempotent."""
        await self._plugins.close()
        self._tokens.stop()
        await self._runtime.background.finish(self._runtime.patience.cleanup)
        self._runtime.bounds.stop()
        if self._closes_nexus:
            await self._nexus.aclose()

    # --- Calls -------------------------------------------------------------------------

    async def invoke(
        self,
        plugin: str,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        user_id: str = LOCAL_USER,
        app: AppContext | None = None,
        on_progress: Callable[[Raw], None] | None = None,
    ) -> InvokeOutcome:
        """Run a tool and give what it returned.

        `timeout` is seconds and covers everything, a start included; by default the tool's
        own limit counts from when the plugin is ready. `app` attests the app that the call
        comes from (R-29). `on_progress` gets the plugin's progress events as raw JSON, at
        most 50 a second.

        Cancelling the task that waits here cancels the invoke: its reverse calls end, and
        the plugin is told (R-45). `begin` gives a handle that says what became of that.

        Raises `RpcError` for an error answer, `InvokeRefused` for what the host refuses,
        `InvokeTimeout`, `ConnectionLost` (which says whether the request had been written),
        `PeerViolation` for an answer that cannot be read, `WriteQueueFull`, `CallCancelled`
        after `cancel`, `UsageError` for an unknown plugin, and what `start` raises.
        """
        encoded = codec.encode({} if arguments is None else arguments)
        active = ActiveInvoke(
            invoke_id=new_invoke_id(),
            user_id=user_id,
            plugin=plugin,
            tool=tool,
            app=app,
            on_progress=on_progress,
        )
        return await self._calls.run(active, encoded, timeout)

    def begin(
        self,
        plugin: str,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        user_id: str = LOCAL_USER,
        app: AppContext | None = None,
        on_progress: Callable[[Raw], None] | None = None,
    ) -> InvokeHandle:
        """Begin an invoke and give a handle on it, without waiting. Takes what `invoke` takes.

        Raises at once only `UsageError` for an unknown plugin, and `NotEncodable`.
        """
        encoded = codec.encode({} if arguments is None else arguments)
        active = ActiveInvoke(
            invoke_id=new_invoke_id(),
            user_id=user_id,
            plugin=plugin,
            tool=tool,
            app=app,
            on_progress=on_progress,
        )
        return self._calls.begin(active, encoded, timeout)

    def note_attempt(self, action_id: str, attempt: int, handle: InvokeHandle) -> None:
        """Tell followers that an invoke is an attempt of a durable action."""
        if self._runtime.followers.callbacks:
            noted = ActionAttempt(
                at=time.time(), action_id=action_id, attempt=attempt, invoke_id=handle.invoke_id
            )
            noted.plugin = handle.plugin
            self._runtime.emit(noted)

    async def cancel(self, invoke_id: str, reason: str = "") -> CancelOutcome:
        """End a running invoke by its id, also a nested one, and say what became of it (R-45).

        Whoever awaits it gets `CallCancelled`, or its answer if that still came. Raises
        `UsageError` if no invoke of this id is running.
        """
        return await self._calls.cancel(invoke_id, reason)

    def _process_ended(self, connection: Connection) -> None:
        """Its agent sessions end with the process that made them (R-30)."""
        for entry in self._sessions.drop_owner((connection.user_id, connection.name)):
            self._forget(entry)

    def _forget(self, entry: AgentSessionEntry) -> None:
        self._agent_calls.forget(entry)
