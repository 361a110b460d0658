"""The HTTP door as an application, and as a server with an address.

Owns how the handlers are put together and how the server starts and stops. It listens
on loopback unless told otherwise; signed file URLs lead to it.
"""

from importlib.metadata import version
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from executa_nexus_stub.core import NexusStub
from executa_nexus_stub.http.admin import Admin
from executa_nexus_stub.http.blobs import add_blob_routes
from executa_nexus_stub.http.handlers import Handlers, answer
from executa_nexus_stub.http.openapi import document
from executa_nexus_stub.http.refusal import refusals
from executa_nexus_stub.http.routes import BASE, ENDPOINTS
from executa_protocol.limits import MAX_LINE, MIB

BODY_LIMIT: Final = MAX_LINE + MIB
"""Largest request body: what a line may hold, and room for its envelope."""

_STOP_SECONDS: Final = 2.0


def make_app(stub: NexusStub) -> web.Application:
    """The application over `stub`. The stub stays the caller's to close."""
    app = web.Application(middlewares=[refusals], client_max_size=BODY_LIMIT)
    handlers, admin = Handlers(stub), Admin(stub)
    for endpoint in ENDPOINTS:
        owner = admin if endpoint.path.startswith("/admin/") else handlers
        handler = getattr(owner, endpoint.handler)
        app.router.add_route(endpoint.method, BASE + endpoint.path, handler)
    add_blob_routes(app, stub.stores.files)
    described = answer(document(version("executa-nexus-stub"))).body

    async def openapi(_: web.Request) -> web.Response:
        return web.Response(body=described, content_type="application/json")

    app.router.add_get(f"{BASE}/openapi.json", openapi)
    return app


class NexusServer:
    """A stub with an address. Port 0 lets the system choose; `url` says what it chose."""

    def __init__(self, stub: NexusStub, host: str = "127.0.0.1", port: int = 0) -> None:
        self._stub = stub
        self._host = host
        self._port = port
        # A client that goes away cancels its handler, and with it the run it was reading.
        self._runner = web.AppRunner(
            make_app(stub),
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=_STOP_SECONDS,
        )
        self.url = ""

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._stub.serve_files_at(self.url)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()
