"""One HTTP call to nexus: connections, time-outs, and trying again where that is safe.

Owns the sessions and the policy of retries. A call is tried again when it cannot have
been served (no connection came about, or nexus said when to come back), and after any
other failure of the transport only if it may be served twice. What a call means, and the
words for its failure, are `http`'s and `failures`'. Tokens travel in headers alone, no
redirect is followed, and no exception of the library goes further, because its request
holds the headers.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import aiohttp
from msgspec import Struct
from yarl import URL

from executa_host.nexus import failures
from executa_host.nexus.failures import Chapter
from executa_host.observe.propagation import trace_headers
from executa_protocol.errors import UsageError
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

Method = Literal["POST", "DELETE"]
Pause = Callable[[float], Awaitable[None]]

CONNECTIONS: Final = 128
"""Calls at once; more wait for one to end. Runs are not counted: their tools' results are
calls, and a run that held the last connection would wait for itself."""

_ERROR_BYTES: Final = 64 * KIB
_BUSY: Final = (429, 503)
_FAILED: Final = (500, 502, 503, 504)
_OK: Final = range(200, 300)


class Call(Struct, frozen=True, kw_only=True):
    """One call. `seconds` bounds all its attempts; `safe` says that it may be served twice.

    `settled` are statuses that, on a second attempt, tell that the first one was served.
    """

    method: Method = "POST"
    path: str
    chapter: Chapter
    seconds: float
    bearer: str = ""
    body: bytes = b""
    safe: bool = False
    settled: tuple[int, ...] = ()
    stream: bool = False


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
        self.base = base
        self._connect_timeout = connect_timeout
        self._pause = pause
        self._jitter = jitter
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._closed = False
        self.in_flight = 0
        """Calls and runs that have not ended."""

    async def bytes_of(self, call: Call) -> bytes:
        """The body of a call's answer. Raises `NexusError`."""
        self.in_flight += 1
        try:
            answer = await self._bounded(call, self._body)
        finally:
            self.in_flight -= 1
        return answer

    async def stream_of(self, call: Call) -> aiohttp.ClientResponse:
        """An answer whose body is yet to come. Raises `NexusError`."""
        return await self._bounded(call, self._head)

    async def aclose(self) -> None:
        """Close all connections. Idempotent."""
        self._closed = True
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    # --- Attempts --------------------------------------------------------------------

    async def _bounded[T: bytes | aiohttp.ClientResponse](
        self, call: Call, attempt: "Callable[[Call], Awaitable[T | Failure]]"
    ) -> T:
        raise NotImplementedError
