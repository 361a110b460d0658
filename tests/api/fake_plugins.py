"""Plugins in memory, for tests of what stands before a host."""

from collections.abc import Sequence

from msgspec import structs

from executa_host.status import PluginStatus
from executa_protocol.errors import CallFailed, UsageError
from executa_protocol.lifecycle import State


class FakePlugins:
    """Implements `api.plugins.PluginHost`: one plugin that works, and one that does not."""

    def __init__(self) -> None:
        words = ("loading", "ready")
        self.states = {
            "notebook": PluginStatus(
                plugin="notebook", user_id="local", state=State.READY, last_words=words, launches=1
            ),
            "broken": PluginStatus(
                plugin="broken", user_id="local", state=State.FAULTED, last_fault="no licence"
            ),
        }
        self.asked: list[tuple[str, str, str]] = []

    def list(self) -> Sequence[PluginStatus]:
        return tuple(self.states.values())

    def get(self, plugin: str, user_id: str) -> PluginStatus:
        if plugin not in self.states:
            msg = "no such plugin"
            raise UsageError(msg)
        return structs.replace(self.states[plugin], user_id=user_id)

    async def restart(self, plugin: str, user_id: str) -> None:
        self.asked.append(("restart", plugin, user_id))
        if plugin == "broken":
            msg = "exited with code 7"
            raise CallFailed(msg)

    async def reload(self, plugin: str, user_id: str) -> None:
        self.asked.append(("reload", plugin, user_id))
