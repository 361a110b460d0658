"""The bytes of files over HTTP, blocking. Whoever calls this does so in a thread."""

import mimetypes
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final

from executa_protocol.codes import STORAGE_UPSTREAM_ERROR
from executa_protocol.errors import StorageError
from executa_protocol.limits import FILE_MAX_BYTES

PUT_TIMEOUT: Final = 300.0
GET_TIMEOUT: Final = 300.0
"""Seconds without a byte after which a transfer has failed."""


def guess_type(path: str) -> str:
    """A content type for the ending of `path`."""
    return mimetypes.guess_type(path)[0] or "application/octet-stream"


def put(
    url: str, content: bytes | os.PathLike[str], size: int, headers: dict[str, str]
) -> str | None:
    """PUT bytes or a local file; gives the store's etag. Raises `StorageError` (-32029)."""
    headers = {**headers, "Content-Length": str(size)}
    if isinstance(content, bytes):
        return _put(url, content, headers)
    with Path(content).open("rb") as file:
        return _put(url, file, headers)


def _put(url: str, data: Any, headers: dict[str, str]) -> str | None:
    request = urllib.request.Request(_checked(url), data=data, headers=headers, method="PUT")  # noqa: S310
    with _open(request, PUT_TIMEOUT) as response:
        return response.headers.get("ETag")


def get(url: str) -> bytes:
    """GET at most 256 MiB. Raises `StorageError` (-32029)."""
    with _open(urllib.request.Request(_checked(url)), GET_TIMEOUT) as response:  # noqa: S310
        data: bytes = response.read(FILE_MAX_BYTES + 1)
    if len(data) > FILE_MAX_BYTES:
        raise StorageError(
            STORAGE_UPSTREAM_ERROR, f"the file has more than {FILE_MAX_BYTES:,} bytes"
        )
    return data


def _open(request: urllib.request.Request, timeout: float) -> Any:
    try:
        return urllib.request.urlopen(request, timeout=timeout)  # noqa: S310 - checked
    except urllib.error.HTTPError as fault:
        fault.close()
        text = f"the store answered {fault.code} to {request.method or 'GET'}"
        raise StorageError(STORAGE_UPSTREAM_ERROR, text) from None
    except OSError as fault:
        text = f"the store could not be reached: {fault}"
        raise StorageError(STORAGE_UPSTREAM_ERROR, text) from None


def _checked(url: str) -> str:
    """Presigned URLs come from the host, but a file: URL from there would read ours."""
    if not url.startswith(("https://", "http://")):
        raise StorageError(STORAGE_UPSTREAM_ERROR, "the host gave no HTTP URL for the file")
    return url
