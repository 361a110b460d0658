"""The plugins of a host from anywhere, for keys with the scope `admin`."""

from urllib.parse import quote

from executa_host.api.plugins import PluginAnswer, PluginList, PluginLog
from executa_host.client.transport import Transport
from executa_host.status import PluginStatus
from executa_protocol.limits import QUERY_DEFAULT


class PluginsClient:
    """`Client.plugins`. Without a `user_id` the processes are those of the key's own user."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self) -> tuple[PluginStatus, ...]:
        """How every plugin is."""
        return (await self._transport.ask(PluginList, "GET", "/v1/plugins")).plugins

    async def get(self, plugin: str, *, user_id: str = "") -> PluginStatus:
        """How one plugin is."""
        found = await self._transport.ask(
            PluginAnswer, "GET", _plugin(plugin), query=_user(user_id)
        )
        return found.plugin

    async def logs(
        self, plugin: str, *, user_id: str = "", limit: int = QUERY_DEFAULT
    ) -> tuple[str, ...]:
        """What it wrote to stderr last."""
        return (await self.log(plugin, user_id=user_id, limit=limit)).lines

    async def log(self, plugin: str, *, user_id: str = "", limit: int = QUERY_DEFAULT) -> PluginLog:
        """The same, with what tells new lines from old ones."""
        query = {**_user(user_id), "limit": str(limit)}
        return await self._transport.ask(PluginLog, "GET", _plugin(plugin, "/logs"), query=query)

    async def restart(self, plugin: str, *, user_id: str = "") -> PluginStatus:
        """Stop it, forget its faults, and start it anew. Not repeated after a lost answer."""
        return await self._by_hand(plugin, "/restart", user_id)

    async def reload(self, plugin: str, *, user_id: str = "") -> PluginStatus:
        """Let its invokes end, then start it anew if it ran."""
        return await self._by_hand(plugin, "/reload", user_id)

    async def _by_hand(self, plugin: str, rest: str, user_id: str) -> PluginStatus:
        found = await self._transport.ask(
            PluginAnswer, "POST", _plugin(plugin, rest), query=_user(user_id), body={}, safe=False
        )
        return found.plugin


def _plugin(plugin: str, rest: str = "") -> str:
    return f"/v1/plugins/{quote(plugin, safe='') or '-'}{rest}"


def _user(user_id: str) -> dict[str, str]:
    return {"user_id": user_id} if user_id else {}
