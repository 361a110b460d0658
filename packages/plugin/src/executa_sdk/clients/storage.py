"""`StorageClient`: keys and values that outlive the process (`storage/*`).

Scopes are ``user`` (all of the user's plugins), ``tool`` (this plugin) and ``app`` (the
Anna App that an invoke comes from; only with the host's word for it, R-29).
"""

from collections.abc import Callable
from typing import Any

from executa_protocol.codes import STORAGE_NOT_GRANTED
from executa_protocol.codes import STORAGE_TIMEOUT as TIMED_OUT
from executa_protocol.errors import StorageError
from executa_protocol.limits import STORAGE_TIMEOUT
from executa_sdk.clients.base import Client, Object


class StorageClient(Client):
    """Reads and writes keys. Results are the host's; failures are `StorageError`.

    The default scope is ``app``, as in the field's SDK. A plugin that is called outside an
    Anna App has no such scope: name ``user`` or ``tool``.
    """

    DEFAULT_TIMEOUT = STORAGE_TIMEOUT

    error = StorageError
    disabled_code = STORAGE_NOT_GRANTED
    timeout_code = TIMED_OUT

    async def get(
        self, key: str, *, scope: str = "app", timeout: float = STORAGE_TIMEOUT
    ) -> Object:
        """``{"value", "exists", "etag"}``; a missing key is no error."""
        return await self._call_object("storage/get", {"key": key, "scope": scope}, timeout)

    async def set(
        self,
        key: str,
        value: Any,
        *,
        scope: str = "app",
        if_match: str | None = None,
        ttl_seconds: int | None = None,
        metadata: Object | None = None,
        tags: list[str] | None = None,
        timeout: float = STORAGE_TIMEOUT,
    ) -> Object:
        """``{"etag", "generation", "size_bytes"}``.

        `value` is any JSON of at most 256 KiB. With `if_match` the write happens only if the
        key still has that etag (else -32023). `ttl_seconds` is 1 to a year.
        """
        params: Object = {
            "key": key,
            "scope": scope,
            "if_match": if_match,
            "ttl_seconds": ttl_seconds,
            "metadata": metadata,
            "tags": tags,
        }
        return await self._call_object("storage/set", params, timeout, value=value)

    async def delete(
        self,
        key: str,
        *,
        scope: str = "app",
        if_match: str | None = None,
        timeout: float = STORAGE_TIMEOUT,
    ) -> Object:
        """``{"deleted": true}``, also for a key that was not there."""
        params: Object = {"key": key, "scope": scope, "if_match": if_match}
        return await self._call_object("storage/delete", params, timeout)

    async def list(
        self,
        *,
        prefix: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        kind: str | None = None,
        scope: str = "app",
        timeout: float = STORAGE_TIMEOUT,
    ) -> Object:
        """One page: ``{"items", "next_cursor"}``, without values. `limit` is 1 to 1,000."""
        params: Object = {
            "prefix": prefix,
            "cursor": cursor,
            "limit": limit,
            "kind": kind,
            "scope": scope,
        }
        return await self._call_object("storage/list", params, timeout)


def make_response_router(*clients: Client) -> Callable[[Object], bool]:
    """A function that hands an answer to whichever of `clients` waits for it.

    It returns False for an answer that nobody waits for, and may be called on any thread.
    """

    def route(msg: Object) -> bool:
        return any(client.dispatch_response(msg) for client in clients)

    return route
