"""`files/*`: bytes by path, with signed URLs for the way up and down.

Owns pending uploads, stored files and the signatures of their URLs. *Observed*: a
pending upload lasts 10 minutes, is completed once, and answers ``pending_upload`` until
its bytes have landed; the URL is used with the declared Content-Type. The bytes come and
go through `put` and `get`, which the HTTP door calls; this module opens no socket.
"""

import hashlib
import hmac
import secrets
from bisect import bisect_left
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import UNSET, Struct

from executa_nexus_stub.clock import Clock
from executa_nexus_stub.cursors import open_cursor, seal_cursor
from executa_nexus_stub.quota import Quota
from executa_nexus_stub.refusals import refused
from executa_nexus_stub.storage import Partition, check_match, check_metadata, make_etag, stamp
from executa_protocol.limits import FILE_URL_TTL_DEFAULT, STORAGE_LIST_DEFAULT
from executa_protocol.methods.files import (
    DownloadUrlParams,
    DownloadUrlResult,
    FileItem,
    FilesDeleteParams,
    FilesListParams,
    FilesListResult,
    UploadBeginParams,
    UploadBeginResult,
    UploadCompleteParams,
    UploadCompleteResult,
)
from executa_protocol.methods.storage import DeleteResult

UPLOAD_LIFE: Final = 600.0
"""Seconds that a pending upload lasts (*observed*)."""

BLOB_PATH: Final = "/api/v1/storage/blobs"
_DEFAULT_TYPE: Final = "application/octet-stream"


class Pending(Struct, kw_only=True):
    """An upload that has begun. `data` is None until its bytes have landed."""

    upload_id: str
    partition: Partition
    path: str
    size: int
    content_type: str
    metadata: dict[str, Any] | None
    expires_at: float
    data: bytes | None = None


class Stored(Struct, kw_only=True):
    """A file. `file_id` stands in its download URLs and is new with every upload."""

    file_id: str
    data: bytes
    content_type: str
    etag: str
    generation: int
    metadata: dict[str, Any] | None
    updated_at: float


