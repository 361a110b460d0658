"""Paths that point to what is the host's own, or out of where they belong."""

import os
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from executa_host.actions.sqlite import SqliteStore
from executa_protocol.errors import PeerViolation
from tests.api.rigs import Rig as ApiRig
from tests.host.conftest import Rig
from tests.support.leaks import LeakCheck

ANSWER = '{"jsonrpc":"2.0","id":2,"result":{"success":true,"data":"stolen"}}'


async def test_a_pointer_to_the_hosts_own_files_reads_and_deletes_nothing(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file would be a valid answer, were it where a plugin's answers belong."""
    temporary, home = tmp_path / "temporary", tmp_path / "home"
    temporary.mkdir()
    home.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    own = tmp_path / "own.json"
    own.write_text(ANSWER, encoding="utf-8")
    rig.add_rude(cwd=str(home))

    for name in (str(own), f"{home}/../own.json"):
        with pytest.raises(PeerViolation, match="outside"):
            await rig.host.invoke("raw", "by_file", {"name": name, "kind": "none"}, timeout=20)

    assert own.read_text(encoding="utf-8") == ANSWER


@pytest.mark.parametrize(
    "path",
    [
        "/v1/actions/..%2F..%2Fkeys.json",
        "/v1/actions/%2e%2e/plugins",
        "/v1/actions/%2Fetc%2Fpasswd",
        "/v1/plugins/..%2Fkeys/logs",
        "/v1/actions/act_%00",
        "/../keys.json",
    ],
)
async def test_an_id_in_an_address_is_an_id_and_no_path(
    tmp_path: Path, leak_check: LeakCheck, path: str
) -> None:
    rig = ApiRig(tmp_path)
    leak_check.watch(rig.server, "server")
    async with rig.server:
        key = rig.key()
        address = URL(rig.url + path, encoded=True)
        headers = {"Authorization": f"Bearer {key}"}
        async with aiohttp.ClientSession() as http, http.get(address, headers=headers) as response:
            text = await response.text()
        await rig.close()

    assert 400 <= response.status < 500
    assert "digest" not in text
    assert str(tmp_path) not in text


async def test_what_durable_work_holds_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        async with await SqliteStore.open(tmp_path / "work.db") as store:
            await store.backup(tmp_path / "copy.db")
            made = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)

    assert {"work.db", "work.db-wal", "copy.db"} <= set(made)
    assert {name: mode for name, mode in made.items() if mode & 0o077} == {}
