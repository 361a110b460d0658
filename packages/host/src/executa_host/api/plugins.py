"""Plugins over HTTP: how they are, what they wrote, and a restart by hand.

Owns what the API asks of whoever runs plugins (`PluginHost`), which is the host or a stand-in.
Processes serve every tenant of a user, and what they write to stderr may be anybody's: all of
it is for keys with the scope `admin`.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from aiohttp import web
from msgspec import Struct, structs

from executa_host.api.refusal import ApiCode, Refusal, answer
from executa_host.api.visit import Lifeline, Visit
from executa_host.status import PluginStatus
from executa_protocol.errors import ExecutaError, UsageError


class PluginHost(Protocol):
    """What the API needs of a host. All raise `UsageError` for a plugin that nobody knows."""

    def list(self) -> Sequence[PluginStatus]:
        """Every plugin of every user for whom it was started, and those of nobody yet."""
        ...

    def get(self, plugin: str, user_id: str) -> PluginStatus:
        """How one plugin of one user is."""
        ...

    async def restart(self, plugin: str, user_id: str) -> None:
        """Stop it, forget its faults, and start it anew. Raises `ExecutaError`."""
        ...

    async def reload(self, plugin: str, user_id: str) -> None:
        """Let its invokes end, then start it anew if it ran. Raises `ExecutaError`."""
        ...


class PluginList(Struct, frozen=True):
    """Plugins, without their last words."""

    plugins: tuple[PluginStatus, ...]


class PluginAnswer(Struct, frozen=True):
    """One plugin of one user."""

    plugin: PluginStatus


class PluginLog(Struct, frozen=True):
    """The last lines that a plugin wrote to stderr, the newest last.

    They come from its process and from those before it, which have written `written` lines in
    all since the host began: whoever asks again knows by that which are new.
    """

    plugin: str
    user_id: str
    lines: tuple[str, ...]
    written: int


class PluginHandlers:
    """The endpoints, by the names in `routes`."""

    def __init__(self, plugins: PluginHost, lifeline: Lifeline) -> None:
        self._plugins = plugins
        self._lifeline = lifeline

    async def list(self, _: Visit) -> web.Response:
        return answer(PluginList(tuple(structs.replace(each, last_words=())
                                       for each in self._plugins.list())))  # fmt: skip

    async def get(self, visit: Visit) -> web.Response:
        return answer(PluginAnswer(self._status(visit)))

    async def logs(self, visit: Visit) -> web.Response:
        status = self._status(visit)
        lines = status.last_words[-visit.query.limit :]
        return answer(PluginLog(status.plugin, status.user_id, lines, status.stderr_lines))

    async def restart(self, visit: Visit) -> web.Response:
        return await self._by_hand(visit, self._plugins.restart)

    async def reload(self, visit: Visit) -> web.Response:
        return await self._by_hand(visit, self._plugins.reload)

    async def _by_hand(
        self, visit: Visit, act: Callable[[str, str], Coroutine[Any, Any, None]]
    ) -> web.Response:
        before = self._status(visit)
        try:
            await self._lifeline.change(act(before.plugin, before.user_id))
        except ExecutaError as fault:
            raise Refusal(
                503, ApiCode.PLUGIN_NOT_STARTED, f"{before.plugin}: {fault}", retryable=True
            ) from None
        return answer(PluginAnswer(self._plugins.get(before.plugin, before.user_id)))

    def _status(self, visit: Visit) -> PluginStatus:
        user_id = visit.query.user_id or visit.caller.user_id
        try:
            return self._plugins.get(visit.part("plugin"), user_id)
        except UsageError:
            raise Refusal(
                404, ApiCode.UNKNOWN_PLUGIN, "no plugin has this name", path="plugin"
            ) from None
