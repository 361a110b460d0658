"""One delivery over HTTP: signed, bounded, and only to where callbacks may go.

Owns the signature and the connection. Each address that a name resolves to is checked when
it is connected to, so that a name cannot first be looked at and then mean something else;
redirects are not followed, and no proxy of the environment is used.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import socket
from collections.abc import Sequence
from typing import Any, Final, Protocol

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from executa_host.actions.addresses import check_url, is_allowed, is_public
from executa_protocol.errors import ExecutaError, UsageError

SIGNATURE: Final = "Executa-Signature"
DELIVERY: Final = "Executa-Delivery"
EVENT: Final = "Executa-Event"

_OK: Final = range(200, 300)


class DeliveryFailed(ExecutaError):
    """A callback was not taken; it is tried again."""


class Poster(Protocol):
    """Posts callbacks."""

    async def post(self, url: str, body: bytes, headers: dict[str, str], timeout: float) -> None:
        """Post once. Raises `DeliveryFailed`."""
        ...

    async def close(self) -> None:
        """Let go of connections. Idempotent."""
        ...


def sign(secret: bytes, at: int, body: bytes) -> str:
    """The signature of `body`, sent at `at` (epoch seconds): ``t=AT,v1=HEX``.

    HEX is the HMAC-SHA-256 of the time, a full stop and the body.
    """
    mac = hmac.new(secret, b"%d." % at + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={mac}"


def verify(secret: bytes, signature: str, body: bytes, *, now: int, tolerance: int = 300) -> bool:
    """Whether a signature is of `body`, and not older or newer than `tolerance` seconds."""
    stamp = signature.partition(",")[0].removeprefix("t=")
    if not (stamp.isascii() and stamp.isdecimal()):
        return False
    at = int(stamp)
    return abs(now - at) <= tolerance and hmac.compare_digest(sign(secret, at, body), signature)


class HttpPoster:
    """A `Poster` over aiohttp. `allow` is what `CallbackSettings.allow` says."""

    def __init__(self, allow: Sequence[str] = ()) -> None:
        self._allow = tuple(allow)
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, body: bytes, headers: dict[str, str], timeout: float) -> None:
        """See `Poster.post`."""
        try:
            check_url(url, self._allow)
            async with self._client().post(
                url,
                data=body,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=timeout),
            ) as response:
                if response.status not in _OK:
                    raise DeliveryFailed(f"answered {response.status}")
        except UsageError as fault:
            raise DeliveryFailed(str(fault)) from fault
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as fault:
            words = str(fault) or type(fault).__name__
            raise DeliveryFailed(words[:500]) from fault

    async def close(self) -> None:
        """See `Poster.close`."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=GuardedResolver(self._allow), use_dns_cache=False, force_close=True
            )
            self._session = aiohttp.ClientSession(
                connector=connector, trust_env=False, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session


class GuardedResolver(AbstractResolver):
    """Resolves names to the addresses that may be connected to, and to no others."""

    def __init__(self, allow: Sequence[str]) -> None:
        self._allow = allow

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """See `AbstractResolver`."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)
        results: list[ResolveResult] = []
        for kind, _, protocol, _, address in found:
            text: Any = address[0]
            ip = ipaddress.ip_address(str(text).partition("%")[0])
            if is_public(ip) or is_allowed(host, port, ip, self._allow):
                results.append(
                    ResolveResult(
                        hostname=host,
                        host=str(text),
                        port=port,
                        family=kind,
                        proto=protocol,
                        flags=socket.AI_NUMERICHOST,
                    )
                )
        if not results:
            raise OSError(f"{host} has no public address")
        return results

    async def close(self) -> None:
        """See `AbstractResolver`."""
