"""What a host can get wrong towards nexus: a relay that changes requests and answers.

One relay serves all plugins of a faulty host; whose request it is it knows from the tool id that
opened the invoke, and from the tokens that were given.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Self, cast

import aiohttp
from aiohttp import web

Body = dict[str, Any]


class Passing:
    """One request on its way: what may be changed. `after` is done once it was answered."""

    def __init__(self, relay: "Relay", name: str, path: str, bearer: str, body: Body) -> None:
        self.relay = relay
        self.name = name
        self.path = path
        self.bearer = bearer
        self.body = body

    async def again(self, path: str = "", bearer: str = "", body: Body | None = None) -> None:
        """Ask nexus something more."""
        await self.relay.ask(path or self.path, bearer or self.bearer, body or self.body)


class Upstream:
    """A fault towards nexus. As it stands it changes nothing."""

    detached = False
    """The stream of a run goes on when its plugin's host has let go of it."""

    def swallows(self, passing: Passing) -> bytes | None:
        """What is answered in place of asking nexus, if it is not asked."""
        return None

    def change(self, passing: Passing) -> None:
        """Change what nexus is asked."""

    def answer(self, passing: Passing, answer: Body) -> None:
        """Change what nexus answered."""

    async def after(self, passing: Passing, answer: Body) -> None:
        """Do more than was asked for."""


class Relay:
    """Stands before nexus. `fault_of` gives the fault of a plugin by its tool id."""

    def __init__(self, url: str, key: str, fault_of: Callable[[str], Upstream]) -> None:
        self.url = ""
        self.key = key
        self._nexus = url
        self._fault_of = fault_of
        self._owners: dict[str, Upstream] = {}
        self._runner: web.AppRunner | None = None
        self._client: aiohttp.ClientSession | None = None
        self._detached: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 25)
        app.router.add_route("*", "/api/v1/{path:.*}", self._serve)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        self._client = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._detached:
            task.cancel()
        if self._detached:
            await asyncio.wait(self._detached)
        if self._client is not None:
            await self._client.close()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def client(self) -> aiohttp.ClientSession:
        """What nexus is asked with."""
        assert self._client is not None
        return self._client

    async def ask(self, path: str, bearer: str, body: Body) -> None:
        """Ask nexus and forget the answer."""
        headers = {"Authorization": f"Bearer {bearer}"}
        url = f"{self._nexus}/api/v1/{path}"
        async with self.client.post(url, json=body, headers=headers) as response:
            await response.read()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        path = request.match_info["path"]
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        passing = Passing(self, _name(request.method, path), path, bearer, _object(raw))
        fault = self._whose(passing)
        given = fault.swallows(passing)
        if given is not None:
            return web.Response(body=given, content_type="application/json")
        fault.change(passing)
        sent = json.dumps(passing.body).encode() if raw and passing.body else raw
        headers = {"Authorization": f"Bearer {passing.bearer}", "Content-Type": "application/json"}
        url = f"{self._nexus}/api/v1/{path}"
        if passing.name == "run":
            asked = self.client.post(url, data=sent, headers=headers)
            return await self._stream(request, fault, passing, asked)
        async with self.client.request(request.method, url, data=sent, headers=headers) as response:
            body = await response.read()
            status = response.status
        answer = _object(body)
        if answer:
            self._learn(answer, fault)
            before = json.dumps(answer)
            fault.answer(passing, answer)
            if json.dumps(answer) != before:
                body = json.dumps(answer).encode()
        await fault.after(passing, answer)
        return web.Response(body=body, status=status, content_type="application/json")

    async def _stream(
        self,
        request: web.Request,
        fault: Upstream,
        passing: Passing,
        asked: AbstractAsyncContextManager[aiohttp.ClientResponse],
    ) -> web.StreamResponse:
        pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def pull() -> None:
            try:
                async with asked as upstream:
                    answered.set_result(upstream.status)
                    async for piece in upstream.content.iter_any():
                        pieces.put_nowait(piece)
            except aiohttp.ClientError:
                if not answered.done():
                    answered.set_result(502)
            finally:
                pieces.put_nowait(None)

        task = asyncio.create_task(pull())
        self._detached.add(task)
        task.add_done_callback(self._detached.discard)
        try:
            response = web.StreamResponse(
                status=await answered, headers={"Content-Type": "text/event-stream"}
            )
            await response.prepare(request)
            while (piece := await pieces.get()) is not None:
                await response.write(piece)
            await response.write_eof()
            return response
        finally:
            if not fault.detached:
                task.cancel()
            await fault.after(passing, {})

    def _whose(self, passing: Passing) -> Upstream:
        if passing.name == "open":
            fault = self._fault_of(str(passing.body.get("executa_tool_id", "")))
            self._owners[str(passing.body.get("invoke_id"))] = fault
            return fault
        if passing.name in ("renew", "close"):
            return self._owners.get(passing.path.split("/")[2], Upstream())
        return self._owners.get(passing.bearer, Upstream())

    def _learn(self, answer: Body, fault: Upstream) -> None:
        given: list[Any] = [answer.get(f"{kind}_token") for kind in ("sampling", "storage")]
        for value in (*[token["value"] for token in given if token], answer.get("token")):
            if value:
                self._owners[str(value)] = fault


def _object(raw: bytes) -> Body:
    try:
        value = json.loads(raw)
    except ValueError:
        return {}
    return cast("Body", value) if isinstance(value, dict) else {}


def _name(method: str, path: str) -> str:
    if path == "executa/invokes":
        return "open"
    if path.startswith("executa/invokes/"):
        return "close" if method == "DELETE" else "renew"
    last = path.rsplit("/", 1)[-1]
    return {"agent": "run", "from_sampling": "create"}.get(last, last)
