"""`storage/*` and `files/*` by their wire names: read the params, find the partition, encode.

Owns the dispatch and the scope check (R-29): scopes come from the token alone. What is
stored where is the business of `storage` and `files`.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import Struct

from executa_nexus_stub.clock import Clock
from executa_nexus_stub.files import FileStore
from executa_nexus_stub.quota import Quota
from executa_nexus_stub.refusals import invalid, refused
from executa_nexus_stub.storage import KeyValueStore, Partition
from executa_nexus_stub.tokens import Claims
from executa_protocol import codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.methods import files, storage

SCOPES: Final = ("user", "tool")
"""What every plugin's token opens (seed lifecycle, Manifest declarations; R-29)."""

APP_SCOPE: Final = "app"
"""Opened as well by an invoke that comes from an app, attested by the host (R-29)."""

_WRITES: Final = ("/set", "/delete", "/upload_complete")


class _Method(Struct, frozen=True):
    read: Any
    serve: Callable[[Partition, Any], Any]


class Stores:
    """The two stores of the stub behind one call."""

    def __init__(
        self,
        clock: Clock,
        storage_bytes: Callable[[str], int],
        url_base: Callable[[], Awaitable[str]],
    ) -> None:
        self.quota = Quota(storage_bytes)
        self.kv = KeyValueStore(clock, self.quota)
        self.files = FileStore(clock, self.quota, url_base)
        self._tell: Callable[[], None] | None = None
        kv, blobs = self.kv, self.files
        self._methods: dict[str, _Method] = {
            "storage/get": _Method(storage.read_get, kv.get),
            "storage/set": _Method(storage.read_set, kv.set),
            "storage/delete": _Method(storage.read_storage_delete, kv.delete),
            "storage/list": _Method(storage.read_storage_list, kv.list),
            "files/upload_begin": _Method(files.read_upload_begin, blobs.begin),
            "files/upload_complete": _Method(files.read_upload_complete, blobs.complete),
            "files/download_url": _Method(files.read_download_url, blobs.download_url),
            "files/list": _Method(files.read_files_list, blobs.list),
            "files/delete": _Method(files.read_files_delete, blobs.delete),
        }

    def on_change(self, tell: Callable[[], None]) -> None:
        """Call `tell` after each call that may have changed what is stored."""
        self._tell = tell

    def knows(self, method: str) -> bool:
        """Whether this wire name is served."""
        return method in self._methods

    async def call(self, claims: Claims, method: str, params: bytes) -> bytes:
        """Serve one call of a verified token. Raises `NexusError`."""
        entry = self._methods[method]
        try:
            codec.check_content(params)
            wanted: storage.ScopedParams = entry.read(params)
        except DecodeFailure as fault:
            raise invalid(fault, "STORAGE_INVALID_REQUEST") from None
        result = entry.serve(_partition(claims, str(wanted.scope)), wanted)
        if inspect.isawaitable(result):
            result = await result
        if method.endswith(_WRITES) and self._tell is not None:
            self._tell()
        return codec.encode(result)


def _partition(claims: Claims, scope: str) -> Partition:
    if scope not in claims.allowed_scopes:
        raise refused("STORAGE_FORBIDDEN_SCOPE", f"scope: the token does not open {scope!r}")
    if scope == "tool":
        return (scope, claims.user_id, claims.executa_tool_id)
    if scope == APP_SCOPE:
        return (scope, claims.user_id, claims.app_id)
    return (scope, claims.user_id)
