"""`storage/*`: keys and values in memory, by scope.

Owns what is stored, its etags, generations and lives, and listings. Partitions follow
R-29: ``user`` by user, ``tool`` by user and plugin, ``app`` by user and app. *Assumed*:
etags never repeat, a generation counts the sets of one key since it last came to be,
`if_match` ``*`` asks only that the key exists. Which scope a token opens is `core`'s.
"""

import hashlib
from bisect import bisect_left, insort
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import UNSET, Raw, Struct

from executa_nexus_stub.clock import Clock
from executa_nexus_stub.cursors import open_cursor, seal_cursor
from executa_nexus_stub.quota import Quota
from executa_nexus_stub.refusals import refused
from executa_protocol import codec
from executa_protocol.limits import KIB, STORAGE_LIST_DEFAULT
from executa_protocol.methods.storage import (
    DeleteResult,
    StorageDeleteParams,
    StorageGetParams,
    StorageGetResult,
    StorageItem,
    StorageListParams,
    StorageListResult,
    StorageSetParams,
    StorageSetResult,
)

Partition = tuple[str, ...]
"""Scope, user, and the plugin's or app's id where the scope has one."""

_MAX_METADATA: Final = 16 * KIB
"""Largest metadata of a key or file, encoded (*assumed*)."""

_NULL: Final = Raw(b"null")


class Entry(Struct, kw_only=True):
    """A value under its key. Times are epoch seconds."""

    value: bytes
    etag: str
    generation: int
    updated_at: float
    expires_at: float | None
    tags: list[str] | None
    metadata: dict[str, Any] | None
    cost: int


