"""``ctx.files``: stored files as bytes, with the two steps of an upload done here."""

import os
from typing import Any

from executa_sdk.clients.files import FilesClient
from executa_sdk.reverse import Reverse


class Files:
    """Files by path. `scope` is ``tool``, ``user`` or ``app``. Failures are `StorageError`.

    The bytes go by HTTP between this process and the store, in a thread of their own.
    """

    __slots__ = ("_client", "_reverse")

    def __init__(self, reverse: Reverse) -> None:
        self._reverse = reverse
        self._client = FilesClient(caller=reverse)

    async def save(
        self,
        path: str,
        data: bytes | str | os.PathLike[str],
        *,
        content_type: str | None = None,
        metadata: dict[str, Any] | None = None,
        scope: str = "tool",
    ) -> dict[str, Any]:
        """Store bytes, text as UTF-8, or a local file, of at most 256 MiB; gives path and etag.

        `content_type` is guessed from `path` if it is not given.
        """
        from executa_sdk import transfer  # noqa: PLC0415 - costs an HTTP client

        content = data.encode() if isinstance(data, str) else data
        size = len(content) if isinstance(content, bytes) else os.stat(content).st_size  # noqa: PTH116
        kind = content_type or transfer.guess_type(path)
        begun = await self._client.upload_begin(
            path=path, size_bytes=size, content_type=kind, metadata=metadata, scope=scope
        )
        url = str(begun.get("put_url") or "")
        headers: dict[str, str] = {"Content-Type": kind, **(begun.get("headers") or {})}
        etag = await self._reverse.blocking(lambda: transfer.put(url, content, size, headers))
        return await self._client.upload_complete(
            path=path, etag=etag, size_bytes=size, content_type=kind, scope=scope
        )

    async def read(self, path: str, *, scope: str = "tool") -> bytes:
        """The whole content of a file. Raises `StorageError` (-32022) if it does not exist."""
        from executa_sdk import transfer  # noqa: PLC0415 - costs an HTTP client

        url = await self.url(path, scope=scope)
        return await self._reverse.blocking(lambda: transfer.get(url))

    async def url(self, path: str, *, expires_in: int | None = None, scope: str = "tool") -> str:
        """A URL to read the file from, for `expires_in` seconds (1 to 3,600)."""
        result = await self._client.download_url(path=path, expires_in=expires_in, scope=scope)
        return str(result.get("url") or "")

    async def list(
        self, prefix: str = "", *, limit: int | None = None, scope: str = "tool"
    ) -> list[dict[str, Any]]:
        """Every file whose path begins with `prefix`, or the first `limit`."""
        items: list[dict[str, Any]] = []
        cursor: str | None = None
        while limit is None or len(items) < limit:
            page = await self._client.list(prefix=prefix or None, cursor=cursor, scope=scope)
            items += page.get("items") or ()
            cursor = page.get("next_cursor")
            if not cursor:
                break
        return items if limit is None else items[:limit]

    async def delete(self, path: str, *, scope: str = "tool") -> None:
        """Remove a file; one that is not there is no error."""
        await self._client.delete(path=path, scope=scope)
