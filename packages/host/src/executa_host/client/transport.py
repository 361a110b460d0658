"""Requests to the API: the connection, the key, retries, and refusals as exceptions.

Owns what may be asked again. A request that nobody answered is repeated only if that is safe;
one that was answered "not now" changed nothing, so it is always repeated. Which endpoint is
which request is `client`'s business.
"""

import asyncio
import io
import os
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import aiohttp
import msgspec
from yarl import URL

from executa_host.client.errors import Unreachable, api_error
from executa_protocol import codec
from executa_protocol.errors import DecodeFailure, UsageError
from executa_protocol.limits import MIB

T = TypeVar("T")

ATTEMPTS: Final = 4
"""How often a request is tried."""

BACKOFF: Final = 0.2
"""Seconds before the second attempt; they double, with jitter."""

PAUSE_MAX: Final = 5.0
"""The longest pause between two attempts, also if the API asks for more."""

TIMEOUT: Final = 45.0
"""Seconds for one attempt: longer than the longest bounded wait (R-48)."""

CONNECT_TIMEOUT: Final = 10.0
"""Seconds to open a connection."""

ANSWER_BYTES: Final = 256 * MIB
"""Largest answer that is read: 1,000 chunks with what they hold."""

_NOT_NOW: Final = frozenset({429, 503})

Pause = Callable[[float], Awaitable[Any]]


class Transport:
    """Requests to one host with one key. Use it as a context manager, or `close` it.

    `pause` and `jitter` are for tests. Raises `UsageError` for an address that is none.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        attempts: int = ATTEMPTS,
        timeout: float = TIMEOUT,
        pause: Pause = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        base = URL(url)
        if base.scheme not in ("http", "https") or not base.host or base.user or base.query:
            msg = "the API's address: expected one such as http://127.0.0.1:8717"
            raise UsageError(msg)
        if not key.isascii() or not key.isprintable() or " " in key:
            msg = "the API key holds characters that no key has"
            raise UsageError(msg)
        self.base = base
        self._key = key
        self._attempts = attempts
        self._timeout = timeout
        self.pause = pause
        self._jitter = jitter
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"Transport({str(self.base)!r})"

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def ask(
        self,
        kind: type[T],
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        safe: bool = True,
        accept: frozenset[int] = frozenset(),
    ) -> T:
        """One request, its answer decoded. `safe`: doing it twice does it once.

        Statuses in `accept` are answers too. Raises `ApiError`, `Unreachable`, and
        `DecodeFailure` for an answer that is none of the API's.
        """
        data = None if body is None else codec.encode(body)
        for attempt in range(1, self._attempts + 1):
            last = attempt == self._attempts
            try:
                status, answer, retry_after = await self._once(method, path, query, data)
            except Unreachable as fault:
                if last or not (safe or fault.written is False):
                    raise
                await self.pause(self.delay(attempt))
                continue
            if status < 400 or status in accept:
                return _read(answer, kind)
            error = api_error(status, answer)
            if last or not error.retryable or status not in _NOT_NOW:
                raise error
            await self.pause(max(self.delay(attempt), min(retry_after, PAUSE_MAX)))
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def stream(
        self, path: str, headers: Mapping[str, str], silence: float
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        """A request whose answer is read as it comes. `silence` seconds without a byte end it.

        Raises `ApiError` and `Unreachable`, also while it is read.
        """
        times = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=silence)
        try:
            async with self._open().get(
                self._at(path),
                headers={**self._headers(), **headers},
                timeout=times,
                allow_redirects=False,
            ) as response:
                if response.status >= 300:
                    raise api_error(response.status, await response.content.read(MIB))
                yield response
        except (aiohttp.ClientError, TimeoutError) as fault:
            raise _unreachable(fault) from fault

    def delay(self, attempt: int) -> float:
        """Seconds to wait after attempt number `attempt`."""
        pause = min(BACKOFF * 2 ** (attempt - 1), PAUSE_MAX)
        return float(pause * (0.5 + self._jitter() / 2))

    async def _once(
        self, method: str, path: str, query: Mapping[str, str] | None, data: bytes | None
    ) -> tuple[int, bytes, float]:
        headers = self._headers()
        if data is not None:
            headers["Content-Type"] = "application/json"
        times = aiohttp.ClientTimeout(total=self._timeout, sock_connect=CONNECT_TIMEOUT)
        try:
            async with self._open().request(
                method,
                self._at(path),
                params=query,
                data=None if data is None else io.BytesIO(data),  # large bytes block the loop
                headers=headers,
                timeout=times,
                allow_redirects=False,  # the key is for this host alone
            ) as response:
                answer = await response.content.read(ANSWER_BYTES + 1)
                while not response.content.at_eof() and len(answer) <= ANSWER_BYTES:
                    answer += await response.content.read(ANSWER_BYTES + 1 - len(answer))
                return response.status, answer, _seconds(response.headers.get("Retry-After", ""))
        except (aiohttp.ClientError, TimeoutError) as fault:
            raise _unreachable(fault) from fault

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def _at(self, path: str) -> URL:
        return URL(f"{str(self.base).rstrip('/')}{path}", encoded=True)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        return self._session


def _read(answer: bytes, kind: type[T]) -> T:
    if len(answer) > ANSWER_BYTES:
        msg = f"the answer has more than {ANSWER_BYTES:,} bytes"
        raise DecodeFailure(msg)
    codec.check_content(answer)
    return codec.decode(answer, msgspec.json.Decoder(kind))


def _unreachable(fault: Exception) -> Unreachable:
    """In words without the URL, whose query may hold a cursor."""
    if isinstance(fault, aiohttp.ClientSSLError):
        words = f"no TLS with {fault.host}:{fault.port}: {_tls_reason(fault)}"
        return Unreachable(words, written=False)
    if isinstance(fault, aiohttp.ClientConnectorError):
        where = f"{fault.host}:{fault.port}"
        number = fault.os_error.errno or 0  # below 0 where a name is not known
        reason = os.strerror(number) if number > 0 else fault.os_error.strerror or "no connection"
        return Unreachable(f"nothing answers at {where}: {reason}", written=False)
    if isinstance(fault, TimeoutError):
        return Unreachable("no answer came in time")
    return Unreachable(f"the connection broke: {type(fault).__name__}")


def _tls_reason(fault: aiohttp.ClientSSLError) -> str:
    """Why, such as that a certificate is self-signed; SSL_CERT_FILE names one to trust."""
    cause: BaseException = fault.os_error
    if isinstance(fault, aiohttp.ClientConnectorCertificateError):
        cause = fault.certificate_error
    reason = getattr(cause, "verify_message", "") or getattr(cause, "reason", "") or str(cause)
    return f"the certificate or the protocol does not fit ({reason})"


def _seconds(text: str) -> float:
    return float(text) if text.isdecimal() and len(text) < 6 else 0.0
