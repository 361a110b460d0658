"""``ctx.storage``: keys and values by scope, in plain Python values."""

import inspect
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from executa_protocol.codes import STORAGE_PRECONDITION_FAILED
from executa_protocol.errors import StorageError
from executa_sdk.clients.storage import StorageClient
from executa_sdk.reverse import Reverse

MOST_TRIES: Final = 10
"""How often `update` starts over because someone else changed the key meanwhile."""


class Entry(Struct, frozen=True):
    """A key as it stands: its `value`, whether it `exists`, and its opaque `etag`."""

    value: Any = None
    exists: bool = False
    etag: str | None = None


class Bucket:
    """The keys of one scope. Failures are `StorageError`."""

    __slots__ = ("_client", "_reverse", "scope")

    def __init__(self, reverse: Reverse, scope: str) -> None:
        self._reverse = reverse
        self._client = StorageClient(caller=reverse)
        self.scope = scope

    async def get(self, key: str, default: Any = None) -> Any:
        """The value under `key`, or `default` if there is none. null is a value."""
        entry = await self.entry(key)
        return entry.value if entry.exists else default

    async def entry(self, key: str) -> Entry:
        """The value under `key` with its etag. A missing key is no error."""
        result = await self._client.get(key, scope=self.scope)
        etag = result.get("etag")
        exists = bool(result.get("exists", result.get("found", False)))
        return Entry(result.get("value"), exists, etag if isinstance(etag, str) else None)

    async def set(
        self,
        key: str,
        value: Any,
        *,
        ttl: int | None = None,
        if_match: str | None = None,
        metadata: dict[str, Any] | None = None,
        tags: list[str] | None = None,
    ) -> str:
        """Store any JSON value of at most 256 KiB; returns its etag.

        `ttl` is in seconds, 1 to a year. With `if_match`, only if the key has that etag.
        """
        result = await self._client.set(
            key,
            value,
            scope=self.scope,
            ttl_seconds=ttl,
            if_match=if_match,
            metadata=metadata,
            tags=tags,
        )
        return str(result.get("etag") or "")

    async def delete(self, key: str, *, if_match: str | None = None) -> None:
        """Remove `key`; one that is not there is no error."""
        await self._client.delete(key, scope=self.scope, if_match=if_match)

    async def list(self, prefix: str = "", *, limit: int | None = None) -> list[dict[str, Any]]:
        """Every key that begins with `prefix`, or the first `limit`; etags and sizes, no values."""
        items: list[dict[str, Any]] = []
        cursor: str | None = None
        while limit is None or len(items) < limit:
            page = await self._client.list(prefix=prefix or None, cursor=cursor, scope=self.scope)
            items += page.get("items") or ()
            cursor = page.get("next_cursor")
            if not cursor:
                break
        return items if limit is None else items[:limit]

    async def update(
        self, key: str, fn: Callable[[Any], Any], *, default: Any = None, ttl: int | None = None
    ) -> Any:
        """Replace the value under `key` by ``fn(value)`` and return what was stored.

        `fn` gets `default` if there is no value; it may run more than once, because the
        change starts over when someone else wrote meanwhile. Changes by this process never
        collide. Raises `StorageError` (-32023) when others were faster ten times.
        """
        locks = self._reverse.invocation.connection.locks
        ticket = locks.ticket((self.scope, key))
        try:
            await self._reverse.wait(ticket.take)
            for attempt in range(1, MOST_TRIES + 1):
                entry = await self.entry(key)
                value = fn(entry.value if entry.exists else default)
                if inspect.isawaitable(value):
                    value = await value
                try:
                    await self.set(key, value, ttl=ttl, if_match=entry.etag)
                except StorageError as fault:
                    if fault.code != STORAGE_PRECONDITION_FAILED or attempt == MOST_TRIES:
                        raise
                else:
                    return value
        finally:
            self._reverse.post(ticket.leave)
        raise AssertionError("unreachable")


class Storage:
    """The scopes: `user` (all of the user's plugins), `tool` (this plugin), `app` (the App)."""

    __slots__ = ("_reverse",)

    def __init__(self, reverse: Reverse) -> None:
        self._reverse = reverse

    @property
    def user(self) -> Bucket:
        """Keys that all plugins of this user share."""
        return Bucket(self._reverse, "user")

    @property
    def tool(self) -> Bucket:
        """Keys of this plugin alone."""
        return Bucket(self._reverse, "tool")

    @property
    def app(self) -> Bucket:
        """Keys of the Anna App that the invoke comes from; refused outside of one (R-29)."""
        return Bucket(self._reverse, "app")
