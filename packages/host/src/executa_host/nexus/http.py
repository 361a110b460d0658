"""Nexus over HTTP: the interface of `executa_protocol.nexus` as requests.

Owns which method is which request: path, bearer, body, time limit, and what may be asked
twice. Connections and retries are `calls`' business, a run's events `streams`'.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct
from yarl import URL

from executa_host.nexus import failures
from executa_host.nexus.calls import Call, Caller, Pause
from executa_host.nexus.failures import Chapter
from executa_host.nexus.streams import run_frames
from executa_protocol import codec
from executa_protocol.errors import DecodeFailure, UsageError
from executa_protocol.frames import check_depth
from executa_protocol.limits import (
    AGENT_CREATE_TIMEOUT,
    AGENT_OTHER_TIMEOUT,
    AGENT_RUN_TIMEOUT,
    NEXUS_CONNECT_TIMEOUT,
    NEXUS_INVOKE_TIMEOUT,
    NEXUS_SAMPLING_TIMEOUT,
    NEXUS_STORAGE_TIMEOUT,
)
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

T = TypeVar("T")

API: Final = "/api/v1"
"""What the paths of the interface begin with; added to a base address that lacks it."""

KEY_ENV: Final = "EXECUTA_NEXUS_KEY"
"""The environment variable with the key that a host shows when it opens invokes."""

_READS: Final = frozenset({"storage/get", "storage/list", "files/list", "files/download_url"})


class NexusTimeouts(Struct, frozen=True, kw_only=True):
    """Seconds for each kind of call, all its attempts together.

    `connect` is for opening a connection. `sampling` and `run` only bound what the host
    itself gives up earlier.
    """

    connect: float = NEXUS_CONNECT_TIMEOUT
    invoke: float = NEXUS_INVOKE_TIMEOUT
    sampling: float = NEXUS_SAMPLING_TIMEOUT
    storage: float = NEXUS_STORAGE_TIMEOUT
    create: float = AGENT_CREATE_TIMEOUT
    run: float = AGENT_RUN_TIMEOUT
    agent: float = AGENT_OTHER_TIMEOUT


class _Cancelled(Struct, frozen=True):
    cancelled: bool = False


_GRANT: Final = msgspec.json.Decoder(InvokeGrant)
_MINTED: Final = msgspec.json.Decoder(MintedAgentSession)
_SAMPLED: Final = msgspec.json.Decoder(SamplingResult)
_CANCELLED: Final = msgspec.json.Decoder(_Cancelled)


class HttpNexus:
    """Nexus at `base_url`. Implements `executa_protocol.nexus.Nexus`.

    `key` is shown when invokes are opened, renewed and closed; everything else goes under
    the tokens that nexus gave. `pause` and `jitter` are for tests. Raises `UsageError` for
    an address that is none or that holds a secret.
    """

    def __init__(
        self,
        base_url: str,
        *,
        key: str = "",
        timeouts: NexusTimeouts | None = None,
        pause: Pause = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        base = read_base(base_url)
        self._address = str(base)
        self._key = key
        self._times = timeouts or NexusTimeouts()
        self._caller = Caller(base, connect_timeout=self._times.connect, pause=pause, jitter=jitter)
        self._runs = 0

    def __repr__(self) -> str:
        return f"HttpNexus({self._address!r})"

    @property
    def in_flight(self) -> int:
        """Calls that have not been answered and runs that have not ended."""
        return self._caller.in_flight + self._runs

    # --- Invokes (R-39) ----------------------------------------------------------------

    async def open_invoke(self, opening: InvokeOpening) -> InvokeGrant:
        """``POST /executa/invokes``. The same opening twice is one invoke, so it is safe."""
        body = await self._invoke("/executa/invokes", codec.encode(opening))
        return _read("an invoke's grant", body, _GRANT)

    async def renew_invoke(self, invoke_id: str) -> InvokeGrant:
        """``POST /executa/invokes/{id}/renew``."""
        body = await self._invoke(f"/executa/invokes/{_segment(invoke_id)}/renew", b"{}")
        return _read("an invoke's grant", body, _GRANT)

    async def close_invoke(self, invoke_id: str) -> None:
        """``DELETE /executa/invokes/{id}``."""
        await self._invoke(f"/executa/invokes/{_segment(invoke_id)}", None)

    async def _invoke(self, path: str, body: bytes | None) -> bytes:
        return await self._ask("invoke", path, self._key, body, self._times.invoke, safe=True)

    # --- Sampling ----------------------------------------------------------------------

    async def sample(self, token: str, params: SamplingParams) -> SamplingResult:
        """``POST /copilot/sampling``. Never asked twice once it was sent: it costs tokens."""
        asked, seconds = codec.encode(params), self._times.sampling
        body = await self._ask("sampling", "/copilot/sampling", token, asked, seconds, safe=False)
        return _read("a completion", body, _SAMPLED)

    # --- Agent sessions ------------------------------------------------------------------

    async def create_agent_session(
        self, token: str, params: AgentSessionCreateParams
    ) -> MintedAgentSession:
        """``POST /copilot/app/sessions/from_sampling`` (seed agent-sessions, Auth chain)."""
        path, seconds = "/copilot/app/sessions/from_sampling", self._times.create
        body = await self._ask("agent", path, token, codec.encode(params), seconds, safe=False)
        return _read("an agent session", body, _MINTED)

    async def refresh_agent_session(
        self, token: str, app_session_uuid: str, ttl_seconds: int | None
    ) -> MintedAgentSession:
        """``POST /copilot/app/sessions/{uuid}/refresh``."""
        asked = {} if ttl_seconds is None else {"ttl_seconds": ttl_seconds}
        path = f"/copilot/app/sessions/{_segment(app_session_uuid)}/refresh"
        body = await self._agent(path, token, codec.encode(asked))
        return _read("an agent session", body, _MINTED)

    async def delete_agent_session(self, token: str, app_session_uuid: str) -> None:
        """``DELETE /copilot/app/sessions/{uuid}``."""
        await self._agent(f"/copilot/app/sessions/{_segment(app_session_uuid)}", token, None)

    async def run_agent(self, token: str, run: AgentRun) -> AsyncGenerator[bytes, None]:
        """``POST /copilot/app/agent``, a stream of events. Closing it closes the connection."""
        call = Call(
            path="/copilot/app/agent",
            chapter="agent",
            seconds=self._times.run,
            bearer=token,
            body=codec.encode(run),
            stream=True,
        )
        self._runs += 1
        try:
            frames = run_frames(await self._caller.stream_of(call), self._times.run)
            try:
                async for frame in frames:
                    yield frame
            finally:
                await frames.aclose()
        finally:
            self._runs -= 1

    async def cancel_run(self, token: str, run_id: str) -> bool:
        """``POST /copilot/app/agent/cancel``."""
        asked = codec.encode({"run_id": run_id})
        body = await self._agent("/copilot/app/agent/cancel", token, asked)
        return _read("a cancellation", body, _CANCELLED).cancelled

    async def post_tool_result(self, token: str, outcome: ToolOutcome) -> None:
        """``POST /copilot/app/agent/tool_result``. Nexus takes one result for each call (R-36)."""
        path = "/copilot/app/agent/tool_result"
        await self._agent(path, token, codec.encode(outcome))

    async def _agent(self, path: str, token: str, body: bytes | None) -> bytes:
        return await self._ask("agent", path, token, body, self._times.agent, safe=True)

    # --- Storage and files -----------------------------------------------------------------

    async def storage(self, token: str, method: str, params: bytes) -> bytes:
        """``POST /storage/kv/get`` and its like; only what reads is asked twice."""
        family, _, verb = method.partition("/")
        path = f"/storage/{'kv' if family == 'storage' else family}/{_segment(verb)}"
        seconds, safe = self._times.storage, method in _READS
        body = await self._ask("storage", path, token, params, seconds, safe=safe)
        return _wire_object(body)

    # --- All of them -----------------------------------------------------------------------

    async def _ask(
        self,
        chapter: Chapter,
        path: str,
        bearer: str,
        body: bytes | None,
        seconds: float,
        *,
        safe: bool,
    ) -> bytes:
        """One call and its answer; without a body it deletes what the path names."""
        return await self._caller.body_of(
            Call(
                method="DELETE" if body is None else "POST",
                path=path,
                chapter=chapter,
                seconds=seconds,
                bearer=bearer,
                body=body,
                safe=safe,
            )
        )

    async def aclose(self) -> None:
        """Let go of connections. Idempotent."""
        await self._caller.aclose()


def read_base(text: str) -> URL:
    """The base address, with `API` at its end. Raises `UsageError`."""
    try:
        url = URL(text.strip())
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        msg = "the address of nexus: expected http://HOST or https://HOST"
        raise UsageError(msg)
    if url.user or url.password or url.query_string or url.fragment:
        # Addresses get into logs; the key has a place of its own.
        msg = "the address of nexus: expected no user, password, query or fragment in it"
        raise UsageError(msg)
    path = url.path.rstrip("/")
    return url.with_path(path if path.endswith(API) else path + API)


def _segment(text: str) -> str:
    """One segment of a path, whatever it holds."""
    return quote(text, safe="").replace(".", "%2E")


def _read(what: str, body: bytes, decoder: "msgspec.json.Decoder[T]") -> T:
    try:
        codec.check_content(body)
        return codec.decode(body, decoder)
    except DecodeFailure as fault:
        problem = failures.unreadable(what, fault)
    raise problem


def _wire_object(body: bytes) -> bytes:
    """An answer that becomes a result on a plugin's line: one object, checked, on one line."""
    try:
        codec.check_content(body)
        check_depth(body)
        value: Any = codec.decode_any(body)
    except DecodeFailure as fault:
        problem: NexusError | None = failures.unreadable("a storage call with something", fault)
    else:
        problem = None
        if not isinstance(value, dict):
            problem = NexusError("nexus answered a storage call with no object", status=200)
    if problem is not None:
        raise problem
    return body.replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in body else body