class Bucket:
    """The keys of one partition, sorted as they are listed."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.order: list[str] = []

    def put(self, key: str, entry: Entry) -> None:
        """Store, keeping the order."""
        if key not in self.entries:
            insort(self.order, key)
        self.entries[key] = entry

    def drop(self, key: str) -> Entry:
        """Take away."""
        del self.order[bisect_left(self.order, key)]
        return self.entries.pop(key)


class KeyValueStore:
    """All partitions. Everything it is given has been checked by `methods.storage`."""

    def __init__(self, clock: Clock, quota: Quota) -> None:
        self._clock = clock
        self._quota = quota
        self.buckets: dict[Partition, Bucket] = {}
        self.sets = 0

    def get(self, partition: Partition, params: StorageGetParams) -> StorageGetResult:
        """The value; a miss is no error."""
        entry = self._live(partition, params.key)
        if entry is None:
            return StorageGetResult(value=_NULL, exists=False, etag=None)
        return StorageGetResult(
            value=Raw(entry.value), exists=True, etag=entry.etag, generation=entry.generation
        )

    def set(self, partition: Partition, params: StorageSetParams) -> StorageSetResult:
        """Store a value. Raises `NexusError`: precondition, quota or metadata too large."""
        entry = self._live(partition, params.key)
        check_match(params.if_match, None if entry is None else entry.etag)
        metadata = None if params.metadata is UNSET else params.metadata
        value = bytes(params.value)
        cost = len(value) + len(params.key.encode()) + check_metadata(metadata)
        user = partition[1]
        self._quota.charge(user, cost - (entry.cost if entry else 0), purge=self._purge_user)
        self.sets += 1
        now = self._clock.now()
        fresh = Entry(
            value=value,
            etag=make_etag(self.sets, partition, params.key, value),
            generation=entry.generation + 1 if entry else 1,
            updated_at=now,
            expires_at=now + params.ttl_seconds if params.ttl_seconds else None,
            tags=None if params.tags is UNSET else params.tags,
            metadata=metadata,
            cost=cost,
        )
        self.buckets.setdefault(partition, Bucket()).put(params.key, fresh)
        return StorageSetResult(etag=fresh.etag, generation=fresh.generation, size_bytes=len(value))

    def delete(self, partition: Partition, params: StorageDeleteParams) -> DeleteResult:
        """Take a key away; false if there was none. Raises `NexusError` for `if_match`."""
        entry = self._live(partition, params.key)
        check_match(params.if_match, None if entry is None else entry.etag)
        if entry is None:
            return DeleteResult(deleted=False)
        self._drop(partition, params.key)
        return DeleteResult()

    def list(self, partition: Partition, params: StorageListParams) -> StorageListResult:
        """A page of keys under a prefix, in order of code points, values left out."""
        prefix = params.prefix or ""
        limit = params.limit or STORAGE_LIST_DEFAULT
        after = open_cursor(params.cursor, partition, prefix) if params.cursor else None
        bucket = self.buckets.get(partition)
        rows: list[StorageItem] = []
        if bucket is None:
            return StorageListResult(items=rows)
        self._purge(partition)
        index = bisect_left(bucket.order, prefix)
        if after is not None:
            index = max(index, bisect_left(bucket.order, after))
            index += index < len(bucket.order) and bucket.order[index] == after
        while index < len(bucket.order) and bucket.order[index].startswith(prefix):
            if len(rows) == limit:
                return StorageListResult(
                    items=rows, next_cursor=seal_cursor(rows[-1].key, partition, prefix)
                )
            key = bucket.order[index]
            entry = bucket.entries[key]
            rows.append(
                StorageItem(
                    key=key,
                    etag=entry.etag,
                    size_bytes=len(entry.value),
                    metadata=entry.metadata,
                    tags=entry.tags,
                    updated_at=stamp(entry.updated_at),
                )
            )
            index += 1
        return StorageListResult(items=rows)

    def restore(self, partition: Partition, key: str, entry: Entry) -> None:
        """Put back what a snapshot held."""
        self._quota.restore(partition[1], entry.cost)
        self.buckets.setdefault(partition, Bucket()).put(key, entry)

    def _live(self, partition: Partition, key: str) -> Entry | None:
        bucket = self.buckets.get(partition)
        entry = bucket.entries.get(key) if bucket is not None else None
        if entry is not None and self._is_over(entry):
            self._drop(partition, key)
            return None
        return entry

    def _is_over(self, entry: Entry) -> bool:
        return entry.expires_at is not None and self._clock.now() >= entry.expires_at

    def _drop(self, partition: Partition, key: str) -> None:
        bucket = self.buckets[partition]
        self._quota.release(partition[1], bucket.drop(key).cost)
        if not bucket.entries:
            del self.buckets[partition]

    def _purge(self, partition: Partition) -> None:
        bucket = self.buckets.get(partition)
        for key in [k for k, e in bucket.entries.items() if self._is_over(e)] if bucket else ():
            self._drop(partition, key)

    def _purge_user(self, user_id: str) -> None:
        for partition in [name for name in self.buckets if name[1] == user_id]:
            self._purge(partition)


def check_match(if_match: Any, etag: str | None) -> None:
    """Raise `NexusError` (-32023) unless `if_match` is absent or fits what is stored."""
    if if_match is UNSET or if_match == etag or (if_match == "*" and etag is not None):
        return
    reason = "nothing is stored there" if etag is None else "it was changed meanwhile"
    raise refused("STORAGE_PRECONDITION_FAILED", f"if_match: {reason}")


def check_metadata(metadata: dict[str, Any] | None) -> int:
    """Bytes of the metadata as encoded. Raises `NexusError` if there are too many."""
    size = len(codec.encode(metadata)) if metadata else 0
    if size > _MAX_METADATA:
        raise refused(
            "STORAGE_INVALID_REQUEST", f"metadata: {size:,} bytes, at most {_MAX_METADATA:,}"
        )
    return size


def make_etag(count: int, partition: Partition, key: str, value: bytes) -> str:
    """An opaque etag: no two sets give the same one."""
    head = f"{count}\0{partition}\0{key}\0".encode()
    return hashlib.sha256(head + value).hexdigest()[:20]


def stamp(seconds: float) -> str:
    """Epoch seconds as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
