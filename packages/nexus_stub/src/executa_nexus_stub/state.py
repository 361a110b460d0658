"""Stores on disk, so that what plugins kept is there again after a restart.

Owns the folder that the configuration names: one snapshot of keys and of what is known of
files, and one file of bytes for each stored file. A snapshot replaces the one before in
one step, at most a second after a change and when the stub closes. Tokens, sessions and
pending uploads are never written.
"""

import os
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from executa_nexus_stub.clock import Clock, Timer
from executa_nexus_stub.files import Stored
from executa_nexus_stub.storage import Entry, Partition
from executa_nexus_stub.stores import Stores
from executa_protocol.errors import UsageError

SAVE_AFTER: Final = 1.0
"""Seconds from a change to the snapshot that holds it."""

_VERSION: Final = 1
_SNAPSHOT: Final = "stores.msgpack"
_BYTES: Final = "files"


class _Key(Struct):
    partition: Partition
    key: str
    entry: Entry


class _File(Struct):
    partition: Partition
    path: str
    file_id: str
    content_type: str
    etag: str
    generation: int
    metadata: dict[str, Any] | None
    updated_at: float


class _Snapshot(Struct):
    version: int
    sets: int
    uploads: int
    keys: list[_Key]
    files: list[_File]


class StateFolder:
    """The stores' folder. Loads when it is made; raises `UsageError` if it cannot be read."""

    def __init__(self, path: str | Path, stores: Stores, clock: Clock) -> None:
        self._folder = Path(path)
        self._stores = stores
        self._clock = clock
        self._timer: Timer | None = None
        try:
            (self._folder / _BYTES).mkdir(parents=True, exist_ok=True, mode=0o700)
            self._load()
        except (OSError, msgspec.MsgspecError) as fault:
            msg = f"the stores in {self._folder} cannot be read: {fault}"
            raise UsageError(msg) from None
        stores.on_change(self._changed)

    def save(self) -> None:
        """Write what is stored now, in one step."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        kv, files = self._stores.kv, self._stores.files
        snapshot = _Snapshot(
            version=_VERSION,
            sets=kv.sets,
            uploads=files.uploads,
            keys=[
                _Key(partition, key, bucket.entries[key])
                for partition, bucket in kv.buckets.items()
                for key in bucket.order
            ],
            files=[
                _File(
                    partition,
                    path,
                    file.file_id,
                    file.content_type,
                    file.etag,
                    file.generation,
                    file.metadata,
                    file.updated_at,
                )
                for partition, shelf in files.stored.items()
                for path, file in shelf.items()
            ],
        )
        here = {
            file.file_id: file.data for shelf in files.stored.values() for file in shelf.values()
        }
        for file_id, data in here.items():
            if not self._bytes(file_id).exists():
                _replace(self._bytes(file_id), data)
        _replace(self._folder / _SNAPSHOT, msgspec.msgpack.encode(snapshot))
        for stale in (self._folder / _BYTES).iterdir():  # the snapshot no longer names them
            if stale.name not in here:
                stale.unlink()

    def close(self) -> None:
        """Save a last time."""
        self.save()

    def _load(self) -> None:
        path = self._folder / _SNAPSHOT
        if not path.exists():
            return
        snapshot = msgspec.msgpack.decode(path.read_bytes(), type=_Snapshot)
        if snapshot.version != _VERSION:
            msg = f"version {snapshot.version} is not {_VERSION}"
            raise msgspec.ValidationError(msg)
        kv, files = self._stores.kv, self._stores.files
        for row in snapshot.keys:
            kv.restore(row.partition, row.key, row.entry)
        for row in snapshot.files:
            stored = Stored(
                file_id=row.file_id,
                data=self._bytes(row.file_id).read_bytes(),
                content_type=row.content_type,
                etag=row.etag,
                generation=row.generation,
                metadata=row.metadata,
                updated_at=row.updated_at,
            )
            files.restore(row.partition, row.path, stored)
        kv.sets, files.uploads = snapshot.sets, snapshot.uploads

    def _changed(self) -> None:
        if self._timer is None:
            self._timer = self._clock.call_later(SAVE_AFTER, self.save)

    def _bytes(self, file_id: str) -> Path:
        return self._folder / _BYTES / file_id


def _replace(path: Path, data: bytes) -> None:
    """Write a whole file or nothing: what is read later is never half of it."""
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
