"""Brings a file to the newest form, one numbered step at a time, each in a transaction.

``user_version`` counts the steps that a file has had. A file of a newer version is left
alone; a file that is not ours too (``application_id`` tells).
"""

import re
import sqlite3
from collections.abc import Sequence
from importlib import resources
from typing import Final

from msgspec import Struct

from executa_host.actions.store import StoreForeign, StoreTooNew

APPLICATION_ID: Final = 0x45584143
"""``EXAC``, at offset 68 of the file."""


class Migration(Struct, frozen=True):
    """Step `number`, from 1; `script` is SQL."""

    number: int
    name: str
    script: str


def migrations() -> tuple[Migration, ...]:
    """All steps of this version, in order."""
    found: list[Migration] = []
    for file in resources.files("executa_host.actions.sqlite").joinpath("migrations").iterdir():
        match = re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name)
        if match:
            script = file.read_text(encoding="utf-8")
            found.append(Migration(int(match[1]), match[2], script))
    return tuple(sorted(found, key=lambda step: step.number))


def migrate(db: sqlite3.Connection, steps: Sequence[Migration]) -> list[int]:
    """Apply what is missing and name it.

    Raises `StoreTooNew`, `StoreForeign`, and what a failing step raises, which leaves the
    file as the step before left it.
    """
    version = check_version(db, len(steps))
    applied: list[int] = []
    for step in steps[version:]:
        db.execute("begin immediate")
        try:
            for statement in statements(step.script):
                db.execute(statement)
            db.execute(f"pragma application_id = {APPLICATION_ID}")
            db.execute(f"pragma user_version = {step.number}")
            db.execute("commit")
        except BaseException:
            if db.in_transaction:
                db.execute("rollback")
            raise
        applied.append(step.number)
    return applied


def check_version(db: sqlite3.Connection, newest: int) -> int:
    """How many steps the file has had. Raises `StoreTooNew` and `StoreForeign`."""
    try:
        (application,) = db.execute("pragma application_id").fetchone()
        (version,) = db.execute("pragma user_version").fetchone()
        (tables,) = db.execute("select count(*) from sqlite_schema").fetchone()
    except sqlite3.DatabaseError as fault:
        msg = f"not a database of durable actions: {fault}"
        raise StoreForeign(msg) from fault
    if application != APPLICATION_ID and (tables or version or application):
        msg = "a database of something else, not of durable actions; name another file"
        raise StoreForeign(msg)
    if version > newest:
        msg = f"made by a newer version: form {version}, and this version knows {newest}"
        raise StoreTooNew(msg)
    return version


def statements(script: str) -> list[str]:
    """The statements of a script, each of which ends with its line.

    `executescript` would commit what was begun.
    """
    found: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    if pending.strip():
        found.append(pending)
    return found
