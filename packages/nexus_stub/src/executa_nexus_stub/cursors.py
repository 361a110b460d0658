"""Cursors of listings: opaque to the caller, bound to their partition and prefix.

A cursor names the last key of its page, so that keys which come or go between two
pages are neither skipped nor repeated. Owns the encoding only; it is no secret, but a
cursor that was changed or belongs to another listing is recognised and refused.
"""

import base64
import binascii
import hashlib
from typing import Final

from executa_nexus_stub.refusals import refused

_PERSON: Final = b"executa-cursor"
_MARK: Final = 8


def seal_cursor(key: str, partition: tuple[str, ...], prefix: str) -> str:
    """A cursor after `key`."""
    data = key.encode()
    return base64.urlsafe_b64encode(_mark(data, partition, prefix) + data).decode().rstrip("=")


def open_cursor(cursor: str, partition: tuple[str, ...], prefix: str) -> str:
    """The key that a cursor comes after. Raises `NexusError` (-32028) for any other text."""
    try:
        raw = base64.b64decode(
            cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True
        )
        mark, data = raw[:_MARK], raw[_MARK:]
        if mark == _mark(data, partition, prefix):
            return data.decode()
    except (binascii.Error, ValueError):
        pass
    raise refused("STORAGE_INVALID_REQUEST", "cursor: not one of this listing's")


def _mark(data: bytes, partition: tuple[str, ...], prefix: str) -> bytes:
    scope = repr((partition, prefix)).encode()
    return hashlib.blake2b(scope + data, digest_size=_MARK, person=_PERSON).digest()
