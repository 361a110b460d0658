"""A server on loopback with its keys and clients, before an engine in memory or the real one."""

from pathlib import Path
from typing import Any

from aiohttp import web

from executa_host.actions.engine import Engine
from executa_host.actions.interface import Actions
from executa_host.actions.records import ActionState
from executa_host.actions.requests import ALL_SCOPES, EVERY_ACTION, OWN_WORK, Caller, Scope
from executa_host.actions.sqlite import SqliteStore
from executa_host.api import ApiServer
from executa_host.api.visit import Pace
from executa_host.client import Client
from executa_host.keys import KeyFile
from executa_protocol.manifest import Parameter, Tool
from tests.actions.scripted import ScriptedCatalog, ScriptedRunner
from tests.api.fake import FakeActions
from tests.api.fake_plugins import FakePlugins

QUICK = Pace(heartbeat=0.05, stall=20.0, body=20.0, sync=0.2)
"""Nobody waits long here; what must not happen by time is far away."""

ROOT = Caller(principal="root", scopes=ALL_SCOPES)


async def no_pause(_: float) -> None:
    """Between attempts nobody waits."""


class Serving:
    """A server, its keys and its clients. What is behind it is the subclass's business."""

    def __init__(self, folder: Path, pace: Pace = QUICK) -> None:
        self.plugins = FakePlugins()
        self.keys = KeyFile(folder / "keys.json")
        self.pace = pace
        self.server: ApiServer
        self._clients: list[Client] = []

    def serve(self, actions: Actions, port: int = 0) -> ApiServer:
        """The server before `actions`; it is the caller's to enter."""
        self.server = ApiServer(
            actions, self.keys, self.plugins, port=port, pace=self.pace, stop_seconds=10.0
        )
        return self.server

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

    def break_connections(self) -> None:
        """Cut every client off in the middle of whatever it does."""
        for connection in self.web_server.connections:
            if connection.transport is not None:
                connection.transport.abort()

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
        """Close the clients, then the server."""
        for client in self._clients:
            await client.close()
        await self.server.close()

    async def known(self) -> Any:
        """All that there is, to see whether something has changed it."""
        raise NotImplementedError

    async def dead_letter(self) -> str:
        """A dead letter of Ada's."""
        raise NotImplementedError


class Rig(Serving):
    """Before an engine in memory, in which a test moves actions by hand."""

    def __init__(self, folder: Path, pace: Pace = QUICK) -> None:
        super().__init__(folder, pace)
        self.actions = FakeActions()
        self.serve(self.actions)

    async def known(self) -> Any:
        return dict(self.actions.records), dict(self.actions.sessions.records)

    async def dead_letter(self) -> str:
        action_id = (await self.client().submit("notebook.recall")).action.action_id
        self.actions.move(action_id, ActionState.DEAD_LETTERED)
        return action_id


def _tool(name: str, **members: Any) -> Tool:
    parameters = [
        Parameter(name="query", type="string", required=False),
        Parameter(name="amount", type="integer", required=False),
    ]
    return Tool(name=name, parameters=parameters, **members)


class EngineRig(Serving):
    """Before the real engine on a file, whose runner does what a test says."""

    def __init__(self, folder: Path, pace: Pace = QUICK) -> None:
        super().__init__(folder, pace)
        self._path = folder / "actions.db"
        self.runner = ScriptedRunner()
        self.catalog = ScriptedCatalog()
        self.catalog.tools = {
            "bank.pay": _tool("pay", approval=True),
            "bank.send": _tool("send"),
            "notebook.recall": _tool("recall", effect="read", streaming=True),
        }
        self.store: SqliteStore
        self.engine: Engine

    async def start(self, port: int = 0) -> None:
        """Open the file, take over what was left, and serve."""
        self.store = await SqliteStore.open(self._path, synchronous="NORMAL")
        self.engine = Engine(self.store, self.runner, self.catalog)
        await self.engine.open()
        await self.serve(self.engine, port).__aenter__()

    async def stop(self) -> None:
        """End server, engine and store; what is on disk stays."""
        await self.server.close()
        await self.engine.close()
        await self.store.close()

    async def restart(self, grace: float = 0.0) -> None:
        """Drain, end, and begin again at the same address with the same file."""
        port = self.address[1]
        await self.server.drain(grace)
        await self.stop()
        self.runner = ScriptedRunner()
        await self.start(port)

    async def known(self) -> Any:
        actions = await self.engine.list(ROOT, EVERY_ACTION)
        return actions, await self.engine.sessions.list(ROOT)

    async def dead_letter(self) -> str:
        client = self.client()
        action_id = (await client.submit("bank.send")).action.action_id
        (await self.runner.begun(action_id)).lose()
        ended = await client.result(action_id, wait=30)
        assert ended.action.state is ActionState.DEAD_LETTERED
        return action_id
