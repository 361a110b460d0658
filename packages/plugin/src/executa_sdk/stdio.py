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
    Raises OSError if 0 or 1 is closed.
    """
    is_terminal = os.isatty(_STDIN)
    read_fd, write_fd = os.dup(_STDIN), os.dup(_STDOUT)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, _STDIN)
    try:
        os.dup2(_STDERR, _STDOUT)
    except OSError:  # stderr is closed
        os.dup2(null, _STDOUT)
    os.close(null)
    for stream in (sys.stdout, sys.stderr):
        _make_tolerant(stream)
    return Wire(read_fd, write_fd, is_terminal)


def _make_tolerant(stream: Any) -> None:
    """Let a print of any text succeed, in order, whatever the locale is."""
    if isinstance(stream, io.TextIOWrapper):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
