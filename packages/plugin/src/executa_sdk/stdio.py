"""Descriptors 0 and 1, taken for the wire so that nothing else can write into it.

After `claim`, descriptor 0 reads as empty and 1 is stderr: prints, C libraries and child
processes cannot corrupt the wire. Frames are bytes, so the locale plays no part.
"""

import contextlib
import io
import os
import sys
from typing import Any, Final

from msgspec import Struct

_STDIN: Final = 0
_STDOUT: Final = 1
_STDERR: Final = 2


class Wire(Struct, frozen=True):
    """The two ends of the wire, as descriptors of their own. Children do not inherit them."""

    read_fd: int
    write_fd: int
    is_terminal: bool


def claim() -> Wire:
    """Take descriptors 0 and 1. Call it once, before anything is read.

    What sits in Python's own stdout buffer goes to stderr with everything that follows.
    A descriptor that is closed reads as empty and takes whatever is written to it.
    """
    _open_the_closed()
    is_terminal = os.isatty(_STDIN)
    read_fd, write_fd = os.dup(_STDIN), os.dup(_STDOUT)
    _make_binary(read_fd, write_fd)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, _STDIN)
    os.close(null)
    os.dup2(_STDERR, _STDOUT)
    for stream in (sys.stdout, sys.stderr):
        _make_tolerant(stream)
    return Wire(read_fd, write_fd, is_terminal)


def _open_the_closed() -> None:
    """Without this, a duplicate would take the place of a standard descriptor."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        os.set_inheritable(fd, True)
    os.close(fd)


def _make_binary(*descriptors: int) -> None:
    """Windows would turn line ends around, and end the input at Ctrl-Z."""
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - there is one on Windows only

        for fd in descriptors:
            msvcrt.setmode(fd, os.O_BINARY)


def _make_tolerant(stream: Any) -> None:
    """Let a print of any text succeed, in order, whatever the locale is."""
    if isinstance(stream, io.TextIOWrapper):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
