"""`executa store`: a file is checked and copied while its host works on it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.api.served import Served
from tests.api.shell import Shell


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.setenv("COLUMNS", "200")
    return Shell(capfd)


def test_a_file_is_checked_and_copied_beside_its_host(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Served(tmp_path) as served:
        for name, value in served.environment().items():
            monkeypatch.setenv(name, value)
        told = shell.json("actions", "submit", "raw.echo", "--mode", "sync")
        at = ("--store", str(served.store))
        assert shell.json("store", "check", *at)["findings"] == []
        copy = tmp_path / "copy.db"
        made = shell.json("store", "backup", str(copy), *at)
        assert made["bytes"] == copy.stat().st_size
        assert shell.run("actions", "show", told["action"]["action_id"]) == 0
    assert shell.run("store", "check", "--store", str(copy)) == 0
    with closing(sqlite3.connect(copy)) as db:
        (kept,) = db.execute("select action_id from actions").fetchone()
    assert kept == told["action"]["action_id"]
    assert shell.run("store", "backup", str(copy), *at) == 2
    assert "exists already" in shell.said
    with closing(sqlite3.connect(copy, isolation_level=None)) as db:
        db.execute("update actions set chunks = 99")
    findings = shell.json("store", "check", "--store", str(copy), code=1)["findings"]
    assert any("99 chunks" in finding for finding in findings)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "there is no store"),
        (b"", "there is no store"),
        (b"no database at all, " * 100, "not a database of durable actions"),
    ],
)
def test_what_is_no_store_is_a_sentence(
    shell: Shell, tmp_path: Path, content: bytes | None, told: str
) -> None:
    path = tmp_path / "a.db"
    if content is not None:
        path.write_bytes(content)
    assert shell.run("store", "check", "--store", str(path)) == 2
    assert told in shell.said
    assert str(path) in shell.said
    assert shell.run("store", "backup", str(tmp_path / "b.db"), "--store", str(path)) == 2
    assert not (tmp_path / "b.db").exists()
    assert path.exists() == (content is not None)


def test_an_older_file_is_left_for_a_host_to_bring_up(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("pragma application_id = 1163411779")
        db.execute("pragma user_version = 1")
    assert shell.run("store", "check", "--store", str(path)) == 2
    assert "older form 1" in shell.said
