"""Where signed file URLs lead: to the configured address, or a small server of our own.

Owns that choice. In process there is no HTTP door to upload through, so the first
upload or download starts a server on loopback that knows file URLs and nothing else.
"""

from typing import TYPE_CHECKING

from executa_nexus_stub.files import FileStore

if TYPE_CHECKING:
    from executa_nexus_stub.http.blobs import BlobServer


class BlobDoor:
    """The address that signed URLs begin with."""

    def __init__(self, public_url: str) -> None:
        self._public_url = public_url
        self._server: BlobServer | None = None

    def use(self, url: str) -> None:
        """Lead to `url` from now on, unless an address was configured."""
        self._public_url = self._public_url or url

    async def base(self, files: FileStore) -> str:
        """The address; starts the server if there is no other."""
        if self._public_url:
            return self._public_url
        if self._server is None:
            # Imported late: a process that stores no files needs no HTTP library.
            from executa_nexus_stub.http.blobs import BlobServer  # noqa: PLC0415

            self._server = BlobServer(files)
        return await self._server.start()

    async def aclose(self) -> None:
        """Stop the server. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            await server.aclose()
