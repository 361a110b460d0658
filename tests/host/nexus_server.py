"""A nexus that misbehaves as it is told: what each request gets is scripted by the test."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from aiohttp import web

Reply = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Seen:
    """One request that came in."""

    def __init__(self, request: web.Request, body: bytes) -> None:
        self.method = request.method
        self.path = request.path
        self.raw_path = request.raw_path
        self.query = request.query_string
        self.headers = request.headers.copy()
        self.body = body
        self.connection = id(request.transport)


class ScriptedNexus:
    """Serves its `replies` in order, the last one for every request after them."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.seen: list[Seen] = []
        self.arrived = asyncio.Event()
        """Set when the first request is in."""
        self.gone = asyncio.Event()
        """Set when a client closed a stream before its end."""
        self.url = ""
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2
        )

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(Seen(request, await request.read()))
        self.arrived.set()
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        try:
            return await reply(request)
        except asyncio.CancelledError:
            self.gone.set()
            raise


# --- Replies ----------------------------------------------------------------------------------


def answers(
    body: bytes | str = b"{}",
    *,
    status: int = 200,
    content_type: str = "application/json",
    **headers: str,
) -> Reply:
    """Answer with this body."""  # fmt: skip

    async def reply(_: web.Request) -> web.StreamResponse:
        data = body.encode() if isinstance(body, str) else body
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, body=data, content_type=content_type, headers=named)

    return reply


def hangs() -> Reply:
    """Never answer."""

    async def reply(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    return reply


def hangs_up() -> Reply:
    """Close the connection without an answer."""

    async def reply(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return reply


def streams(*pieces: bytes, end: str = "clean", content_type: str = "text/event-stream") -> Reply:
    """Send these pieces, then end: ``clean``, ``cut``, or ``never``."""

    async def reply(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": content_type})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if end == "cut":
            assert request.transport is not None
            request.transport.abort()
            return response
        if end == "never":
            await asyncio.Event().wait()
        await response.write_eof()
        return response

    return reply
