"""The API over real HTTP on loopback, in front of an engine in memory."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from aiohttp import web

from executa_host.actions.requests import OWN_WORK, Scope
from executa_host.api import ApiServer
from executa_host.api.visit import Pace
from executa_host.client import Client
from executa_host.keys import KeyFile
from tests.api.fake import FakeActions
from tests.api.fake_plugins import FakePlugins
from tests.support.leaks import LeakCheck

QUICK = Pace(heartbeat=0.05, stall=20.0, body=20.0, sync=0.2)
"""Nobody waits long here; what must not happen by time is far away."""


class Rig:
    """A server, its engine and its keys."""

    def __init__(self, folder: Path, pace: Pace = QUICK) -> None:
        self.actions = FakeActions()
        self.plugins = FakePlugins()
        self.keys = KeyFile(folder / "keys.json")
        self.server = ApiServer(self.actions, self.keys, self.plugins, pace=pace, stop_seconds=10.0)
        self._clients: list[Client] = []

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.url.removeprefix("http://").split(":")
        return host, int(port)

    @property
    def web_server(self) -> web.Server:
        """What holds the connections of clients."""
        server = vars(self.server)["_runner"].server
        assert isinstance(server, web.Server)
        return server

    def key(
        self,
        principal: str = "ada",
        *,
        tenant: str = "default",
        scopes: frozenset[Scope] = OWN_WORK,
        user_id: str = "local",
    ) -> str:
        """A new key."""
        made = self.keys.create(principal, tenant=tenant, scopes=scopes, user_id=user_id)
        return made.text

    def client(self, principal: str = "ada", *scopes: Scope, tenant: str = "default") -> Client:
        """A client of its own, with a new key. Without scopes it has an ordinary client's."""
        granted = frozenset(scopes) or OWN_WORK
        return self.client_of(self.key(principal, tenant=tenant, scopes=granted))

    def client_of(self, key: str, url: str = "") -> Client:
        """A client with this key. It is closed with the rig."""
        client = Client(url or self.url, key, pause=no_pause, jitter=lambda: 1.0)
        self._clients.append(client)
        return client

    async def close(self) -> None:
        for client in self._clients:
            await client.close()
        await self.server.close()


async def no_pause(_: float) -> None:
    """Between attempts nobody waits."""


@pytest.fixture
async def rig(tmp_path: Path, leak_check: LeakCheck) -> AsyncIterator[Rig]:
    """A server with quick clocks."""
    rig = Rig(tmp_path)
    leak_check.watch(rig.server, "server")
    async with rig.server:
        yield rig
        await rig.close()


MakeRig: TypeAlias = Callable[[Pace], Rig]


@pytest.fixture
def make_rig(tmp_path: Path) -> MakeRig:
    """A server of the test's own, which enters and closes it."""
    return lambda pace: Rig(tmp_path, pace)
