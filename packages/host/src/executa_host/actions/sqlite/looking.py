"""A file of durable work as others look at it: beside the engine that has it, or without one.

Owns opening a file to read it alone. It takes no lock, brings no file to a newer form, and so
can check and copy what a running host writes.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from executa_host.actions.sqlite import lane
from executa_host.actions.sqlite.backup import back_up
from executa_host.actions.sqlite.checks import check
from executa_host.actions.sqlite.migrate import migrations
from executa_host.actions.store import StoreError

T = TypeVar("T")


async def check_file(path: Path) -> list[str]:
    """Every promise that a file does not keep; see `Store.check`. Raises `StoreError`."""
    return await _look(path, check)


async def back_up_file(path: Path, target: Path) -> None:
    """Copy a file as it is at one moment to `target`, which appears whole or not at all.

    Raises `StoreError`, and `UsageError` for a target that exists.
    """
    await _look(path, lambda reader: back_up(reader, target))


async def _look(path: Path, work: Callable[[lane.Lane], T]) -> T:
    newest = len(migrations())
    form = await lane.inspect(path, newest)
    if not form:
        msg = f"there is no store {path}"
        raise StoreError(msg)
    if form < newest:
        msg = f"{path} has the older form {form}; a host that opens it brings it to {newest}"
        raise StoreError(msg)
    reader = await lane.reader(path)
    try:
        return await reader.run(work, reader)
    finally:
        await reader.close()
