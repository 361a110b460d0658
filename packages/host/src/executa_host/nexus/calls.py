"""One HTTP call to nexus: connections, time-outs, and trying again where that is safe.

Owns the sessions and the policy of retries. A call is tried again when it cannot have
been served (no connection came about, or nexus said when to come back), and after any
other failure of the transport only if it may be served twice. What a call means is
`http`'s business, the words for its failure are `failures`'. Tokens travel in headers
alone, no redirect is followed, and no exception of the library goes further, because its
request holds the headers.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeVar

import aiohttp
from msgspec import Struct
from yarl import URL

from executa_host.nexus import failures
from executa_host.nexus.failures import Chapter
from executa_host.observe.propagation import trace_headers
from executa_protocol.limits import (
    KIB,
    MAX_LINE,
    NEXUS_ATTEMPTS,
    NEXUS_BACKOFF,
    NEXUS_CONNECT_TIMEOUT,
    NEXUS_KEEP_ALIVE,
    NEXUS_RETRY_AFTER_MAX,
)
from executa_protocol.nexus import NexusError

T = TypeVar("T")

Pause = Callable[[float], Awaitable[None]]

CONNECTIONS: Final = 128
"""Calls at once; more wait for one to end. Runs are not counted: their tools' results are
calls, and a run that held the last connection would wait for itself."""

_ERROR_BYTES: Final = 64 * KIB
_BUSY: Final = (429, 503)
_FAILED: Final = (0, 429, 500, 502, 503, 504)
_OK: Final = range(200, 300)
_JSON: Final = {"Content-Type": "application/json"}


class Call(Struct, frozen=True, kw_only=True):
    """One call. `seconds` bounds all its attempts; `safe` says that it may be served twice.

    `stream` says that the answer is read as it comes.
    """

    method: Literal["POST", "DELETE"] = "POST"
    path: str
    chapter: Chapter
    seconds: float
    bearer: str = ""
    body: bytes | None = None
    safe: bool = False
    stream: bool = False

    def __repr__(self) -> str:
        return f"Call({self.method} {self.path})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        """Pretty printers show no more: the other members are secret or said by a plugin."""
        return [("method", self.method), ("path", self.path)]


class Failure(Struct):
    """An attempt that came to nothing. `sent` is false if nexus cannot have seen it."""

    fault: NexusError
    sent: bool = True


class Caller:
    """Makes calls under one base address. Connections open with the first call.

    `pause` and `jitter` (0 to 1) are for tests.
    """

    def __init__(
        self,
        base: URL,
        *,
        connect_timeout: float = NEXUS_CONNECT_TIMEOUT,
        pause: Pause = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._base = base
        self._root = str(base).rstrip("/")
        self._connect_timeout = connect_timeout
        self._pause = pause
        self._jitter = jitter
        self._calls: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None
        self._closed = False
        self.in_flight = 0
        """Calls that have not been answered."""

    async def body_of(self, call: Call) -> bytes:
        """The body of a call's answer. Raises `NexusError`."""
        return await self._bounded(call, _read)

    async def stream_of(self, call: Call) -> aiohttp.ClientResponse:
        """An answer whose body is yet to come; the caller closes it. Raises `NexusError`."""
        return await self._bounded(call, _as_it_is)

    async def aclose(self) -> None:
        """Close all connections. Idempotent."""
        self._closed = True
        for session in (self._calls, self._streams):
            if session is not None:
                await session.close()

    # --- Attempts --------------------------------------------------------------------

    async def _bounded(
        self, call: Call, consume: Callable[[aiohttp.ClientResponse], Awaitable[T]]
    ) -> T:
        self.in_flight += 1
        outcome: T | Failure
        try:
            async with asyncio.timeout(call.seconds):
                outcome = await self._tried(call, consume)
        except TimeoutError:
            outcome = Failure(failures.late(call.seconds))
        finally:
            self.in_flight -= 1
        if isinstance(outcome, Failure):
            # Here, where no exception of the library is being handled and would hang on it.
            raise outcome.fault
        return outcome

    async def _tried(
        self, call: Call, consume: Callable[[aiohttp.ClientResponse], Awaitable[T]]
    ) -> T | Failure:
        clock = asyncio.get_running_loop().time
        give_up = clock() + call.seconds
        for number in range(1, NEXUS_ATTEMPTS):
            outcome = await self._attempt(call, consume)
            if not isinstance(outcome, Failure):
                return outcome
            seconds = self._before_next(call, outcome, number)
            if seconds is None or clock() + seconds >= give_up:
                return outcome
            await self._pause(seconds)
        return await self._attempt(call, consume)

    def _before_next(self, call: Call, failure: Failure, number: int) -> float | None:
        """Seconds until the attempt after attempt `number`; None if there is to be none."""
        fault = failure.fault
        if failures.is_terminal(fault):
            return None
        if fault.status in _BUSY and fault.retry_after is not None:
            # Nexus turned it away unserved and says when to come back.
            if fault.retry_after > NEXUS_RETRY_AFTER_MAX:
                return None
            return fault.retry_after + NEXUS_BACKOFF * self._jitter()
        if (failure.sent and not call.safe) or fault.status not in _FAILED:
            return None
        return NEXUS_BACKOFF * 2 ** (number - 1) * (0.5 + self._jitter())

    async def _attempt(
        self, call: Call, consume: Callable[[aiohttp.ClientResponse], Awaitable[T]]
    ) -> T | Failure:
        headers = {**(_JSON if call.body is not None else {}), **trace_headers()}
        if call.bearer:
            headers["Authorization"] = f"Bearer {call.bearer}"
        total = call.seconds if call.stream else None
        try:
            response = await self._session(call).request(
                call.method,
                URL(self._root + call.path, encoded=True),
                data=call.body,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=total, sock_connect=self._connect_timeout),
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as fault:
            where = f"{self._base.host}:{self._base.port}"
            text = f"nexus cannot be reached at {where}: {_why(fault)}"
            return Failure(NexusError(text), sent=False)
        except (aiohttp.ClientError, OSError) as fault:
            return Failure(NexusError(f"the connection to nexus broke: {_why(fault)}"))
        try:
            if response.status in _OK:
                return await consume(response)
            body = await _read(response, _ERROR_BYTES)
        except (aiohttp.ClientError, OSError) as fault:
            response.close()
            text = f"the connection to nexus broke in its answer: {_why(fault)}"
            return Failure(NexusError(text, status=0 if response.ok else response.status))
        except NexusError as fault:
            response.close()
            return Failure(fault)
        except BaseException:
            response.close()
            raise
        told = response.headers.get("Retry-After")
        return Failure(failures.refused(call.chapter, response.status, body, told, call.bearer))

    def _session(self, call: Call) -> aiohttp.ClientSession:
        if self._closed:
            msg = "the client of nexus has been closed"
            raise NexusError(msg)
        if call.stream:
            if self._streams is None:
                self._streams = _new_session(limit=0)
            return self._streams
        if self._calls is None:
            self._calls = _new_session(limit=CONNECTIONS)
        return self._calls


