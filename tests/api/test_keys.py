"""The key file: what it holds, who may touch it, and what happens while others change it."""

import hashlib
import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from executa_host.actions.requests import OWN_WORK, Scope
from executa_host.keys import PREFIX, KeyFile, KeysUnreadable, keys_beside
from executa_protocol.errors import UsageError


class Clock:
    """Epoch seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def keys(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "state" / "store.db.keys.json")


def test_a_key_speaks_for_its_principal(keys: KeyFile) -> None:
    made = keys.create("ada", tenant="acme", user_id="u1", scopes={Scope.READ}, label="laptop")
    found = keys.find(made.text)
    assert found == made.key
    caller = made.key.caller
    assert (caller.principal, caller.tenant, caller.user_id) == ("ada", "acme", "u1")
    assert caller.scopes == {Scope.READ}
    assert keys.create("bob").key.caller.scopes == OWN_WORK


def test_the_file_holds_digests_and_no_key(keys: KeyFile) -> None:
    made = keys.create("ada")
    text = keys.path.read_text()
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600
    assert made.text.startswith(PREFIX)
    assert made.text[-43:] not in text
    assert hashlib.sha256(made.text.encode()).hexdigest() in text
    assert made.text not in repr(made) + repr(made.key) + repr(keys.list())
    assert made.key.digest not in repr(made.key)


def test_every_key_is_another_one(keys: KeyFile) -> None:
    texts = {keys.create("ada").text for _ in range(50)}
    assert len(texts) == 50
    assert len({text[-43:] for text in texts}) == 50
    assert len(keys.list()) == 50


def test_a_revoked_key_is_refused_also_by_whoever_had_read_the_file(keys: KeyFile) -> None:
    made = keys.create("ada")
    other = KeyFile(keys.path)
    assert other.find(made.text)
    revoked = keys.revoke(made.key.key_id)
    assert revoked.revoked_at_ms
    assert keys.revoke(made.key.key_id) == revoked
    assert other.find(made.text) is None
    assert not other.still(made.key)
    assert [key.key_id for key in keys.list()] == [made.key.key_id]


def test_a_key_expires(tmp_path: Path) -> None:
    clock = Clock()
    keys = KeyFile(tmp_path / "keys.json", clock=clock)
    made = keys.create("ada", expires_in=60)
    clock.now += 59
    assert keys.find(made.text)
    assert keys.still(made.key)
    clock.now += 1
    assert keys.find(made.text) is None
    assert not keys.still(made.key)


@pytest.mark.parametrize(
    "text", ["", "exk_", "x" * 60, "exk_" + "é" * 56, "exk_\ud800", "x" * 10**6]
)
def test_what_is_no_key_finds_nobody(keys: KeyFile, text: str) -> None:
    keys.create("ada")
    assert keys.find(text) is None


def test_the_id_of_a_key_is_not_the_key(keys: KeyFile) -> None:
    one, two = keys.create("ada"), keys.create("bob")
    mixed = one.text[:17] + two.text[17:]
    assert keys.find(mixed) is None
    assert keys.find(one.key.key_id) is None
    assert keys.find(one.key.digest) is None


def test_without_a_file_there_are_no_keys(keys: KeyFile) -> None:
    assert keys.list() == ()
    assert keys.find("exk_" + "0" * 12 + "_" + "A" * 43) is None
    with pytest.raises(UsageError, match="no key has the id"):
        keys.revoke("nobody")


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31m", "x" * 129])
def test_names_are_short_and_printable(keys: KeyFile, name: str) -> None:
    with pytest.raises(UsageError, match="expected 1 to 128 printable"):
        keys.create(name)
    with pytest.raises(UsageError, match="tenant"):
        keys.create("ada", tenant=name)
    assert not keys.path.exists()


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"version": 1}', '{"version": 1, "keys": [{"key_id": 7}]}', "\x00"],
)
def test_a_file_that_is_none_is_not_overwritten(keys: KeyFile, content: str) -> None:
    made = keys.create("ada")
    keys.path.write_text(content)
    keys.path.chmod(0o600)
    with pytest.raises(KeysUnreadable, match="no file of API keys"):
        keys.find(made.text)
    with pytest.raises(KeysUnreadable):
        keys.create("bob")
    assert keys.path.read_text() == content


def test_a_newer_file_is_refused(keys: KeyFile) -> None:
    keys.create("ada")
    told = json.loads(keys.path.read_text())
    keys.path.write_text(json.dumps(told | {"version": 2}))
    with pytest.raises(KeysUnreadable, match="newer"):
        keys.list()


@pytest.mark.parametrize("mode", [0o620, 0o604, 0o666])
def test_a_file_that_others_may_touch_is_refused(keys: KeyFile, mode: int) -> None:
    made = keys.create("ada")
    keys.path.chmod(mode)
    with pytest.raises(KeysUnreadable, match="chmod 600"):
        KeyFile(keys.path).find(made.text)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    keys: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = keys.create("ada")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        keys.create("bob")
    assert keys.find(made.text)
    assert [each.name for each in keys.path.parent.iterdir() if "new" in each.name] == []


def test_two_processes_that_create_at_once_lose_no_key(keys: KeyFile) -> None:
    script = (
        "import sys; from executa_host.keys import KeyFile; keys = KeyFile(sys.argv[1]);"
        "[keys.create('ada') for _ in range(20)]"
    )
    command = [sys.executable, "-c", script, str(keys.path)]
    workers = [subprocess.Popen(command) for _ in range(2)]
    for worker in workers:
        assert worker.wait(60) == 0
    assert len(keys.list()) == 40


def test_the_file_stands_beside_its_store() -> None:
    assert keys_beside("/var/lib/executa/actions.db") == Path(
        "/var/lib/executa/actions.db.keys.json"
    )
