"""Storage and files in memory, as a test host serves them.

Owns etags, lives and pages. Params have been through the protocol's own checks; which
scopes are allowed is decided before. File content is kept by `blobs`.
"""

from typing import Any, TypeVar

from msgspec import UNSET, Raw, Struct, UnsetType

from executa_protocol.codec import decode_any
from executa_protocol.codes import STORAGE_NOT_FOUND, STORAGE_PRECONDITION_FAILED
from executa_protocol.errors import StorageError
from executa_protocol.limits import STORAGE_LIST_DEFAULT
from executa_protocol.methods.storage import StorageListParams, StorageSetParams
from executa_sdk.testing.clock import Clock

Object = dict[str, Any]


class Stored(Struct):
    """One key or file. `value` is raw JSON, or a file's content type."""

    value: Raw
    etag: str
    generation: int
    size: int
    expires_at: float | None = None
    metadata: Any = None
    tags: list[str] | None = None


E = TypeVar("E", bound=Stored)


class MemoryStore:
    """Keys by scope. Two of them make a host's storage: one for values, one for files."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scopes: dict[str, dict[str, Stored]] = {}
        self._changes = 0

    def values(self, scope: str) -> Object:
        """Every key of a scope with its value, for a test to look at."""
        entries = self._scopes.get(scope, {})
        return {key: decode_any(entry.value) for key in entries if (entry := self.find(scope, key))}

    def find(self, scope: str, key: str) -> Stored | None:
        """The entry, unless it has expired."""
        entry = self._scopes.get(scope, {}).get(key)
        if entry is None or (entry.expires_at is not None and entry.expires_at <= self._clock()):
            return None
        return entry

    def get(self, scope: str, key: str) -> Object:
        """The answer to `storage/get`."""
        entry = self.find(scope, key)
        if entry is None:
            return {"value": None, "exists": False, "etag": None}
        return {
            "value": entry.value,
            "exists": True,
            "etag": entry.etag,
            "generation": entry.generation,
        }

    def set(self, scope: str, params: StorageSetParams) -> Object:
        """The answer to `storage/set`. Raises `StorageError` (-32023)."""
        metadata = None if params.metadata is UNSET else params.metadata
        tags = None if params.tags is UNSET else params.tags
        value = Raw(bytes(params.value))
        ttl = None if params.ttl_seconds is UNSET else params.ttl_seconds
        self.match(scope, params.key, params.if_match)
        entry = self.put(scope, params.key, value, len(bytes(value)))
        entry.metadata, entry.tags = metadata, tags
        entry.expires_at = None if ttl is None else self._clock() + ttl
        return {"etag": entry.etag, "generation": entry.generation, "size_bytes": entry.size}

    def put(self, scope: str, key: str, value: Raw, size: int) -> Stored:
        """Store without conditions."""
        before = self.find(scope, key)
        self._changes += 1
        generation = before.generation + 1 if before else 1
        entry = Stored(value, f"etag-{self._changes}", generation, size)
        self._scopes.setdefault(scope, {})[key] = entry
        return entry

    def match(self, scope: str, key: str, if_match: str | UnsetType) -> None:
        """Raise `StorageError` (-32023) unless the key has this etag."""
        entry = self.find(scope, key)
        if if_match is not UNSET and (entry is None or entry.etag != if_match):
            text = f"{key}: its etag is not {if_match}"
            data = {"errorCode": "PRECONDITION_FAILED"}
            raise StorageError(STORAGE_PRECONDITION_FAILED, text, data)

    def delete(self, scope: str, key: str, if_match: str | UnsetType = UNSET) -> Object:
        """The answer to a delete, also of what is not there."""
        self.match(scope, key, if_match)
        self._scopes.get(scope, {}).pop(key, None)
        return {"deleted": True}

    def page(self, scope: str, params: "StorageListParams | Any", name: str = "key") -> Object:
        """The answer to a listing; cursors are the last key of the page before."""
        prefix = params.prefix or ""
        after = params.cursor or ""
        limit = params.limit or STORAGE_LIST_DEFAULT
        keys = sorted(
            key
            for key in self._scopes.get(scope, {})
            if key.startswith(prefix) and key > after and self.find(scope, key)
        )
        rows = [self._row(scope, key, name) for key in keys[:limit]]
        return {"items": rows, "next_cursor": keys[limit - 1] if len(keys) > limit else None}

    def _row(self, scope: str, key: str, name: str) -> Object:
        entry = self._scopes[scope][key]
        return {
            name: key,
            "etag": entry.etag,
            "size_bytes": entry.size,
            "metadata": entry.metadata,
            "tags": entry.tags,
        }


def missing(path: str) -> StorageError:
    """There is no such file."""
    return StorageError(STORAGE_NOT_FOUND, f"{path}: not found", {"errorCode": "NOT_FOUND"})
