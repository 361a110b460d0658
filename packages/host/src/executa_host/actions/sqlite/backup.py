"""A copy of the file at one moment, taken while others write."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from executa_host.actions.sqlite.lane import Lane
from executa_host.actions.sqlite.private import make_private
from executa_protocol.errors import UsageError


def back_up(lane: Lane, target: Path) -> None:
    """Copy to `target`, which appears whole or not at all, and is on disk afterwards.

    Runs on a reader, whose read transaction holds the moment; the writer goes on.
    """
    if target.exists():
        msg = f"{target} exists already"
        raise UsageError(msg)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    make_private(part)
    try:
        with closing(sqlite3.connect(part)) as copy:
            lane.db.backup(copy)
            copy.execute("pragma journal_mode = delete")
        _sync(part)
        os.link(part, target)  # unlike a rename it replaces nothing
        _sync(target.parent)
    except FileExistsError:
        msg = f"{target} exists already"
        raise UsageError(msg) from None
    finally:
        part.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
