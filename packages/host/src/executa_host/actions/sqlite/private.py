"""Files that only their owner reads: what clients submitted and got is in them."""

import contextlib
import os
from pathlib import Path


def make_private(path: Path) -> None:
    """Make an empty file with mode 0600, unless there is one; SQLite gives its log the same mode.

    What cannot be made is left for SQLite to refuse, in its own words.
    """
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
