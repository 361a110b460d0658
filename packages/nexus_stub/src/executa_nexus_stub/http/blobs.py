"""Signed file URLs over HTTP: PUT lands an upload, GET answers a file, whole or in ranges.

Owns the two handlers, for the full door and for the small server that an in-process
stub starts on loopback. Authorization is the signature in the URL; no token comes here.
"""

import asyncio
import re
from typing import Final

from aiohttp import web

from executa_nexus_stub.files import BLOB_PATH, FileStore
from executa_nexus_stub.http.refusal import refusals

_CHUNK: Final = 64 * 1024
_RANGE: Final = re.compile(r"bytes=(\d*)-(\d*)")


class BlobHandlers:
    """PUT and GET of signed URLs."""

    def __init__(self, files: FileStore) -> None:
        self._files = files

    async def put(self, request: web.Request) -> web.Response:
        """Land the bytes of an upload. The answer's ETag is their digest."""
        upload = self._files.expected(request.match_info["name"], *_signature(request))
        data = bytearray()
        async for chunk in request.content.iter_chunked(_CHUNK):
            data += chunk
            if len(data) > upload.size:  # put() says so without the rest
                break
        kind = request.headers.get("Content-Type", "")
        etag = self._files.put(upload, bytes(data), kind)
        return web.Response(headers={"ETag": f'"{etag}"'})

    async def get(self, request: web.Request) -> web.Response:
        """A file, or the range of it that was asked for."""
        file = self._files.get(request.match_info["name"], *_signature(request))
        headers = {
            "Content-Type": file.content_type,
            "ETag": f'"{file.etag}"',
            "Accept-Ranges": "bytes",
            "X-Content-Type-Options": "nosniff",
        }
        asked = _RANGE.fullmatch(request.headers.get("Range", ""))
        if asked is None or asked.groups() == ("", ""):
            return web.Response(body=file.data, headers=headers)
        size = len(file.data)
        first, last = asked.groups()
        start = int(first) if first else max(0, size - int(last))
        end = min(int(last) + 1, size) if first and last else size
        if start >= end:
            headers["Content-Range"] = f"bytes */{size}"
            return web.Response(status=416, headers=headers)
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        return web.Response(status=206, body=file.data[start:end], headers=headers)


def add_blob_routes(app: web.Application, files: FileStore) -> None:
    """Serve the signed URLs of `files` under their path."""
    handlers = BlobHandlers(files)
    app.router.add_put(f"{BLOB_PATH}/{{name}}", handlers.put)
    app.router.add_get(f"{BLOB_PATH}/{{name}}", handlers.get)


def _signature(request: web.Request) -> tuple[str, str]:
    return request.query.get("expires", ""), request.query.get("signature", "")


class BlobServer:
    """The handlers alone, on a loopback port that the system chooses."""

    def __init__(self, files: FileStore) -> None:
        app = web.Application(middlewares=[refusals])
        add_blob_routes(app, files)
        self._runner = web.AppRunner(app, access_log=None)
        self._starting = asyncio.Lock()
        self._base = ""

    async def start(self) -> str:
        """The server's address; started by the first call."""
        async with self._starting:
            if not self._base:
                await self._runner.setup()
                site = web.TCPSite(self._runner, "127.0.0.1", 0)
                await site.start()
                host, port = self._runner.addresses[0][:2]
                self._base = f"http://{host}:{port}"
        return self._base

    async def aclose(self) -> None:
        """Stop listening and close what is open."""
        await self._runner.cleanup()
