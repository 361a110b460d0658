"""What the endpoints do: read the body, call the core, encode the answer.

Owns nothing else. Every check of tokens and grants is the core's, so that both doors
refuse alike. A client that goes away ends its run: the server cancels the handler.
"""

import asyncio
import contextlib
import hmac
import os
from collections.abc import AsyncGenerator
from typing import Final, TypeVar

import msgspec
from aiohttp import web
from msgspec import Struct

from executa_nexus_stub.core import NexusStub
from executa_nexus_stub.http.refusal import refusal
from executa_nexus_stub.http.routes import Cancelled, RefreshBody, RunRef
from executa_nexus_stub.refusals import invalid, refused
from executa_protocol import codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.methods.agent import read_create
from executa_protocol.methods.sampling import read_sampling
from executa_protocol.nexus import AgentRun, InvokeOpening, NexusError, ToolOutcome
from executa_protocol.sse import encode_event

T = TypeVar("T", bound=Struct)

KEEP_ALIVE: Final = 10.0
"""A run that is silent for so long sends a comment, so that nobody gives it up."""

_OPENING: Final = msgspec.json.Decoder(InvokeOpening)
_RUN: Final = msgspec.json.Decoder(AgentRun)
_OUTCOME: Final = msgspec.json.Decoder(ToolOutcome)
_REFRESH: Final = msgspec.json.Decoder(RefreshBody)
_REF: Final = msgspec.json.Decoder(RunRef)


async def body_of(request: web.Request) -> bytes:
    """The request's body, its content checked as a line's is (R-14); none reads as ``{}``."""
    data = await request.read() or b"{}"
    try:
        codec.check_content(data)
    except DecodeFailure as fault:
        raise refused("PARSE_ERROR", f"body: {fault}", status=400) from None
    return data


async def decoded(request: web.Request, decoder: "msgspec.json.Decoder[T]") -> T:
    """The body as a struct. Raises `NexusError` (422) that names the member."""
    data = await body_of(request)
    try:
        return codec.decode(data, decoder)
    except DecodeFailure as fault:
        raise invalid(fault) from None


def answer(value: object) -> web.Response:
    """A JSON answer."""
    return web.Response(body=codec.encode(value), content_type="application/json")


def bearer(request: web.Request) -> str:
    """The token of the request. Raises `NexusError` (401) if there is none."""
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise refused("INVALID_REQUEST", "Authorization: expected a bearer token", status=401)
    return token.strip()


class Handlers:
    """The endpoints of hosts, by the names in `routes`."""

    def __init__(self, stub: NexusStub) -> None:
        self._stub = stub

    async def open_invoke(self, request: web.Request) -> web.Response:
        self._check_host(request)
        return answer(await self._stub.open_invoke(await decoded(request, _OPENING)))

    async def renew_invoke(self, request: web.Request) -> web.Response:
        self._check_host(request)
        return answer(await self._stub.renew_invoke(request.match_info["id"]))

    async def close_invoke(self, request: web.Request) -> web.Response:
        self._check_host(request)
        await self._stub.close_invoke(request.match_info["id"])
        return web.Response(status=204)

    async def sample(self, request: web.Request) -> web.Response:
        token = bearer(request)
        try:
            params = read_sampling(await body_of(request))
        except DecodeFailure as fault:
            raise invalid(fault, "SAMPLING_INVALID_REQUEST") from None
        return answer(await self._stub.sample(token, params))

    async def create_session(self, request: web.Request) -> web.Response:
        token = bearer(request)
        try:
            params = read_create(await body_of(request))
        except DecodeFailure as fault:
            raise invalid(fault) from None
        return answer(await self._stub.create_agent_session(token, params))

    async def refresh_session(self, request: web.Request) -> web.Response:
        token = bearer(request)
        wanted = await decoded(request, _REFRESH)
        uuid = request.match_info["uuid"]
        return answer(await self._stub.refresh_agent_session(token, uuid, wanted.ttl_seconds))

    async def delete_session(self, request: web.Request) -> web.Response:
        await self._stub.delete_agent_session(bearer(request), request.match_info["uuid"])
        return web.Response(status=204)

    async def cancel_run(self, request: web.Request) -> web.Response:
        token = bearer(request)
        ref = await decoded(request, _REF)
        return answer(Cancelled(await self._stub.cancel_run(token, ref.run_id)))

    async def tool_result(self, request: web.Request) -> web.Response:
        token = bearer(request)
        await self._stub.post_tool_result(token, await decoded(request, _OUTCOME))
        return web.Response(status=204)

    async def storage(self, request: web.Request) -> web.Response:
        token = bearer(request)
        store, verb = request.path.rsplit("/", 2)[-2:]
        method = f"{'storage' if store == 'kv' else store}/{verb}"
        data = await self._stub.storage(token, method, await body_of(request))
        return web.Response(body=data, content_type="application/json")

    async def run_agent(self, request: web.Request) -> web.StreamResponse:
        """Frames as events. A refusal before the first one is an ordinary answer."""
        token = bearer(request)
        run = await decoded(request, _RUN)
        async with contextlib.aclosing(self._stub.run_agent(token, run)) as frames:
            try:
                first = await anext(frames, None)
            except NexusError as fault:
                return refusal(fault)
            response = web.StreamResponse(
                headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
            )
            await response.prepare(request)
            frame = first
            while frame is not None:
                await response.write(encode_event(frame))
                try:
                    frame = await _next(frames, response)
                except NexusError as fault:
                    if not fault.status:  # the stream is to look cut, so it is
                        if request.transport is not None:
                            request.transport.abort()
                        return response
                    await response.write(encode_event(_error_frame(fault)))
                    break
            end = {"event": "end", "run_id": run.run_id, "done": True}
            await response.write(encode_event(codec.encode(end)))
            await response.write_eof()
            return response

    def _check_host(self, request: web.Request) -> None:
        """Raise `NexusError` (401) unless the host shows the key that the configuration names."""
        name = self._stub.config.host_key_env
        if not name:
            return
        key = os.environ.get(name, "")
        shown = bearer(request)
        if not key or not hmac.compare_digest(shown.encode(), key.encode()):
            raise refused("INVALID_REQUEST", "Authorization: not the host's key", status=401)


async def _next(frames: AsyncGenerator[bytes, None], response: web.StreamResponse) -> bytes | None:
    """The next frame, with signs of life while there is none."""
    coming = asyncio.ensure_future(anext(frames, None))
    try:
        while not (await asyncio.wait([coming], timeout=KEEP_ALIVE))[0]:
            await response.write(encode_event(comment="waiting"))
        return await coming
    finally:
        if not coming.done():  # the client went away
            coming.cancel()
            await asyncio.wait([coming])


def _error_frame(fault: NexusError) -> bytes:
    members = {"event": "error", "code": fault.code, "message": str(fault)}
    if fault.symbol:
        members["errorCode"] = fault.symbol
    return codec.encode(members)
