"""The rules of file transport: a response that travels as a file (R-12).

Predicates over what the caller found out: the pointer, the status of the opened
file, its content. Opening, reading and deleting is the caller's business, in this
order: `check_pointer`, open with `OPEN_FLAGS`, `check_opened` on the descriptor, read
at most the cap and one byte, `check_content`, and only then delete. Every failure is
a `FileTransportFault` and fails that one call.
"""

import os
import stat
import sys
from collections.abc import Iterable
from typing import Final, Protocol

from msgspec import UNSET

from executa_protocol.envelope import Message, parse
from executa_protocol.errors import PeerViolation, StrictRefusal
from executa_protocol.limits import MAX_FILE_TRANSPORT, SPILL_THRESHOLD
from executa_protocol.readings import TOLERANT, Reader

FILE_PREFIX: Final = "executa-resp-"
FILE_SUFFIX: Final = ".json"
"""How response files are named in the field."""

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700
"""Nobody but the user reads the files, nor the directory that the host gives a plugin."""

OPEN_FLAGS: Final = 0 if sys.platform == "win32" else os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Beside reading alone, which is 0: no link is followed, and a FIFO in place of a file does not
hold the host. Windows has no such flags, and no host."""


class FileTransportFault(PeerViolation):
    """A pointer, its file or the content breaks a rule of R-12. The message says which."""


class FileStatus(Protocol):
    """What `os.fstat` tells, as far as the rules need it."""

    @property
    def st_mode(self) -> int: ...
    @property
    def st_uid(self) -> int: ...
    @property
    def st_size(self) -> int: ...


def should_spill(size: int, *, offered: bool, threshold: int = SPILL_THRESHOLD) -> bool:
    """Whether a response of `size` bytes goes by file: above the threshold, if it was offered."""
    return offered and size > threshold


def check_pointer(message: Message) -> str:
    """The path that a pointer frame names. Raises `FileTransportFault`."""
    path = message.pointer
    if path is UNSET:
        raise FileTransportFault("the frame has no file pointer")
    if message.method is not UNSET or message.result is not UNSET or message.error is not UNSET:
        raise FileTransportFault("a file pointer stands beside a method, a result or an error")
    if not path.startswith("/"):
        raise FileTransportFault("the file pointer is not an absolute path")
    if "\0" in path:
        raise FileTransportFault("the file pointer holds NUL")
    return path


def check_opened(
    status: FileStatus,
    real_path: str,
    allowed: Iterable[str],
    uid: int,
    cap: int = MAX_FILE_TRANSPORT,
) -> None:
    """Check the *opened* file, so that no other can take its place afterwards.

    `real_path` and the directories of `allowed` have no links left in them; `uid` is
    the host's own. Raises `FileTransportFault`.
    """
    if not stat.S_ISREG(status.st_mode):
        raise FileTransportFault("the file pointer leads to something that is no regular file")
    if status.st_uid != uid:
        raise FileTransportFault("the response file belongs to another user")
    if not any(_is_inside(real_path, directory) for directory in allowed):
        raise FileTransportFault("the response file is outside the directories it may be in")
    check_size(status.st_size, cap)


def check_size(size: int, cap: int = MAX_FILE_TRANSPORT) -> None:
    """Check the size that was stated, and again what was read. Raises `FileTransportFault`."""
    if size > cap:
        msg = f"the response file has {size:,} bytes or more and the cap is {cap:,}"
        raise FileTransportFault(msg)


def check_content(content: bytes, expected: object, reader: Reader = TOLERANT) -> Message:
    """Read the response in the file: to the same id, and no pointer again.

    `expected` is the id of the pointer's frame. Raises `FileTransportFault`.
    """
    try:
        message = parse(content, reader)
        if not isinstance(message, Message):
            reason = "it is empty" if message is None else message.reason
            raise FileTransportFault(f"the response file is no response: {reason}")
        if message.method is not UNSET:
            raise FileTransportFault("the response file holds a request")
        if message.pointer is not UNSET or message.old_pointer is not UNSET:
            raise FileTransportFault("the response file holds a file pointer again")
        if not _same_id(message.id, expected, reader):
            raise FileTransportFault("the response file answers another id than its pointer")
    except StrictRefusal as refusal:
        raise FileTransportFault(str(refusal)) from None
    return message


def _is_inside(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip("/") + "/") and directory.startswith("/")


def _same_id(found: object, expected: object, reader: Reader) -> bool:
    """R-13: the value decides; a wrong JSON type is tolerated, but never ``true`` for 1."""
    if type(found) is type(expected):
        return found == expected
    if isinstance(found, bool) or isinstance(expected, bool) or found is None or expected is None:
        return False
    as_text = {_plain(found), _plain(expected)}
    if len(as_text) > 1:
        return False
    reader.tolerate("WIRE-007", f"the file's answer to id {expected!r} came as {found!r}")
    return True


def _plain(identity: object) -> str:
    if isinstance(identity, float) and identity.is_integer():
        return str(int(identity))
    return str(identity)
