"""Invokes by name: from a plugin's name to a process that takes the call, and its end by id.

Owns the way to the process and the handles. One invoke on a process is `invoker`'s.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from executa_host.handle import InvokeHandle
from executa_host.invocation import ActiveInvoke, CancelOutcome, InvokeOutcome, InvokeTimeout
from executa_host.invoker import Invoker
from executa_host.plugins import Plugins
from executa_host.routing import find_route
from executa_host.runtime import Runtime
from executa_protocol.errors import CallCancelled, UsageError

Running = Coroutine[Any, Any, InvokeOutcome]


class Calls:
    """Runs, begins and cancels invokes."""

    def __init__(self, plugins: Plugins, invoker: Invoker, runtime: Runtime) -> None:
        self._plugins = plugins
        self._invoker = invoker
        self._runtime = runtime
        self._monotonic = runtime.clock.monotonic
        self._handles: dict[str, InvokeHandle] = {}

    def run(self, active: ActiveInvoke, arguments: bytes, timeout: float | None) -> Running:
        """What is to be awaited at once to run an invoke on its plugin, started if need be.

        `timeout` is seconds and covers everything; without it the tool's own limit counts
        from when the plugin is ready. Raises itself what it knows already.
        """
        begun = self._monotonic()
        connection = self._plugins.live(active.plugin, active.user_id)
        if connection is None:
            return self._start_and_run(active, arguments, timeout, begun)
        route = connection.routes.get(active.tool)
        if route is None:
            route = find_route(connection.routes, active.plugin, active.tool)  # which says it all
        active.deadline = begun + (route.limit if timeout is None else timeout)
        # No coroutine of its own: thousands in flight cost the collector each object they have.
        return self._invoker.run(connection, route, arguments, active, begun)

    async def _start_and_run(
        self, active: ActiveInvoke, arguments: bytes, timeout: float | None, begun: float
    ) -> InvokeOutcome:
        supervisor = self._plugins.supervisor(active.plugin, active.user_id)
        try:
            async with asyncio.timeout(timeout):
                connection = await supervisor.ready()
        except TimeoutError:
            text = f"{active.plugin} was not ready within {timeout:g} s"
            raise InvokeTimeout(text, written=False) from None
        now = self._monotonic()
        route = find_route(connection.routes, active.plugin, active.tool)
        active.deadline = now + route.limit if timeout is None else begun + timeout
        return await self._invoker.run(connection, route, arguments, active, now)

    def begin(self, active: ActiveInvoke, arguments: bytes, timeout: float | None) -> InvokeHandle:
        """As `run`, in a task of its own. Raises `UsageError` for an unknown plugin."""
        self._plugins.supervisor(active.plugin, active.user_id)
        running = self._begun(active, arguments, timeout)
        task = asyncio.get_running_loop().create_task(running)
        self._runtime.background.keep(task)
        handle = InvokeHandle(active, task, self._invoker.canceller)
        self._handles[active.invoke_id] = handle
        task.add_done_callback(lambda _: self._handles.pop(active.invoke_id, None))
        return handle

    async def _begun(
        self, active: ActiveInvoke, arguments: bytes, timeout: float | None
    ) -> InvokeOutcome:
        try:
            return await self.run(active, arguments, timeout)
        except asyncio.CancelledError:
            # Whoever waits for the result has not been cancelled.
            if active.verdict is None and active.call is None:
                active.verdict = CancelOutcome.CONFIRMED
            text = f"{active.plugin}.{active.tool} was cancelled: {active.cancelling or 'host'}"
            raise CallCancelled(text, written=active.call is not None) from None

    async def cancel(self, invoke_id: str, reason: str) -> CancelOutcome:
        """End an invoke by its id. Raises `UsageError` if none of this id is running."""
        handle = self._handles.get(invoke_id)
        if handle is not None:
            return await handle.cancel(reason)
        active = self._find(invoke_id)
        if active is None:
            msg = f"no invoke {invoke_id[:40]!r} is running"
            raise UsageError(msg)
        self._invoker.canceller.cancel(active, reason)
        if not active.ended:
            if active.finished is None:
                active.finished = asyncio.get_running_loop().create_future()
            await asyncio.shield(active.finished)
        return active.verdict or CancelOutcome.COMPLETED_FIRST

    def _find(self, invoke_id: str) -> ActiveInvoke | None:
        waiting = self._invoker.canceller.waiting.get(invoke_id)
        if waiting is not None:
            return waiting
        for supervisor in self._plugins:
            if supervisor.connection is not None:
                active = supervisor.connection.invokes.get(invoke_id)
                if active is not None:
                    return active
        return None
