"""The host: plugins by name, invokes, and the reverse calls that they make.

The facade over supervisors, gateway and nexus. One process belongs to one user and one
plugin (R-23).
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Final, Self

from msgspec import Raw

from executa_host.agent_sessions import AgentSessions
from executa_host.connection import Connection
from executa_host.invocation import ActiveInvoke, InvokeOutcome, InvokeTimeout
from executa_host.invoker import Invoker, find_tool, new_invoke_id
from executa_host.reverse.agent import AgentCalls
from executa_host.reverse.gateway import Gateway
from executa_host.reverse.routes import routes
from executa_host.spec import PluginSpec
from executa_host.supervisor import Supervisor
from executa_protocol import codec, gate
from executa_protocol.envelope import Message
from executa_protocol.errors import UsageError
from executa_protocol.gate import Verdict
from executa_protocol.lifecycle import State
from executa_protocol.manifest import Manifest, Tool
from executa_protocol.methods import METHODS
from executa_protocol.methods.core import HealthResult
from executa_protocol.nexus import AppContext, Nexus
from executa_protocol.transcript import Trace

LOCAL_USER: Final = "local"
"""Whose plugins run when nobody says otherwise (R-23)."""

_log = logging.getLogger(__name__)


class Host:
    """Runs plugins against a `nexus`.

    ::

        async with Host(nexus) as host:
            host.add(PluginSpec(name="notebook", command=("python", "plugin.py")))
            outcome = await host.invoke("notebook", "recall", {"query": "tea"})

    `strict` accepts the seeds' spelling only (R-03). `trace` follows everything that the
    host sees and does.
    """

    def __init__(self, nexus: Nexus, *, strict: bool = False, trace: Trace | None = None) -> None:
        self._nexus = nexus
        self._strict = strict
        self._trace = trace
        self._specs: dict[str, PluginSpec] = {}
        self._supervisors: dict[tuple[str, str], Supervisor] = {}
        self._background: set[asyncio.Task[Any]] = set()
        self._agent_sessions = AgentSessions()
        self._agent_calls = AgentCalls(nexus, self._agent_sessions)
        self._invoker = Invoker(nexus, self._in_background)
        self._gateway = Gateway(
            nexus,
            routes(nexus, self._agent_sessions, self._agent_calls, self),
            strict=strict,
            trouble=_told,
        )
        self._closing = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # --- Plugins -----------------------------------------------------------------------

    def add(self, spec: PluginSpec) -> None:
        """Make a plugin known. It starts with its first call. Raises `UsageError`."""
        if spec.name in self._specs:
            msg = f"a plugin named {spec.name!r} is known already"
            raise UsageError(msg)
        self._specs[spec.name] = spec

    async def start(self, plugin: str, *, user_id: str = LOCAL_USER) -> Manifest:
        """Start a plugin if it does not run, and give its manifest.

        Raises `StartFailed`, `SpawnFailed`, `PluginFaulted` and `UsageError`.
        """
        connection = await self._supervisor(plugin, user_id).ready()
        return _manifest_of(connection)

    async def restart(self, plugin: str, *, user_id: str = LOCAL_USER) -> Manifest:
        """Stop a plugin, forget its faults, and start it anew. Raises as `start`."""
        return _manifest_of(await self._supervisor(plugin, user_id).restart())

    async def stop(self, plugin: str, *, user_id: str = LOCAL_USER) -> None:
        """Stop a plugin by the ladder (R-26). The next call starts it again."""
        await self._supervisor(plugin, user_id).stop()

    async def health(self, plugin: str, *, user_id: str = LOCAL_USER) -> HealthResult:
        """Probe a plugin. Raises as `start`, `CallTimeout` and `DecodeFailure`."""
        connection = await self._supervisor(plugin, user_id).ready()
        return await connection.health()

    def state(self, plugin: str, *, user_id: str = LOCAL_USER) -> State:
        """Where the plugin is in its lifecycle."""
        return self._supervisor(plugin, user_id).state

    def pid(self, plugin: str, *, user_id: str = LOCAL_USER) -> int | None:
        """The process of the plugin, None while there is none."""
        connection = self._supervisor(plugin, user_id).connection
        return None if connection is None else connection.pid

    async def close(self) -> None:
        """Stop every plugin and wait for everything that is under way. Idempotent."""
        self._closing = True
        stopping = [supervisor.stop() for supervisor in self._supervisors.values()]
        await asyncio.gather(*stopping)
        if self._background:
            await asyncio.wait(self._background)

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
        comes from (R-29). `on_progress` gets the plugin's progress events as raw JSON.

        Raises `RpcError` for an error answer, `InvokeRefused` for what the host refuses,
        `InvokeTimeout`, `ConnectionLost` (which says whether the request had been written),
        `WriteQueueFull`, and what `start` raises.
        """
        encoded = codec.encode({} if arguments is None else arguments)
        given_up = None if timeout is None else time.monotonic() + timeout
        try:
            async with asyncio.timeout(timeout):
                connection = await self._supervisor(plugin, user_id).ready()
        except TimeoutError:
            msg = f"{plugin} was not ready within {timeout:g} s"
            raise InvokeTimeout(msg, written=False) from None
        found = find_tool(_manifest_of(connection), plugin, tool)
        limit = connection.spec.tool_timeouts.get(tool, found.time_limit)
        active = ActiveInvoke(
            invoke_id=new_invoke_id(),
            user_id=user_id,
            plugin=plugin,
            tool=tool,
            deadline=time.monotonic() + limit if given_up is None else given_up,
            app=app,
            on_progress=on_progress,
        )
        return await self._invoker.invoke(connection, found, encoded, active)

    def why(self, plugin: str, method: str, *, user_id: str = LOCAL_USER) -> list[Verdict]:
        """Walk the gate for a reverse call without making it: one verdict a step (R-22).

        Raises `UsageError` for a method that no plugin can call, or a plugin that never ran.
        """
        info = METHODS.get(method)
        if info is None or info.direction != "plugin_to_host" or info.kind != "request":
            msg = f"{method!r} is no method that a plugin can call"
            raise UsageError(msg)
        supervisor = self._supervisor(plugin, user_id)
        connection = supervisor.connection
        if connection is None or connection.manifest is None:
            msg = f"{plugin} does not run; start it first"
            raise UsageError(msg)
        declared = connection.manifest.declared()
        return gate.explain(info, connection.negotiated, declared, strict=self._strict)

    # --- What the runs of agent sessions need (R-36) --------------------------------------

    def served_tools(self, user_id: str) -> dict[str, Tool]:
        """The tools of this user's plugins by ``PLUGIN.TOOL``, as their manifests say."""
        return {
            f"{supervisor.spec.name}.{tool.name}": tool
            for (owner, _), supervisor in self._supervisors.items()
            if owner == user_id and supervisor.manifest is not None
            for tool in supervisor.manifest.tools
        }

    def invoke_nested(
        self, parent: ActiveInvoke, plugin: str, tool: str, arguments: dict[str, Any]
    ) -> Awaitable[InvokeOutcome]:
        """Run a tool inside another invoke: same user, its budget, no longer than it lives."""
        return self._nested(parent, plugin, tool, arguments)

    async def _nested(
        self, parent: ActiveInvoke, plugin: str, tool: str, arguments: dict[str, Any]
    ) -> InvokeOutcome:
        encoded = codec.encode(arguments)
        connection = await self._supervisor(plugin, parent.user_id).ready()
        found = find_tool(_manifest_of(connection), plugin, tool)
        limit = connection.spec.tool_timeouts.get(tool, found.time_limit)
        active = ActiveInvoke(
            invoke_id=new_invoke_id(),
            user_id=parent.user_id,
            plugin=plugin,
            tool=tool,
            deadline=min(time.monotonic() + limit, parent.deadline),
            parent=parent,
            app=parent.app,
        )
        return await self._invoker.invoke(connection, found, encoded, active)

    # --- What connections tell -------------------------------------------------------------

    def on_reverse(self, connection: Connection, request: Message) -> None:
        """A plugin calls back."""
        self._gateway.take(connection, request)

    def on_notification(self, connection: Connection, notification: Message) -> None:
        """A plugin notifies; only progress means anything."""
        self._gateway.note(connection, notification)

    def on_gone(self, connection: Connection) -> None:
        """A plugin's process has ended, and its agent sessions with it (R-30)."""
        owner = (connection.user_id, connection.name)
        for entry in self._agent_sessions.drop_owner(owner):
            if not self._closing:
                self._in_background(self._agent_calls.forget(entry))
        supervisor = self._supervisors.get(owner)
        if supervisor is not None:
            supervisor.on_gone(connection)

    def _supervisor(self, plugin: str, user_id: str) -> Supervisor:
        supervisor = self._supervisors.get((user_id, plugin))
        if supervisor is not None:
            return supervisor
        spec = self._specs.get(plugin)
        if spec is None:
            names = ", ".join(sorted(self._specs)) or "none"
            msg = f"no plugin is named {plugin!r}; known are: {names}"
            raise UsageError(msg)
        if self._closing:
            msg = "the host is closing"
            raise UsageError(msg)
        supervisor = Supervisor(spec, user_id, self, strict=self._strict, trace=self._trace)
        self._supervisors[user_id, plugin] = supervisor
        return supervisor

    def _in_background(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: "asyncio.Task[Any]") -> None:
        self._background.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            _log.warning("work in the background failed: %s", fault)


def _manifest_of(connection: Connection) -> Manifest:
    if connection.manifest is None:
        msg = f"{connection.name} has no manifest yet"
        raise UsageError(msg)
    return connection.manifest


def _told(what: str, fault: BaseException) -> None:
    """The full story of a fault of the host's own goes to its log, never over the wire."""
    _log.error("%s failed", what, exc_info=fault)
