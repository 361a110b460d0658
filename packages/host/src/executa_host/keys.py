"""API keys: for whom a bearer key speaks, in one file that holds no key.

Owns making, finding, listing and revoking keys, and their file: JSON, mode 0600, beside the
store, replaced atomically under a lock. It keeps the SHA-256 of each key; a key itself is 256
random bits and is seen once, by whoever made it. What scopes allow and how a key arrives is
not known here.
"""

import fcntl
import hashlib
import hmac
import os
import secrets
import stat
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, structs

from executa_host.actions.requests import OWN_WORK, Caller, Scope
from executa_protocol.errors import UsageError

PREFIX: Final = "exk_"
"""What every key begins with, so that scanners for leaked secrets recognise one."""

NAME_CHARS: Final = 128
"""Longest principal, tenant, user id or label: a row of a table still shows them."""

MAX_FILE: Final = 16 * 1024 * 1024
"""Largest key file, some 40,000 keys; a larger one is another file."""

_SECRET_BYTES: Final = 32
_ID_CHARS: Final = 12
_KEY_CHARS: Final = len(PREFIX) + _ID_CHARS + 1 + 43
_NOBODY: Final = "0" * 64
"""What an unknown key is compared with, so that it takes as long as a known one."""


class Key(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One key as the file has it. Times are epoch milliseconds, 0 for never.

    `digest` is the SHA-256 of the key, in hexadecimal digits.
    """

    key_id: str
    digest: str
    principal: str
    created_at_ms: int
    tenant: str = "default"
    user_id: str = "local"
    scopes: tuple[Scope, ...] = ()
    label: str = ""
    expires_at_ms: int = 0
    revoked_at_ms: int = 0

    def __repr__(self) -> str:
        return f"Key({self.key_id!r}, principal={self.principal!r}, tenant={self.tenant!r})"

    @property
    def caller(self) -> Caller:
        """Whom the key speaks for (R-23)."""
        return Caller(
            principal=self.principal,
            tenant=self.tenant,
            user_id=self.user_id,
            scopes=frozenset(self.scopes),
        )

    def valid(self, now_ms: int) -> bool:
        """Whether it still opens anything."""
        return not self.revoked_at_ms and not 0 < self.expires_at_ms <= now_ms


class NewKey(Struct, frozen=True):
    """A key that was just made; `text` is shown once and kept nowhere."""

    key: Key
    text: str

    def __repr__(self) -> str:
        return f"NewKey({self.key!r})"


class KeysUnreadable(UsageError):
    """The key file cannot be used: nobody is let in until it can."""


class _Contents(Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    keys: tuple[Key, ...]


_DECODER: Final = msgspec.json.Decoder(_Contents)
_VERSION: Final = 1


def keys_beside(store: str | Path) -> Path:
    """The key file that belongs to a store."""
    path = Path(store)
    return path.with_name(f"{path.name}.keys.json")


class KeyFile:
    """The keys of one file. `clock` gives epoch seconds."""

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path)
        self._clock = clock
        self._keys: dict[str, Key] = {}
        self._seen: tuple[int, int, int] | None = None

    # --- Who is it -----------------------------------------------------------------------

    def find(self, text: str) -> Key | None:
        """The valid key that `text` is, or None. Raises `KeysUnreadable`.

        The file is read again once it has changed: a key that was revoked is refused from
        the next request on.
        """
        self._refresh()
        shaped = len(text) == _KEY_CHARS and text.startswith(PREFIX) and text.isascii()
        identity = text[len(PREFIX) : len(PREFIX) + _ID_CHARS] if shaped else ""
        key = self._keys.get(identity)
        matches = hmac.compare_digest(_digest(text), _NOBODY if key is None else key.digest)
        return key if key is not None and matches and key.valid(self._now()) else None

    def still(self, key: Key) -> bool:
        """Whether a key that was found before still is valid. Raises `KeysUnreadable`."""
        self._refresh()
        now = self._keys.get(key.key_id)
        return now is not None and now.digest == key.digest and now.valid(self._now())

    def list(self) -> tuple[Key, ...]:
        """All keys, also revoked ones, in the order they were made. Raises `KeysUnreadable`."""
        self._refresh()
        return tuple(self._keys.values())

    # --- Changes -------------------------------------------------------------------------

    def create(
        self,
        principal: str,
        *,
        tenant: str = "default",
        user_id: str = "local",
        scopes: Iterable[Scope] = OWN_WORK,
        label: str = "",
        expires_in: float | None = None,
    ) -> NewKey:
        """Make a key; it is in the file when this returns. `expires_in` is seconds.

        Raises `UsageError` for names that are empty, too long or hold control characters.
        """
        _check("principal", principal)
        _check("tenant", tenant)
        _check("user id", user_id)
        _check("label", label, empty=True)
        if expires_in is not None and not 0 < expires_in < 10**11:
            msg = "a key expires after more than 0 seconds"
            raise UsageError(msg)
        now = self._now()
        with self._locked():
            identity = secrets.token_hex(_ID_CHARS // 2)
            while identity in self._keys:
                identity = secrets.token_hex(_ID_CHARS // 2)
            text = f"{PREFIX}{identity}_{secrets.token_urlsafe(_SECRET_BYTES)}"
            key = Key(
                key_id=identity,
                digest=_digest(text),
                principal=principal,
                tenant=tenant,
                user_id=user_id,
                scopes=tuple(sorted(set(scopes))),
                label=label,
                created_at_ms=now,
                expires_at_ms=0 if expires_in is None else now + int(expires_in * 1000),
            )
            self._write({**self._keys, identity: key})
        return NewKey(key, text)

    def revoke(self, key_id: str) -> Key:
        """End a key for good; again is harmless. Raises `UsageError` for one that is not there."""
        with self._locked():
            key = self._keys.get(key_id)
            if key is None:
                msg = f"no key has the id {key_id!r}"
                raise UsageError(msg)
            if not key.revoked_at_ms:
                key = structs.replace(key, revoked_at_ms=self._now())
                self._write({**self._keys, key_id: key})
        return key

    # --- The file ------------------------------------------------------------------------

    def _now(self) -> int:
        return int(self._clock() * 1000)

    def _refresh(self) -> None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            self._keys, self._seen = {}, None
            return
        except OSError as fault:
            raise KeysUnreadable(f"{self.path} cannot be read: {fault.strerror}") from None
        mark = (found.st_mtime_ns, found.st_ino, found.st_size)
        if mark != self._seen:
            self._keys, self._seen = {}, None
            self._keys, self._seen = self._read()

    def _read(self) -> tuple[dict[str, Key], tuple[int, int, int]]:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as fault:
            raise KeysUnreadable(f"{self.path} cannot be read: {fault.strerror}") from None
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            self._check_file(found)
            data = file.read(MAX_FILE + 1)
        try:
            contents = _DECODER.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise KeysUnreadable(f"{self.path} is no file of API keys") from None
        if contents.version != _VERSION:
            msg = f"{self.path} was written by a newer executa (version {contents.version})"
            raise KeysUnreadable(msg)
        mark = (found.st_mtime_ns, found.st_ino, found.st_size)
        return {key.key_id: key for key in contents.keys}, mark

    def _check_file(self, found: os.stat_result) -> None:
        """Whoever may write the file may let himself in; whoever owns it may."""
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_FILE:
            raise KeysUnreadable(f"{self.path} is no file of API keys")
        if found.st_uid not in (os.geteuid(), 0):
            raise KeysUnreadable(f"{self.path} belongs to another user")
        if found.st_mode & 0o077:
            raise KeysUnreadable(f"{self.path} is open to other users; run: chmod 600 {self.path}")

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Nobody else changes the file meanwhile, and what is known of it is current."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self.path.with_name(f"{self.path.name}.lock")
        try:
            descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise KeysUnreadable(f"{beside} cannot be opened: {fault.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._seen = None
            self._refresh()
            yield
        finally:
            os.close(descriptor)

    def _write(self, keys: dict[str, Key]) -> None:
        data = msgspec.json.format(
            msgspec.json.encode(_Contents(_VERSION, tuple(keys.values()))), indent=1
        )
        new = self.path.with_name(f"{self.path.name}.{secrets.token_hex(8)}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(new, flags, 0o600), "wb") as file:
            try:
                file.write(data + b"\n")
                file.flush()
                os.fsync(file.fileno())
                new.replace(self.path)
            except BaseException:
                new.unlink(missing_ok=True)
                raise
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)  # the new name is on disk too
        finally:
            os.close(folder)
        self._seen = None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _check(what: str, name: str, *, empty: bool = False) -> None:
    if (not name and not empty) or len(name) > NAME_CHARS or not name.isprintable():
        msg = f"{what}: expected 1 to {NAME_CHARS} printable characters"
        raise UsageError(msg)
