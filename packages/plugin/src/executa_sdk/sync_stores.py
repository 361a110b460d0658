"""Storage and files for plain functions: each call blocks its thread."""

import os
from collections.abc import Callable
from typing import Any

from executa_sdk.bridge import run_blocking
from executa_sdk.file_store import Files
from executa_sdk.stores import Bucket, Entry, Storage

Object = dict[str, Any]


class SyncBucket:
    """See `Bucket`."""

    __slots__ = ("_bucket",)

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def get(self, key: str, default: Any = None) -> Any:
        """See `Bucket.get`."""
        return run_blocking(self._bucket.get(key, default))

    def entry(self, key: str) -> Entry:
        """See `Bucket.entry`."""
        return run_blocking(self._bucket.entry(key))

    def set(
        self,
        key: str,
        value: Any,
        *,
        ttl: int | None = None,
        if_match: str | None = None,
        metadata: Object | None = None,
        tags: list[str] | None = None,
    ) -> str:
        """See `Bucket.set`."""
        return run_blocking(
            self._bucket.set(key, value, ttl=ttl, if_match=if_match, metadata=metadata, tags=tags)
        )

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        """See `Bucket.delete`."""
        run_blocking(self._bucket.delete(key, if_match=if_match))

    def list(self, prefix: str = "", *, limit: int | None = None) -> list[Object]:
        """See `Bucket.list`."""
        return run_blocking(self._bucket.list(prefix, limit=limit))

    def update(
        self, key: str, fn: Callable[[Any], Any], *, default: Any = None, ttl: int | None = None
    ) -> Any:
        """See `Bucket.update`."""
        return run_blocking(self._bucket.update(key, fn, default=default, ttl=ttl))


class SyncStorage:
    """See `Storage`."""

    __slots__ = ("_storage",)

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @property
    def user(self) -> SyncBucket:
        """See `Storage.user`."""
        return SyncBucket(self._storage.user)

    @property
    def tool(self) -> SyncBucket:
        """See `Storage.tool`."""
        return SyncBucket(self._storage.tool)

    @property
    def app(self) -> SyncBucket:
        """See `Storage.app`."""
        return SyncBucket(self._storage.app)


class SyncFiles:
    """See `Files`."""

    __slots__ = ("_files",)

    def __init__(self, files: Files) -> None:
        self._files = files

    def save(
        self,
        path: str,
        data: bytes | str | os.PathLike[str],
        *,
        content_type: str | None = None,
        metadata: Object | None = None,
        scope: str = "tool",
    ) -> Object:
        """See `Files.save`."""
        return run_blocking(
            self._files.save(path, data, content_type=content_type, metadata=metadata, scope=scope)
        )

    def read(self, path: str, *, scope: str = "tool") -> bytes:
        """See `Files.read`."""
        return run_blocking(self._files.read(path, scope=scope))

    def url(self, path: str, *, expires_in: int | None = None, scope: str = "tool") -> str:
        """See `Files.url`."""
        return run_blocking(self._files.url(path, expires_in=expires_in, scope=scope))

    def list(
        self, prefix: str = "", *, limit: int | None = None, scope: str = "tool"
    ) -> list[Object]:
        """See `Files.list`."""
        return run_blocking(self._files.list(prefix, limit=limit, scope=scope))

    def delete(self, path: str, *, scope: str = "tool") -> None:
        """See `Files.delete`."""
        run_blocking(self._files.delete(path, scope=scope))
