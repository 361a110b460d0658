"""`FilesClient`: stored files (`files/*`). The bytes go over HTTP, past the host.

An upload has two steps: `upload_begin` gives a URL to PUT to, `upload_complete` says that
the bytes are there. The high-level ``ctx.files`` does both.
"""

from executa_protocol.codes import STORAGE_NOT_GRANTED, STORAGE_TIMEOUT
from executa_protocol.errors import StorageError
from executa_protocol.limits import FILES_TIMEOUT
from executa_sdk.clients.base import Client, Object


class FilesClient(Client):
    """Uploads, downloads and lists files. Results are the host's; failures are `StorageError`.

    Scopes are those of `StorageClient`, with the same default.
    """

    DEFAULT_TIMEOUT = FILES_TIMEOUT

    error = StorageError
    disabled_code = STORAGE_NOT_GRANTED
    timeout_code = STORAGE_TIMEOUT

    async def upload_begin(
        self,
        *,
        path: str,
        size_bytes: int | None = None,
        content_type: str | None = None,
        metadata: Object | None = None,
        scope: str = "app",
        timeout: float = FILES_TIMEOUT,
    ) -> Object:
        """``{"put_url", "headers", "upload_id", "expires_at"}``: where to PUT within 10 minutes.

        The PUT carries `content_type` and the `headers`.
        """
        params: Object = {
            "path": path,
            "size_bytes": size_bytes,
            "content_type": content_type,
            "metadata": metadata,
            "scope": scope,
        }
        result = await self._call_object("files/upload_begin", params, timeout)
        return _with(result, "put_url", "presigned_url")

    async def upload_complete(
        self,
        *,
        path: str,
        etag: str | None = None,
        size_bytes: int | None = None,
        content_type: str | None = None,
        scope: str = "app",
        timeout: float = FILES_TIMEOUT,
    ) -> Object:
        """``{"path", "etag", "size_bytes"}`` once the PUT has ended, else -32029."""
        params: Object = {
            "path": path,
            "etag": etag,
            "size_bytes": size_bytes,
            "content_type": content_type,
            "scope": scope,
        }
        return await self._call_object("files/upload_complete", params, timeout)

    async def download_url(
        self,
        *,
        path: str,
        expires_in: int | None = None,
        scope: str = "app",
        timeout: float = FILES_TIMEOUT,
    ) -> Object:
        """``{"url", "expires_at"}``: where to GET from, for `expires_in` seconds (1 to 3,600)."""
        params: Object = {"path": path, "ttl_seconds": expires_in, "scope": scope}
        result = await self._call_object("files/download_url", params, timeout)
        return _with(result, "url", "get_url")

    async def list(
        self,
        *,
        prefix: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        scope: str = "app",
        timeout: float = FILES_TIMEOUT,
    ) -> Object:
        """One page: ``{"items", "next_cursor"}``. `limit` is 1 to 1,000."""
        params: Object = {"prefix": prefix, "cursor": cursor, "limit": limit, "scope": scope}
        return await self._call_object("files/list", params, timeout)

    async def delete(
        self, *, path: str, scope: str = "app", timeout: float = FILES_TIMEOUT
    ) -> Object:
        """``{"deleted": true}``, also for a file that was not there."""
        return await self._call_object("files/delete", {"path": path, "scope": scope}, timeout)


def _with(result: Object, name: str, other: str) -> Object:
    """Give a member both of its spellings' values under the one that we use."""
    if name not in result and other in result:
        return {**result, name: result[other]}
    return result
