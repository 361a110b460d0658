"""The capabilities of a host's plugins, from their manifests.

A plugin is started to be asked, once; after that its last manifest counts while it runs or
rests, and the next start asks it again.
"""

import asyncio
from typing import Final

from executa_host.actions.contracts import Capability, capability_of
from executa_host.actions.faults import Code, Unavailable
from executa_host.actions.settings import CapabilityConfig
from executa_host.host import Host
from executa_host.spec import PluginSpec
from executa_protocol.errors import ExecutaError
from executa_protocol.manifest import Manifest

_KEPT: Final = 1024
"""Manifests, by plugin and user, whose contracts are kept ready."""


class HostCatalog:
    """A `Catalog` of `host`. `configured` is what is set for capabilities: `CapabilityConfig`."""

    def __init__(self, host: Host, configured: dict[str, CapabilityConfig] | None = None) -> None:
        self._host = host
        self._configured = configured or {}
        self._made: dict[tuple[str, str], tuple[Manifest, dict[str, Capability]]] = {}

    async def find(self, name: str, user_id: str) -> Capability | None:
        """See `Catalog.find`."""
        plugin, _, tool = name.partition(".")
        spec = self._spec(plugin)
        if spec is None or not tool:
            return None
        try:
            return (await self._of(spec, user_id)).get(name)
        except ExecutaError as fault:
            msg = f"{plugin} cannot be asked for its tools: {fault}"
            raise Unavailable(Code.CAPABILITY_UNAVAILABLE, msg) from fault

    async def all(self, user_id: str) -> tuple[Capability, ...]:
        """See `Catalog.all`."""
        asked = [self._of(spec, user_id) for spec in self._host.plugins()]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        # What a plugin failed of has been told to whoever follows the host.
        found = [each for answer in answers if isinstance(answer, dict) for each in answer.values()]
        return tuple(sorted(found, key=lambda each: each.contract.capability))

    def _spec(self, plugin: str) -> PluginSpec | None:
        for spec in self._host.plugins():
            if spec.name == plugin:
                return spec
        return None

    async def _of(self, spec: PluginSpec, user_id: str) -> dict[str, Capability]:
        manifest = await self._host.start(spec.name, user_id=user_id)
        key = (spec.name, user_id)
        made = self._made.get(key)
        if made is not None and made[0] is manifest:
            return made[1]
        capabilities = {
            f"{spec.name}.{tool.name}": capability_of(
                spec.name, tool, self._configured, spec.tool_timeouts.get(tool.name)
            )
            for tool in manifest.tools
        }
        if len(self._made) >= _KEPT:
            self._made.clear()
        self._made[key] = (manifest, capabilities)
        return capabilities
