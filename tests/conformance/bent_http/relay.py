"""A relay before an HTTP side. Its `bend` may be exchanged between requests."""

import asyncio
import json
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, cast

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from executa_protocol.sse import SseEvent, SseParser, encode_event

Members = dict[str, Any]


class Passing:
    """A request on its way, and what may be changed of it."""

    def __init__(self, method: str, path: str, query: str, body: bytes, bearer: str) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.body = body
        self.bearer = bearer
        self.headers: CIMultiDict[str] = CIMultiDict()

    @property
    def members(self) -> Members:
        """The body's members."""
        return members(decoded(self.body))

    def change(self, change: Callable[[Members], Any]) -> None:
        """Change the body's members."""
        body = self.members
        change(body)
        self.body = json.dumps(body).encode()


class Answered:
    """An answer on its way back, and what may be changed of it."""

    def __init__(self, status: int, body: bytes, kind: str) -> None:
        self.status = status
        self.body = body
        self.kind = kind

    @property
    def members(self) -> Members:
        """The body's members."""
        return members(decoded(self.body))

    def change(self, change: Callable[[Members], Any]) -> None:
        """Change the body's members, if it has any."""
        value = decoded(self.body)
        if isinstance(value, dict):
            change(cast("Members", value))
            self.body = json.dumps(value).encode()


class Bend:
    """What is wrong. As it stands, nothing is."""

    def ask(self, passing: Passing) -> Answered | None:
        """Change a request, or answer it in place of the side itself."""
        return None

    def answer(self, passing: Passing, answered: Answered) -> None:
        """Change an answer."""

    def event(self, passing: Passing, event: SseEvent) -> Iterable[bytes]:
        """What is streamed for an event."""
        kind = "" if event.type == "message" else event.type
        return [encode_event(event.data, event=kind, event_id=event.id)]

    async def more(self, passing: Passing, relay: "Relay") -> None:
        """Do more than was asked for."""


class Relay:
    """Listens on loopback and asks `target`."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.url = ""
        self.bend = Bend()
        self._runner: web.AppRunner | None = None
        self._client: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        self._client = aiohttp.ClientSession()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.client.close()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def client(self) -> aiohttp.ClientSession:
        """What the target is asked with."""
        assert self._client is not None
        return self._client

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        bend = self.bend
        passing = Passing(
            request.method,
            request.raw_path.partition("?")[0],
            request.query_string,
            await request.read(),
            request.headers.get("Authorization", "").removeprefix("Bearer "),
        )
        for name in ("Content-Type", "Accept", "Last-Event-ID"):
            if name in request.headers:
                passing.headers[name] = request.headers[name]
        given = bend.ask(passing)
        if given is not None:
            return _response(given)
        if passing.bearer:
            passing.headers["Authorization"] = f"Bearer {passing.bearer}"
        query = f"?{passing.query}" if passing.query else ""
        url = URL(f"{self.target}{passing.path}{query}", encoded=True)
        async with self.client.request(
            passing.method, url, data=passing.body or None, headers=passing.headers,
            allow_redirects=False,
        ) as response:  # fmt: skip
            if response.content_type == "text/event-stream":
                return await self._stream(request, passing, response, bend)
            answered = Answered(response.status, await response.read(), response.content_type)
        bend.answer(passing, answered)
        await bend.more(passing, self)
        return _response(answered)

    async def _stream(
        self,
        request: web.Request,
        passing: Passing,
        response: aiohttp.ClientResponse,
        bend: Bend,
    ) -> web.StreamResponse:
        answered = Answered(response.status, b"", response.content_type)
        bend.answer(passing, answered)
        out = web.StreamResponse(status=answered.status, headers={"Content-Type": answered.kind})
        await out.prepare(request)
        parser = SseParser()
        try:
            async for chunk in response.content.iter_any():
                for event in parser.feed(chunk):
                    for piece in bend.event(passing, event):
                        await out.write(piece)
        except asyncio.CancelledError:
            await bend.more(passing, self)
            raise
        await out.write_eof()
        return out


def decoded(body: bytes) -> Any:
    """JSON, or None for what is none."""
    try:
        return json.loads(body)
    except ValueError:
        return None


def members(value: object) -> Members:
    """An object's members; none of anything else."""
    return cast("Members", value) if isinstance(value, dict) else {}


def _response(answered: Answered) -> web.Response:
    if answered.status == 204:
        return web.Response(status=204)
    return web.Response(
        status=answered.status, body=answered.body, headers={"Content-Type": answered.kind}
    )
