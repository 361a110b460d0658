"""`storage/*`: the key-value calls, their results and their bounds.

Owns what may be asked. Which scope a token allows is the gate's business, and what
is stored is nexus's. Values stay raw: null is a value like any other, and numbers
pass through unchanged.
"""

from typing import Annotated, Any, Final, TypeVar

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from executa_protocol.limits import (
    STORAGE_LIST_MAX,
    STORAGE_MAX_TAGS,
    STORAGE_TTL_MAX,
    STORAGE_VALUE_BYTES,
)
from executa_protocol.methods.common import Params
from executa_protocol.methods.reading import Alias, InvalidParams, Shape
from executa_protocol.methods.storage_keys import key_fault, prefix_fault
from executa_protocol.readings import TOLERANT, Reader

FAULT: Final = "STORAGE_INVALID_REQUEST"
PRESUMED_SCOPE: Final = "tool"
"""What an absent scope reads as in tolerant mode: the narrowest of the three."""

Limit = Annotated[int, Meta(ge=1, le=STORAGE_LIST_MAX)]
"""Rows of a page, 1 to 1,000; 100 when absent."""


class ScopedParams(Params, kw_only=True):
    """The members of every storage and files call.

    `scope` is ``user``, ``tool`` or ``app``. Which of them is allowed is in the
    token's claims (R-29); any other word is refused there too.
    """

    scope: str | UnsetType = UNSET


S = TypeVar("S", bound=ScopedParams)


def presume_scope(params: ScopedParams, reader: Reader) -> None:
    """Fill an absent scope in tolerant mode; strict mode wants it explicit."""
    if params.scope is UNSET:
        reader.tolerate("STOR-001", f"scope is absent and is read as {PRESUMED_SCOPE}")
        params.scope = PRESUMED_SCOPE


def check_key(key: str, path: str = "key") -> None:
    """Raise `InvalidParams` (-32027) for a key or path that breaks the rules."""
    fault = key_fault(key)
    if fault is not None:
        raise InvalidParams("STORAGE_INVALID_PATH", f"{path}: {fault}", path=path)


def check_prefix(prefix: str | UnsetType) -> None:
    """Raise `InvalidParams` (-32027) for a prefix that no key can have."""
    fault = None if prefix is UNSET else prefix_fault(prefix)
    if fault is not None:
        raise InvalidParams("STORAGE_INVALID_PATH", f"prefix: {fault}", path="prefix")


class StorageGetParams(ScopedParams, kw_only=True):
    """The params of `storage/get`."""

    key: str


class StorageSetParams(ScopedParams, kw_only=True):
    """The params of `storage/set`.

    `value` is raw JSON of at most 256 KiB. `if_match` is an etag. `ttl_seconds` is 1
    to a year; a later set replaces it. At most 32 `tags`.
    """

    key: str
    value: Raw
    if_match: str | UnsetType = UNSET
    ttl_seconds: Annotated[int, Meta(ge=1, le=STORAGE_TTL_MAX)] | UnsetType = UNSET
    tags: Annotated[list[str], Meta(max_length=STORAGE_MAX_TAGS)] | UnsetType = UNSET


class StorageDeleteParams(ScopedParams, kw_only=True):
    """The params of `storage/delete`."""

    key: str
    if_match: str | UnsetType = UNSET


class StorageListParams(ScopedParams, kw_only=True):
    """The params of `storage/list`. `cursor` is opaque, from the page before."""

    prefix: str | UnsetType = UNSET
    cursor: str | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET
    kind: str | UnsetType = UNSET


def check_get(params: StorageGetParams | StorageDeleteParams) -> None:
    """Raise `InvalidParams` for a bad key."""
    check_key(params.key)


def check_set(params: StorageSetParams) -> None:
    """Raise `InvalidParams`: -32027 for the key, -32025 for a value over 256 KiB."""
    check_key(params.key)
    size = len(bytes(params.value))
    if size > STORAGE_VALUE_BYTES:
        message = f"value: {size:,} bytes, at most {STORAGE_VALUE_BYTES:,}"
        raise InvalidParams("STORAGE_VALUE_TOO_LARGE", message, path="value")


def check_list(params: StorageListParams) -> None:
    """Raise `InvalidParams` for a bad prefix."""
    check_prefix(params.prefix)


_GET: Final = Shape(StorageGetParams, FAULT, check=check_get, finish=presume_scope)
_SET: Final = Shape(
    StorageSetParams,
    FAULT,
    check=check_set,
    finish=presume_scope,
    aliases=(Alias("expires_in", "ttl_seconds", "STOR-002"),),
)
_DELETE: Final = Shape(StorageDeleteParams, FAULT, check=check_get, finish=presume_scope)
_LIST: Final = Shape(StorageListParams, FAULT, check=check_list, finish=presume_scope)

Data = bytes | Raw | UnsetType


def read_get(data: Data, reader: Reader = TOLERANT) -> StorageGetParams:
    """Read the params of `storage/get`. Raises `InvalidParams`."""
    return _GET.read(data, reader)


def read_set(data: Data, reader: Reader = TOLERANT) -> StorageSetParams:
    """Read the params of `storage/set`. Raises `InvalidParams`."""
    return _SET.read(data, reader)


def read_storage_delete(data: Data, reader: Reader = TOLERANT) -> StorageDeleteParams:
    """Read the params of `storage/delete`. Raises `InvalidParams`."""
    return _DELETE.read(data, reader)


def read_storage_list(data: Data, reader: Reader = TOLERANT) -> StorageListParams:
    """Read the params of `storage/list`. Raises `InvalidParams`."""
    return _LIST.read(data, reader)


class StorageGetResult(Struct, omit_defaults=True, kw_only=True):
    """The answer to `storage/get`. A miss is null, false and a null etag."""

    value: Raw
    exists: bool
    etag: str | None
    generation: int | str | UnsetType = UNSET


class StorageSetResult(Struct, omit_defaults=True, kw_only=True):
    """The answer to `storage/set`. `size_bytes` is the encoded value's."""

    etag: str
    generation: int | str | UnsetType = UNSET
    size_bytes: int | UnsetType = UNSET


class DeleteResult(Struct):
    """The answer to `storage/delete` and `files/delete`."""

    deleted: bool = True


class StorageItem(Struct, omit_defaults=True, kw_only=True):
    """One row of a listing: everything about a key but its value."""

    key: str
    etag: str | UnsetType | None = UNSET
    size_bytes: int | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET
    tags: list[str] | UnsetType | None = UNSET
    updated_at: Any = UNSET


class StorageListResult(Struct, kw_only=True):
    """The answer to `storage/list`; `next_cursor` is null on the last page."""

    items: list[StorageItem]
    next_cursor: str | None = None
