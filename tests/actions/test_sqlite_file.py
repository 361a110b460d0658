"""The file itself: made, upgraded, refused, locked, copied (R-47)."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from executa_host.actions.operations import Stored
from executa_host.actions.sqlite import SqliteStore
from executa_host.actions.sqlite import store as store_module
from executa_host.actions.sqlite.migrate import (
    APPLICATION_ID,
    Migration,
    migrate,
    migrations,
    statements,
)
from executa_host.actions.store import StoreError, StoreForeign, StoreLocked, StoreTooNew
from executa_protocol.errors import UsageError
from tests.actions.samples import accept, accepted

OLD_ACTION = "act_01HF7YAT0055B9T6QEPRHAEC7Q"


def _older_file(path: Path, steps: int) -> None:
    """A file as version `steps` made it, with one action in it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db, migrations()[:steps])
        db.execute(
            "insert into actions (n, action_id, tenant, principal, subject, capability, state,"
            " events, accepted_ms, updated_ms, op) values (1, ?, 't', 'p', 'p', 'p.read',"
            " 'accepted', 1, 1, 1, 1)",
            (OLD_ACTION,),
        )
        terms = '{"mode":"async","effect":"read","user_id":"local","timeout_ms":1}'
        db.execute("insert into requests values (1, ?, '{}')", (terms,))
        db.execute("update counters set value = 1 where name in ('action', 'event')")
        db.execute(
            "insert into events (n, action, number, at_ms, type, state, attempt)"
            " values (1, 1, 1, 1, 'state', 'accepted', 1)"
        )


# --- Form. ----------------------------------------------------------------------------------------


def test_migrations_are_numbered_from_one_without_gaps() -> None:
    assert [step.number for step in migrations()] == list(range(1, len(migrations()) + 1))


async def test_a_new_file_has_the_newest_form(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "a.db"):
        pass
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        assert db.execute("pragma user_version").fetchone() == (len(migrations()),)
        assert db.execute("pragma application_id").fetchone() == (APPLICATION_ID,)
        assert db.execute("pragma journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("steps", range(1, len(migrations()) + 1))
async def test_an_older_file_is_upgraded_and_keeps_what_it_holds(
    tmp_path: Path, steps: int
) -> None:
    _older_file(tmp_path / "a.db", steps)
    async with await SqliteStore.open(tmp_path / "a.db") as store:
        found = await store.action(OLD_ACTION)
        await accepted(store)
        page = await store.events(OLD_ACTION, "", 10)

    assert isinstance(found, Stored)
    assert [event.cursor for event in page.events] == ["a1"]


async def test_a_step_that_fails_leaves_the_file_as_the_step_before_left_it(
    tmp_path: Path,
) -> None:
    bad = Migration(
        len(migrations()) + 1, "bad", "create table extra (n);\ncreate table extra (n);"
    )
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as db:
        with pytest.raises(sqlite3.OperationalError):
            migrate(db, (*migrations(), bad))
        assert db.execute("pragma user_version").fetchone() == (len(migrations()),)
        assert not db.execute("select 1 from sqlite_schema where name = 'extra'").fetchall()


def test_a_script_is_taken_apart_at_its_statements_only() -> None:
    script = "-- one; not two\ncreate table a (x text default ';');\ncreate index i\n on a (x);\n"
    assert [statement.split()[-1] for statement in statements(script)] == ["';');", "(x);"]


# --- Refusals. ------------------------------------------------------------------------------------


async def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"pragma application_id = {APPLICATION_ID}")
        db.execute("pragma user_version = 99")
    before = path.read_bytes()

    with pytest.raises(StoreTooNew, match="newer version: form 99"):
        await SqliteStore.open(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("what", ["a database", "a text"])
async def test_a_file_of_something_else_is_refused_and_left_alone(
    tmp_path: Path, what: str
) -> None:
    path = tmp_path / "a.db"
    if what == "a database":
        with closing(sqlite3.connect(path)) as db:
            db.execute("create table theirs (n)")
    else:
        path.write_text("no database at all, and long enough to be read as one\n" * 100)
    before = path.read_bytes()

    with pytest.raises(StoreForeign):
        await SqliteStore.open(path)
    assert path.read_bytes() == before


async def test_a_folder_that_is_not_there_is_an_error_and_leaves_no_lock(tmp_path: Path) -> None:
    with pytest.raises((StoreError, OSError)):
        await SqliteStore.open(tmp_path / "nowhere" / "a.db")


async def test_an_sqlite_that_is_too_old_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 31, 1))
    with pytest.raises(StoreError, match=r"too old for durable actions: 3\.37"):
        await SqliteStore.open(tmp_path / "a.db")


# --- One engine per file. -------------------------------------------------------------------------


async def test_a_second_engine_on_one_file_is_refused_clearly(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with await SqliteStore.open(path) as store:
        with pytest.raises(StoreLocked, match=rf"a\.db is in use by process {os.getpid()}"):
            await SqliteStore.open(path)
        await accepted(store)  # the first one does not notice
    async with await SqliteStore.open(path):
        pass


async def test_a_lock_ends_with_the_process_that_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    program = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from executa_host.actions.sqlite import SqliteStore\n"
        "async def main():\n"
        "    store = await SqliteStore.open(Path(sys.argv[1]))\n"
        "    print('open', flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(path), stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert await child.stdout.readline() == b"open\n"
    with pytest.raises(StoreLocked, match=f"in use by process {child.pid}"):
        await SqliteStore.open(path)
    child.send_signal(signal.SIGKILL)
    await child.communicate()
    async with await SqliteStore.open(path):
        pass


async def test_an_opening_that_fails_gives_everything_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> tuple[Migration, ...]:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(store_module, "migrations", fail)
        with pytest.raises(ZeroDivisionError):
            await SqliteStore.open(tmp_path / "a.db")
    async with await SqliteStore.open(tmp_path / "a.db"):
        pass


# --- Copies. --------------------------------------------------------------------------------------


async def test_a_backup_is_whole_while_others_write(store: SqliteStore, tmp_path: Path) -> None:
    first = [await accepted(store) for _ in range(20)]
    writing = asyncio.gather(*(store.apply(accept()) for _ in range(200)))
    await store.backup(tmp_path / "copy.db")
    await writing

    async with await SqliteStore.open(tmp_path / "copy.db") as copy:
        assert await copy.check() == []
        for each in first:
            assert isinstance(await copy.action(each.record.action_id), Stored)


async def test_a_backup_replaces_nothing(store: SqliteStore, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        await store.backup(target)
    assert target.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir() if "part" in path.name) == []