class FileStore:
    """All files and pending uploads. What it is given has been checked by `methods.files`."""

    def __init__(self, clock: Clock, quota: Quota, url_base: Callable[[], Awaitable[str]]) -> None:
        self._clock = clock
        self._quota = quota
        self._url_base = url_base
        self._secret = secrets.token_bytes(32)
        self._pending: dict[str, Pending] = {}
        self._begun: dict[tuple[Partition, str], str] = {}
        self.stored: dict[Partition, dict[str, Stored]] = {}
        self._by_id: dict[str, Stored] = {}
        self.uploads = 0

    @property
    def pending_uploads(self) -> int:
        """Uploads that have begun and are neither complete nor collected."""
        self.collect()
        return len(self._pending)

    async def begin(self, partition: Partition, params: UploadBeginParams) -> UploadBeginResult:
        """Reserve room and give the URL to PUT to; a later begin of the path replaces this one."""
        self.collect()
        metadata = None if params.metadata is UNSET else params.metadata
        check_metadata(metadata)
        self._forget(self._begun.get((partition, params.path), ""))
        self._quota.charge(partition[1], params.size_bytes)
        upload = Pending(
            upload_id=secrets.token_hex(16),
            partition=partition,
            path=params.path,
            size=params.size_bytes,
            content_type=params.content_type or _DEFAULT_TYPE,
            metadata=metadata,
            expires_at=self._clock.now() + UPLOAD_LIFE,
        )
        self._pending[upload.upload_id] = upload
        self._begun[partition, params.path] = upload.upload_id
        url = await self._signed("put", upload.upload_id, upload.expires_at)
        return UploadBeginResult(
            put_url=url,
            presigned_url=url,
            upload_id=upload.upload_id,
            headers={"Content-Type": upload.content_type},
            expires_at=stamp(upload.expires_at),
        )

    def complete(self, partition: Partition, params: UploadCompleteParams) -> UploadCompleteResult:
        """Make landed bytes the file. Raises `NexusError` if they have not, or are not as said."""
        self.collect()
        upload = self._pending.get(self._begun.get((partition, params.path), ""))
        if upload is None:
            raise refused("STORAGE_NOT_FOUND", "path: no upload of it is pending")
        data = upload.data
        if data is None:
            raise refused("STORAGE_PENDING_UPLOAD", "path: its bytes have not landed yet")
        if params.size_bytes is not UNSET and params.size_bytes != len(data):
            reason = f"size_bytes: {len(data):,} bytes have landed"
            raise refused("STORAGE_INVALID_REQUEST", reason)
        if params.content_type is not UNSET and params.content_type != upload.content_type:
            raise refused("STORAGE_INVALID_REQUEST", "content_type: not the one of upload_begin")
        if params.etag is not UNSET and params.etag.strip('"') != digest(data):
            raise refused("STORAGE_PRECONDITION_FAILED", "etag: not that of the bytes that landed")
        shelf = self.stored.setdefault(partition, {})
        before = shelf.get(params.path)
        if before is not None:
            self._quota.release(partition[1], len(before.data))
            del self._by_id[before.file_id]
        self.uploads += 1
        file = Stored(
            file_id=secrets.token_hex(16),
            data=data,
            content_type=upload.content_type,
            etag=make_etag(self.uploads, partition, params.path, data),
            generation=before.generation + 1 if before else 1,
            metadata=upload.metadata,
            updated_at=self._clock.now(),
        )
        shelf[params.path] = file
        self._by_id[file.file_id] = file
        del self._pending[upload.upload_id], self._begun[partition, params.path]
        return UploadCompleteResult(
            path=params.path, etag=file.etag, generation=file.generation, size_bytes=len(data)
        )

    async def download_url(
        self, partition: Partition, params: DownloadUrlParams
    ) -> DownloadUrlResult:
        """A URL to GET the file as it is now, for a while."""
        file = self.stored.get(partition, {}).get(params.path)
        if file is None:
            raise refused("STORAGE_NOT_FOUND", "path: nothing is stored there")
        expires = self._clock.now() + (params.ttl_seconds or FILE_URL_TTL_DEFAULT)
        url = await self._signed("get", file.file_id, expires)
        return DownloadUrlResult(
            url=url,
            get_url=url,
            expires_at=stamp(expires),
            etag=file.etag,
            size_bytes=len(file.data),
            content_type=file.content_type,
        )

    def list(self, partition: Partition, params: FilesListParams) -> FilesListResult:
        """A page of paths under a prefix, in order of code points."""
        prefix = params.prefix or ""
        limit = params.limit or STORAGE_LIST_DEFAULT
        shelf = self.stored.get(partition, {})
        paths = sorted(path for path in shelf if path.startswith(prefix))
        if params.cursor:
            after = open_cursor(params.cursor, partition, prefix)
            start = bisect_left(paths, after)
            paths = paths[start + (start < len(paths) and paths[start] == after) :]
        rows = [
            FileItem(
                path=path,
                etag=shelf[path].etag,
                size_bytes=len(shelf[path].data),
                content_type=shelf[path].content_type,
                metadata=shelf[path].metadata,
                updated_at=stamp(shelf[path].updated_at),
            )
            for path in paths[:limit]
        ]
        more = seal_cursor(rows[-1].path, partition, prefix) if len(paths) > limit else None
        return FilesListResult(items=rows, next_cursor=more)

    def delete(self, partition: Partition, params: FilesDeleteParams) -> DeleteResult:
        """Take a file away; false if there was none."""
        shelf = self.stored.get(partition, {})
        file = shelf.get(params.path)
        check_match(params.if_match, None if file is None else file.etag)
        if file is None:
            return DeleteResult(deleted=False)
        del shelf[params.path], self._by_id[file.file_id]
        if not shelf:
            del self.stored[partition]
        self._quota.release(partition[1], len(file.data))
        return DeleteResult()

    def restore(self, partition: Partition, path: str, file: Stored) -> None:
        """Put back what a snapshot held."""
        self._quota.restore(partition[1], len(file.data))
        self.stored.setdefault(partition, {})[path] = file
        self._by_id[file.file_id] = file

    # --- The other end of a signed URL -------------------------------------------------

    def expected(self, upload_id: str, expires: str, signature: str) -> Pending:
        """The upload that a signed URL is for. Raises `NexusError` (403, 404)."""
        self._check("put", upload_id, expires, signature)
        self.collect()
        upload = self._pending.get(upload_id)
        if upload is None:
            raise refused("STORAGE_NOT_FOUND", "this upload is over")
        return upload

    def put(self, upload: Pending, data: bytes, content_type: str) -> str:
        """Land the bytes of an upload; once more replaces them. The answer is their digest."""
        if content_type.partition(";")[0].strip() != upload.content_type.partition(";")[0].strip():
            raise refused(
                "STORAGE_INVALID_REQUEST", "Content-Type: not the declared one", status=403
            )
        if len(data) != upload.size:
            reason = f"{len(data):,} bytes came, {upload.size:,} were declared"
            raise refused("STORAGE_INVALID_REQUEST", reason, status=413)
        upload.data = data
        return digest(data)

    def get(self, file_id: str, expires: str, signature: str) -> Stored:
        """The file that a signed URL is for. Raises `NexusError` (403, 404)."""
        self._check("get", file_id, expires, signature)
        file = self._by_id.get(file_id)
        if file is None:
            raise refused("STORAGE_NOT_FOUND", "this file was replaced or deleted")
        return file

    def collect(self) -> None:
        """Forget pending uploads whose time is over, and give their room back."""
        now = self._clock.now()
        for upload_id in [u.upload_id for u in self._pending.values() if now >= u.expires_at]:
            self._forget(upload_id)

    def _forget(self, upload_id: str) -> None:
        upload = self._pending.pop(upload_id, None)
        if upload is not None:
            del self._begun[upload.partition, upload.path]
            self._quota.release(upload.partition[1], upload.size)

    async def _signed(self, verb: str, name: str, expires_at: float) -> str:
        base = (await self._url_base()).rstrip("/")
        expires = str(int(expires_at))
        signature = self._sign(verb, name, expires)
        return f"{base}{BLOB_PATH}/{name}?expires={expires}&signature={signature}"

    def _sign(self, verb: str, name: str, expires: str) -> str:
        return hmac.digest(self._secret, f"{verb} {name} {expires}".encode(), "sha256").hex()

    def _check(self, verb: str, name: str, expires: str, signature: str) -> None:
        good = hmac.compare_digest(self._sign(verb, name, expires).encode(), signature.encode())
        if not good or not expires.isdecimal() or self._clock.now() >= int(expires):
            raise refused("STORAGE_NOT_GRANTED", "this URL is not valid, or not any more")


def digest(data: bytes) -> str:
    """The digest that a PUT answers as its ETag."""
    return hashlib.sha256(data).hexdigest()
