"""Stores on disk: what was kept is there again, and a broken folder is refused clearly."""

from pathlib import Path

import aiohttp
import pytest

from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.clock import ManualClock
from executa_nexus_stub.grants import Plan
from executa_protocol.errors import UsageError
from tests.nexus_stub.calls import refused_as, store, tokens


def stub_in(folder: Path, clock: ManualClock, **config: object) -> NexusStub:
    """A stub that keeps its stores in that folder."""
    return NexusStub(StubConfig(data_dir=str(folder), **config), clock=clock)  # type: ignore[arg-type]


async def test_keys_and_files_are_there_again_after_a_restart(
    tmp_path: Path, clock: ManualClock
) -> None:
    before = stub_in(tmp_path, clock)
    _, token = await tokens(before)
    kept = await store(before, token, "storage/set", key="a", value={"n": 2**60}, tags=["x"])
    await store(before, token, "storage/set", key="short", value=1, ttl_seconds=60)
    begun = await store(before, token, "files/upload_begin", path="f", size_bytes=4)
    async with (
        aiohttp.ClientSession() as web,
        web.put(begun["put_url"], data=b"data", headers=begun["headers"]),
    ):
        pass
    done = await store(before, token, "files/upload_complete", path="f")
    await store(before, token, "files/upload_begin", path="pending", size_bytes=9)
    await before.aclose()
    clock.advance(60)

    after = stub_in(tmp_path, clock)
    _, token = await tokens(after)
    link = await store(after, token, "files/download_url", path="f")
    async with aiohttp.ClientSession() as web, web.get(link["url"]) as response:
        body = await response.read()

    assert await store(after, token, "storage/get", key="a") == {
        "value": {"n": 2**60},
        "exists": True,
        "etag": kept["etag"],
        "generation": 1,
    }
    assert (await store(after, token, "storage/get", key="short"))["exists"] is False
    assert (body, link["etag"]) == (b"data", done["etag"])
    again = await store(after, token, "storage/set", key="a", value={"n": 2**60})
    assert again["etag"] != kept["etag"]
    await store(after, token, "files/delete", path="f")
    await store(after, token, "storage/delete", key="a")
    assert after.stores.quota.used("ada") == 0
    await after.aclose()
    assert list((tmp_path / "files").iterdir()) == []


async def test_a_change_is_written_within_a_second_without_a_close(
    tmp_path: Path, clock: ManualClock
) -> None:
    killed = stub_in(tmp_path, clock)
    _, token = await tokens(killed)
    await store(killed, token, "storage/set", key="a", value=1)
    clock.advance(1.0)
    await store(killed, token, "storage/set", key="b", value=2)  # lost: nobody closed it

    after = stub_in(tmp_path, clock)
    _, token = await tokens(after)

    assert (await store(after, token, "storage/get", key="a"))["value"] == 1
    assert (await store(after, token, "storage/get", key="b"))["exists"] is False
    await after.aclose()


async def test_a_smaller_plan_keeps_what_is_there_and_takes_no_more(
    tmp_path: Path, clock: ManualClock
) -> None:
    before = stub_in(tmp_path, clock)
    _, token = await tokens(before)
    await store(before, token, "storage/set", key="a", value="x" * 100)
    await before.aclose()

    after = stub_in(tmp_path, clock, plans={"": Plan(storage_bytes=50)})
    _, token = await tokens(after)

    assert (await store(after, token, "storage/get", key="a"))["exists"] is True
    with refused_as("STORAGE_QUOTA_EXCEEDED"):
        await store(after, token, "storage/set", key="b", value=1)
    await after.aclose()


async def test_a_folder_that_cannot_be_read_is_refused(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "stores.msgpack").write_bytes(b"\xc1 not a snapshot")

    with pytest.raises(UsageError, match=str(tmp_path)):
        stub_in(tmp_path, clock)
    with pytest.raises(UsageError):
        stub_in(tmp_path / "stores.msgpack", clock)
