"""The API with an address: how it starts, drains and stops.

Owns the order of an end: readiness says no, the engine takes no new work and lets what runs
end, followers are told, then connections close. It listens on loopback unless it is told
that it may be reached from elsewhere, and speaks plain HTTP unless it is given TLS.
"""

import ipaddress
import ssl
from types import TracebackType
from typing import Self

from aiohttp import web

from executa_host.actions.interface import Actions
from executa_host.api.app import make_app
from executa_host.api.connections import ApiRunner
from executa_host.api.limits import DRAIN_SECONDS, STOP_SECONDS
from executa_host.api.plugins import PluginHost
from executa_host.api.visit import DEFAULT_PACE, Lifeline, Pace
from executa_host.keys import KeyFile
from executa_protocol.errors import UsageError


class ApiServer:
    """Serves an engine. Port 0 lets the system choose; `url` says what it chose.

    `tls` has the certificate. Raises `UsageError` for an address beyond loopback unless
    `remote` allows it, and for one that cannot be listened on.
    """

    def __init__(
        self,
        actions: Actions,
        keys: KeyFile,
        plugins: PluginHost | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        remote: bool = False,
        tls: ssl.SSLContext | None = None,
        pace: Pace = DEFAULT_PACE,
        stop_seconds: float = STOP_SECONDS,
    ) -> None:
        if not remote and not is_loopback(host):
            msg = f"{host} can be reached from other machines; allow that expressly"
            raise UsageError(msg)
        self._actions = actions
        self._host = host
        self._port = port
        self._tls = tls
        self._stop_seconds = stop_seconds
        self._lifeline = Lifeline()
        app = make_app(actions, keys, plugins, lifeline=self._lifeline, pace=pace)
        self._runner = ApiRunner(app, shutdown_timeout=stop_seconds)
        self.url = ""

    @property
    def in_flight(self) -> int:
        """Changes that are under way."""
        return self._lifeline.in_flight

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port, ssl_context=self._tls).start()
        except OSError as fault:
            await self._runner.cleanup()
            where = f"{self._host}:{self._port}"
            msg = f"cannot listen on {where}: {fault.strerror or fault}"
            raise UsageError(msg) from None
        host, port = self._runner.addresses[0][:2]
        scheme = "http" if self._tls is None else "https"
        self.url = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def drain(self, grace: float = DRAIN_SECONDS) -> None:
        """Take no new work and let what runs end within `grace` seconds, then tell followers.

        Reads are answered until `close`. Idempotent.
        """
        self._lifeline.draining = True
        await self._actions.drain(grace)
        self._lifeline.close()

    async def close(self) -> None:
        """Tell who waits or follows, finish changes that were begun, and close. Idempotent."""
        self._lifeline.close()
        await self._runner.cleanup()
        await self._lifeline.finish(self._stop_seconds)


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
