"""The nexus interface over the stub's HTTP door, so that one set of tests speaks to both.

Owns the plainest client that the paths allow. What hosts use is the host's own; this one
decodes with the structs and hides nothing.
"""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any, TypeVar, cast

import aiohttp
import msgspec

from executa_protocol import codec
from executa_protocol.methods.agent import AgentSessionCreateParams
from executa_protocol.methods.sampling import SamplingParams, SamplingResult
from executa_protocol.nexus import (
    AgentRun,
    InvokeGrant,
    InvokeOpening,
    MintedAgentSession,
    NexusError,
    ToolOutcome,
)
from executa_protocol.sse import SseParser

T = TypeVar("T")


class HttpNexus:
    """Implements `executa_protocol.nexus.Nexus`."""

    def __init__(self, url: str) -> None:
        self.base = f"{url}/api/v1"
        self.session = aiohttp.ClientSession()

    async def open_invoke(self, opening: InvokeOpening) -> InvokeGrant:
        return await self._call("POST", "/executa/invokes", InvokeGrant, body=opening)

    async def renew_invoke(self, invoke_id: str) -> InvokeGrant:
        return await self._call("POST", f"/executa/invokes/{invoke_id}/renew", InvokeGrant)

    async def close_invoke(self, invoke_id: str) -> None:
        await self._send("DELETE", f"/executa/invokes/{invoke_id}")

    async def sample(self, token: str, params: SamplingParams) -> SamplingResult:
        return await self._call("POST", "/copilot/sampling", SamplingResult, token, params)

    async def create_agent_session(
        self, token: str, params: AgentSessionCreateParams
    ) -> MintedAgentSession:
        path = "/copilot/app/sessions/from_sampling"
        return await self._call("POST", path, MintedAgentSession, token, params)

    async def refresh_agent_session(
        self, token: str, app_session_uuid: str, ttl_seconds: int | None
    ) -> MintedAgentSession:
        path = f"/copilot/app/sessions/{app_session_uuid}/refresh"
        body = {"ttl_seconds": ttl_seconds}
        return await self._call("POST", path, MintedAgentSession, token, body)

    async def delete_agent_session(self, token: str, app_session_uuid: str) -> None:
        await self._send("DELETE", f"/copilot/app/sessions/{app_session_uuid}", token)

    async def run_agent(self, token: str, run: AgentRun) -> AsyncGenerator[bytes, None]:
        async with self._request("POST", "/copilot/app/agent", token, run) as response:
            parser = SseParser()
            try:
                async for data in response.content.iter_any():
                    for event in parser.feed(data):
                        frame = cast("dict[str, Any]", codec.decode_any(event.data))
                        if frame.get("done"):
                            return
                        if frame["event"] == "error":
                            raise NexusError(
                                frame["message"],
                                status=502,
                                code=frame["code"],
                                symbol=frame.get("errorCode", ""),
                            )
                        yield event.data
            except aiohttp.ClientError as fault:
                raise NexusError(f"the stream broke: {fault}") from fault

    async def cancel_run(self, token: str, run_id: str) -> bool:
        data = await self._send("POST", "/copilot/app/agent/cancel", token, {"run_id": run_id})
        return cast("dict[str, bool]", codec.decode_any(data))["cancelled"]

    async def post_tool_result(self, token: str, outcome: ToolOutcome) -> None:
        await self._send("POST", "/copilot/app/agent/tool_result", token, outcome)

    async def storage(self, token: str, method: str, params: bytes) -> bytes:
        store, verb = method.split("/")
        path = f"/storage/{'kv' if store == 'storage' else store}/{verb}"
        return await self._send("POST", path, token, msgspec.Raw(params))

    async def aclose(self) -> None:
        await self.session.close()

    async def _call(
        self, method: str, path: str, kind: type[T], token: str = "", body: object = None
    ) -> T:
        return msgspec.json.decode(await self._send(method, path, token, body), type=kind)

    async def _send(self, method: str, path: str, token: str = "", body: object = None) -> bytes:
        async with self._request(method, path, token, body) as response:
            return await response.read()

    @contextlib.asynccontextmanager
    async def _request(
        self, method: str, path: str, token: str = "", body: object = None
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        data = None if body is None else msgspec.json.encode(body)
        url = self.base + path
        async with self.session.request(method, url, data=data, headers=headers) as response:
            if response.status >= 400:
                error = (await response.json())["error"]
                pause = response.headers.get("Retry-After")
                raise NexusError(
                    error["message"],
                    status=response.status,
                    code=error["code"],
                    symbol=error["errorCode"],
                    retry_after=float(pause) if pause else None,
                )
            yield response
