"""A host's plugins as the API asks for them.

Owns which status stands for a plugin that nobody has used yet, and what a reload reads
again. What a plugin is and does is the host's business.
"""

from collections.abc import Callable, Iterable, Sequence

from executa_host.host import Host
from executa_host.runtime import LOCAL_USER
from executa_host.spec import PluginSpec
from executa_host.status import PluginStatus
from executa_protocol.errors import UsageError
from executa_protocol.lifecycle import State


class HostPlugins:
    """Implements `plugins.PluginHost` over a host.

    `specs` gives the plugins as they are configured now, so that a reload takes what has
    changed; without it a plugin is started again as it was.
    """

    def __init__(self, host: Host, specs: Callable[[], Iterable[PluginSpec]] | None = None) -> None:
        self._host = host
        self._specs = specs or host.plugins

    def list(self) -> Sequence[PluginStatus]:
        """Every plugin of everybody who used it, and those that nobody has."""
        used = self._host.statuses()
        names = {status.plugin for status in used}
        unused = [_unused(spec.name) for spec in self._host.plugins() if spec.name not in names]
        return sorted([*used, *unused], key=lambda status: (status.plugin, status.user_id))

    def get(self, plugin: str, user_id: str) -> PluginStatus:
        """One of them. Asking about a user makes no process for that user."""
        self._known(plugin)
        for status in self._host.statuses():
            if (status.plugin, status.user_id) == (plugin, user_id):
                return status
        return _unused(plugin, user_id)

    async def restart(self, plugin: str, user_id: str) -> None:
        """For this user. Raises what `Host.start` raises."""
        self._known(plugin)
        await self._host.restart(plugin, user_id=user_id)

    async def reload(self, plugin: str, user_id: str) -> None:
        """For everybody: a plugin has one spec. Raises `UsageError` and as `restart`."""
        known = self._known(plugin)
        found = [spec for spec in self._specs() if spec.name == plugin]
        await self._host.reload(found[0] if found else known)

    def _known(self, plugin: str) -> PluginSpec:
        for spec in self._host.plugins():
            if spec.name == plugin:
                return spec
        msg = f"no plugin is named {plugin!r}"
        raise UsageError(msg)


def _unused(plugin: str, user_id: str = LOCAL_USER) -> PluginStatus:
    return PluginStatus(plugin=plugin, user_id=user_id, state=State.STOPPED)
