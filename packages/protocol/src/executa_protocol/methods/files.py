"""`files/*`: uploads, downloads and listings of stored files.

Owns what may be asked and both spellings of what is answered. The bytes themselves
go over HTTP between the plugin and the store, never over this wire.
"""

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from executa_protocol.limits import (
    FILE_CONTENT_TYPE_CHARS,
    FILE_MAX_BYTES,
    FILE_URL_TTL_MAX,
)
from executa_protocol.methods.reading import Alias, InvalidParams, Shape
from executa_protocol.methods.storage import (
    FAULT,
    Data,
    Limit,
    ScopedParams,
    check_key,
    check_prefix,
    presume_scope,
)
from executa_protocol.readings import TOLERANT, Reader

ContentType = Annotated[str, Meta(min_length=1, max_length=FILE_CONTENT_TYPE_CHARS)]


class UploadBeginParams(ScopedParams, kw_only=True):
    """The params of `files/upload_begin`.

    `size_bytes` is 0 to 256 MiB; a file above that is refused as too large.
    """

    path: str
    size_bytes: Annotated[int, Meta(ge=0)]
    content_type: ContentType | UnsetType = UNSET


class UploadCompleteParams(ScopedParams, kw_only=True):
    """The params of `files/upload_complete`, once the PUT has ended."""

    path: str
    etag: str | UnsetType = UNSET
    size_bytes: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    content_type: ContentType | UnsetType = UNSET


class DownloadUrlParams(ScopedParams, kw_only=True):
    """The params of `files/download_url`. `ttl_seconds` is 1 to 3,600; 300 when absent."""

    path: str
    ttl_seconds: Annotated[int, Meta(ge=1, le=FILE_URL_TTL_MAX)] | UnsetType = UNSET


class FilesListParams(ScopedParams, kw_only=True):
    """The params of `files/list`."""

    prefix: str | UnsetType = UNSET
    cursor: str | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class FilesDeleteParams(ScopedParams, kw_only=True):
    """The params of `files/delete`."""

    path: str
    if_match: str | UnsetType = UNSET


_ByPath = UploadBeginParams | UploadCompleteParams | DownloadUrlParams | FilesDeleteParams


def check_path(params: _ByPath) -> None:
    """Raise `InvalidParams` (-32027) for a bad path."""
    check_key(params.path, "path")


def check_upload(params: UploadBeginParams | UploadCompleteParams) -> None:
    """Raise `InvalidParams`: -32027 for the path, -32025 for a file over 256 MiB."""
    check_path(params)
    if params.size_bytes is not UNSET and params.size_bytes > FILE_MAX_BYTES:
        message = f"size_bytes: {params.size_bytes:,}, at most {FILE_MAX_BYTES:,}"
        raise InvalidParams("STORAGE_VALUE_TOO_LARGE", message, path="size_bytes")


def check_files_list(params: FilesListParams) -> None:
    """Raise `InvalidParams` for a bad prefix."""
    check_prefix(params.prefix)


_SIZE: Final = Alias("expected_bytes", "size_bytes", "STOR-003")
_BEGIN: Final = Shape(
    UploadBeginParams, FAULT, check=check_upload, finish=presume_scope, aliases=(_SIZE,)
)
_COMPLETE: Final = Shape(
    UploadCompleteParams, FAULT, check=check_upload, finish=presume_scope, aliases=(_SIZE,)
)
_URL: Final = Shape(
    DownloadUrlParams,
    FAULT,
    check=check_path,
    finish=presume_scope,
    aliases=(Alias("expires_in", "ttl_seconds", "STOR-002"),),
)
_LIST: Final = Shape(FilesListParams, FAULT, check=check_files_list, finish=presume_scope)
_DELETE: Final = Shape(FilesDeleteParams, FAULT, check=check_path, finish=presume_scope)


def read_upload_begin(data: Data, reader: Reader = TOLERANT) -> UploadBeginParams:
    """Read the params of `files/upload_begin`. Raises `InvalidParams`."""
    return _BEGIN.read(data, reader)


def read_upload_complete(data: Data, reader: Reader = TOLERANT) -> UploadCompleteParams:
    """Read the params of `files/upload_complete`. Raises `InvalidParams`."""
    return _COMPLETE.read(data, reader)


def read_download_url(data: Data, reader: Reader = TOLERANT) -> DownloadUrlParams:
    """Read the params of `files/download_url`. Raises `InvalidParams`."""
    return _URL.read(data, reader)


def read_files_list(data: Data, reader: Reader = TOLERANT) -> FilesListParams:
    """Read the params of `files/list`. Raises `InvalidParams`."""
    return _LIST.read(data, reader)


def read_files_delete(data: Data, reader: Reader = TOLERANT) -> FilesDeleteParams:
    """Read the params of `files/delete`. Raises `InvalidParams`."""
    return _DELETE.read(data, reader)


class UploadBeginResult(Struct, omit_defaults=True, kw_only=True):
    """The answer to `files/upload_begin`: where to PUT, and with which headers.

    `presigned_url` repeats `put_url` for readers of the documentation's spelling;
    `fields` belongs to that spelling. A pending upload lasts 10 minutes.
    """

    put_url: str
    upload_id: str | UnsetType = UNSET
    headers: dict[str, str] = field(default_factory=dict[str, str])
    expires_at: Any = UNSET
    presigned_url: str | UnsetType = UNSET
    fields: dict[str, Any] | UnsetType = UNSET


class UploadCompleteResult(Struct, omit_defaults=True, kw_only=True):
    """The answer to `files/upload_complete`."""

    path: str
    etag: str | UnsetType | None = UNSET
    generation: int | str | UnsetType = UNSET
    size_bytes: int | UnsetType = UNSET


class DownloadUrlResult(Struct, omit_defaults=True, kw_only=True):
    """The answer to `files/download_url`; `get_url` repeats `url` for some SDKs."""

    url: str
    get_url: str | UnsetType = UNSET
    expires_at: Any = UNSET
    etag: str | UnsetType | None = UNSET
    size_bytes: int | UnsetType | None = UNSET
    content_type: str | UnsetType | None = UNSET


class FileItem(Struct, omit_defaults=True, kw_only=True):
    """One row of a listing of files."""

    path: str
    etag: str | UnsetType | None = UNSET
    size_bytes: int | UnsetType = UNSET
    content_type: str | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET
    updated_at: Any = UNSET


class FilesListResult(Struct, kw_only=True):
    """The answer to `files/list`; `next_cursor` is null on the last page."""

    items: list[FileItem]
    next_cursor: str | None = None


_BEGUN: Final = Shape(
    UploadBeginResult,
    "STORAGE_UPSTREAM_ERROR",
    aliases=(Alias("presigned_url", "put_url", "STOR-004"),),
)
_GOT_URL: Final = Shape(
    DownloadUrlResult,
    "STORAGE_UPSTREAM_ERROR",
    aliases=(Alias("get_url", "url", "STOR-005"),),
)


def read_upload_begin_result(data: bytes | Raw, reader: Reader = TOLERANT) -> UploadBeginResult:
    """Read the answer to `files/upload_begin`, with `put_url` or `presigned_url`."""
    return _BEGUN.read(data, reader)


def read_download_url_result(data: bytes | Raw, reader: Reader = TOLERANT) -> DownloadUrlResult:
    """Read the answer to `files/download_url`, with `url` or `get_url`."""
    return _GOT_URL.read(data, reader)
