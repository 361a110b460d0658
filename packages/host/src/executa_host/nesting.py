"""Invokes inside invokes: the tools that a host offers to agent runs, and how they run (R-36)."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final

from executa_host.invocation import ActiveInvoke, InvokeOutcome, InvokeTimeout
from executa_host.invoker import Invoker
from executa_host.plugins import Plugins
from executa_host.request import new_invoke_id
from executa_host.routing import find_route
from executa_host.runtime import Runtime
from executa_protocol import codec
from executa_protocol.errors import ExecutaError
from executa_protocol.manifest import Tool

_log: Final = logging.getLogger(__name__)


class Nesting:
    """Runs tools for invokes. Implements `reverse.nested.ToolRunner`."""

    def __init__(self, plugins: Plugins, invoker: Invoker, runtime: Runtime) -> None:
        self._plugins = plugins
        self._invoker = invoker
        self._runtime = runtime

    def served_tools(self, user_id: str) -> dict[str, Tool]:
        """The tools of this user's plugins by ``PLUGIN.TOOL``, as their manifests say."""
        return {
            f"{supervisor.spec.name}.{tool.name}": tool
            for supervisor in self._plugins
            if supervisor.user_id == user_id and supervisor.manifest is not None
            for tool in supervisor.manifest.tools
        }

    async def learn(self, user_id: str, tools: Iterable[str]) -> None:
        """Start the plugins of these tools that have not said yet what they offer.

        One that does not come up in time, or at all, offers nothing.
        """
        names = {name for tool in tools if (name := tool.partition(".")[0]) in self._plugins.specs}
        unknown = [
            supervisor
            for name in sorted(names)
            if (supervisor := self._plugins.supervisor(name, user_id)).manifest is None
        ]
        patience = self._runtime.patience
        try:
            async with asyncio.timeout(patience.initialize + patience.describe):
                for outcome in await asyncio.gather(
                    *(supervisor.ready() for supervisor in unknown), return_exceptions=True
                ):
                    if isinstance(outcome, ExecutaError):
                        _log.warning("a granted tool cannot be offered: %s", outcome)
        except TimeoutError:
            _log.warning("plugins of granted tools did not come up in time")

    async def invoke_nested(
        self, parent: ActiveInvoke, plugin: str, tool: str, arguments: dict[str, Any]
    ) -> InvokeOutcome:
        """Run a tool inside another invoke: same user, its budget, no longer than it lives."""
        encoded = codec.encode(arguments)
        now = self._runtime.clock.monotonic()
        parent.nested += 1
        try:
            supervisor = self._plugins.supervisor(plugin, parent.user_id)
            try:
                async with asyncio.timeout(max(0.0, parent.deadline - now)):
                    connection = await supervisor.ready(parent.lineage())
            except TimeoutError:
                raise InvokeTimeout(f"{plugin} was not ready in time", written=False) from None
            route = find_route(connection.routes, plugin, tool)
            now = self._runtime.clock.monotonic()
            active = ActiveInvoke(
                invoke_id=new_invoke_id(),
                user_id=parent.user_id,
                plugin=plugin,
                tool=tool,
                deadline=min(now + route.limit, parent.deadline),
                parent=parent,
                app=parent.app,
            )
            return await self._invoker.run(connection, route, encoded, active, now)
        finally:
            parent.nested -= 1
            if parent.connection is not None:
                parent.connection.occupancy.one_less(self._runtime.clock.monotonic())
