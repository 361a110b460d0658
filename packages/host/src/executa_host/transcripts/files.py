"""The file of a transcript: how it is opened without losing another, and its first lines."""

import contextlib
import fcntl
import os
import stat
from pathlib import Path
from typing import Final

import msgspec

from executa_protocol.errors import UsageError
from executa_protocol.limits import KIB, MIB
from executa_protocol.transcript import FORMAT, Header

_FIRST_LINE: Final = 64 * KIB
"""Bytes in which a header ends."""


def open_transcript(path: Path, *, append: bool = False) -> int:
    """Open a file to record into, for its owner alone; the descriptor is locked.

    A transcript that was there is replaced, or continued with `append`. Raises `UsageError` if
    it cannot be written, is being recorded, or is something else than a transcript.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, 0o600)
    except OSError as fault:
        msg = f"{path} cannot be recorded to: {fault.strerror}"
        raise UsageError(msg) from None
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            _prepare(fd, path, append=append)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _prepare(fd: int, path: Path, *, append: bool) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        msg = f"{path} is being recorded by another process; name another file"
        raise UsageError(msg) from None
    size = os.fstat(fd).st_size
    if not size:
        return
    if read_header(os.pread(fd, _FIRST_LINE, 0).partition(b"\n")[0]) is None:
        msg = f"{path} exists and is no transcript; it was left alone, name another file"
        raise UsageError(msg)
    if not append:
        os.ftruncate(fd, 0)
    elif os.pread(fd, 1, size - 1) != b"\n":  # cut in the middle of a line
        os.write(fd, b"\n")


def append_transcript(fd: int, part: Path) -> None:
    """Copy another transcript behind this one, and remove it."""
    try:
        with part.open("rb") as file:
            last = b""
            while chunk := file.read(MIB):
                last = chunk[-1:]
                while chunk:
                    chunk = chunk[os.write(fd, chunk) :]
    except FileNotFoundError:  # it never began
        return
    if last not in (b"", b"\n"):
        os.write(fd, b"\n")
    part.unlink()


def read_header(line: bytes) -> Header | None:
    """The header that a line is; None for anything else."""
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        header = _HEADER.decode(line)
        if header.format == FORMAT:
            return header
    return None


_HEADER: Final = msgspec.json.Decoder(Header)
