"""`executa keys`: a key is shown once, alone, and what cannot be is a sentence."""

import re
from pathlib import Path

import pytest

from executa_host.actions.requests import Scope
from executa_host.keys import KeyFile, keys_beside
from tests.api.shell import Shell


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.setenv("COLUMNS", "200")
    return Shell(capfd)


def test_a_key_is_created_listed_and_revoked(shell: Shell, tmp_path: Path) -> None:
    store = tmp_path / "actions.db"
    at = ("--store", str(store))
    words = ("keys", "create", "ada", "--scope", "actions:read,sessions", "--label", "laptop", *at)
    assert shell.run(*words, "--days", "2") == 0
    (key,) = shell.out.splitlines()  # alone, so that it can be sent into a file
    assert re.fullmatch(r"exk_[0-9a-f]{12}_[\w-]{43}", key)
    assert "once" in shell.said
    assert key not in shell.err
    keys = KeyFile(keys_beside(store))
    found = keys.find(key)
    assert found
    assert set(found.scopes) == {Scope.READ, Scope.SESSIONS}
    assert shell.run("keys", "list", *at) == 0
    assert "laptop" in shell.out
    assert "until" in shell.out
    assert key not in shell.out
    assert found.digest not in shell.out
    assert shell.run("keys", "revoke", found.key_id, *at) == 0
    assert keys.find(key) is None
    (listed,) = shell.json("keys", "list", *at)["keys"]
    assert listed["revoked_at_ms"] > 0
    assert "digest" not in listed
    assert shell.run("keys", "list", *at) == 0
    assert "revoked" in shell.out


def test_keys_for_programs(shell: Shell, tmp_path: Path) -> None:
    at = ("--store", str(tmp_path / "actions.db"))
    made = shell.json("keys", "create", "ada", *at)
    assert made["key"].startswith("exk_")
    assert made["key_id"] in made["key"]
    assert shell.json("keys", "revoke", made["key_id"], *at)["revoked_at_ms"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("create", "ada", "--scope", "action:red"), "did you mean actions:read?"),
        (("create", ""), "principal"),
        (("create", "a\nb"), "principal"),
        (("create", "ada", "--days", "-1"), "more than 0"),
        (("revoke", "nobody"), "no key has the id"),
    ],
)
def test_keys_that_cannot_be(
    shell: Shell, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    assert shell.run("keys", *words, "--store", str(tmp_path / "actions.db")) == 2
    assert told in shell.said


def test_a_key_file_that_is_open_to_others_is_refused(shell: Shell, tmp_path: Path) -> None:
    store = tmp_path / "actions.db"
    shell.json("keys", "create", "ada", "--store", str(store))
    keys_beside(store).chmod(0o644)
    assert shell.run("keys", "list", "--store", str(store)) == 2
    assert "chmod 600" in shell.said


def test_the_store_of_this_user_is_found(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EXECUTA_STORE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert shell.run("keys", "create", "ada") == 0
    assert (tmp_path / "state/executa/actions.db.keys.json").exists()
    monkeypatch.setenv("EXECUTA_STORE", str(tmp_path / "mine.db"))
    assert shell.run("keys", "list") == 0
    assert "no keys" in shell.out


def test_keys_are_those_of_the_host_that_is_configured_here(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EXECUTA_STORE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    for text, where in (
        ('[actions]\nstore = "work/a.db"\n', "work/a.db"),
        ("[actions]\n", "state/executa/actions.db"),
        ("actions = 1\n", "state/executa/actions.db"),
        ("nonsense", "state/executa/actions.db"),
    ):
        (tmp_path / "host.toml").write_text(text)
        assert shell.run("keys", "create", where) == 0
        assert where in {key.principal for key in KeyFile(keys_beside(tmp_path / where)).list()}
    monkeypatch.setenv("EXECUTA_STORE", str(tmp_path / "b.db"))
    assert shell.run("keys", "create", "ada") == 0
    assert KeyFile(keys_beside(tmp_path / "b.db")).list()