def _new_session(*, limit: int) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limit, keepalive_timeout=NEXUS_KEEP_ALIVE),
        cookie_jar=aiohttp.DummyCookieJar(),
        # A compressed stream would hold frames back, and a small answer may unpack to gigabytes.
        headers={"Accept-Encoding": "identity", "User-Agent": "executa-host"},
    )


async def _as_it_is(response: aiohttp.ClientResponse) -> aiohttp.ClientResponse:
    return response


async def _read(response: aiohttp.ClientResponse, limit: int = MAX_LINE) -> bytes:
    """The whole body, but no more than `limit` bytes of it."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit:
            if not response.ok:
                response.close()
                return bytes(body[:limit])
            msg = f"nexus answered with more than {limit:,} bytes"
            raise NexusError(msg, status=response.status)
    response.release()
    return bytes(body)


def _why(fault: Exception) -> str:
    """What happened, without the request that it happened to."""
    if isinstance(fault, aiohttp.ClientConnectorError):
        cause: object = fault.os_error
        if isinstance(fault, aiohttp.ClientConnectorDNSError):
            return "its name is not known"
        return getattr(cause, "strerror", None) or type(cause).__name__
    if isinstance(fault, aiohttp.ConnectionTimeoutError):
        return "the connection did not open in time"
    if isinstance(fault, aiohttp.ServerDisconnectedError):
        return "it was closed without an answer"
    return type(fault).__name__
