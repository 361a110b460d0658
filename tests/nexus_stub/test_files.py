"""Files: real uploads to and downloads from signed URLs, and what is refused on the way."""

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.clock import ManualClock
from executa_nexus_stub.grants import Plan
from executa_protocol.nexus import Nexus
from tests.nexus_stub.calls import refused_as, store, tokens

DATA = b"0123456789"


@pytest.fixture
async def web() -> AsyncIterator[aiohttp.ClientSession]:
    """What a plugin uploads and downloads with."""
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def token(nexus: Nexus) -> str:
    """A storage token."""
    return (await tokens(nexus))[1]


async def put(web: aiohttp.ClientSession, begun: dict[str, Any], data: bytes) -> int:
    """Upload as `upload_begin` said; the status."""
    async with web.put(begun["put_url"], data=data, headers=begun["headers"]) as response:
        return response.status


async def upload(
    nexus: Nexus, token: str, web: aiohttp.ClientSession, path: str, data: bytes = DATA
) -> dict[str, Any]:
    """A whole upload."""
    begun = await store(
        nexus,
        token,
        "files/upload_begin",
        path=path,
        size_bytes=len(data),
        content_type="text/plain",
    )
    assert await put(web, begun, data) == 200
    return await store(nexus, token, "files/upload_complete", path=path)


async def test_a_file_goes_up_and_comes_down_again(
    nexus: Nexus, token: str, web: aiohttp.ClientSession
) -> None:
    done = await upload(nexus, token, web, "notes/a.txt")
    link = await store(nexus, token, "files/download_url", path="notes/a.txt")

    async with web.get(link["url"]) as response:
        body = await response.read()

    assert (response.status, body, response.content_type) == (200, DATA, "text/plain")
    assert link["get_url"] == link["url"]
    assert done == {
        "path": "notes/a.txt",
        "etag": link["etag"],
        "generation": 1,
        "size_bytes": len(DATA),
    }
    (row,) = (await store(nexus, token, "files/list", prefix="notes/"))["items"]
    assert (row["path"], row["etag"]) == ("notes/a.txt", done["etag"])


async def test_an_upload_is_pending_until_its_bytes_land_and_completes_once(
    nexus: Nexus, token: str, web: aiohttp.ClientSession
) -> None:
    begun = await store(nexus, token, "files/upload_begin", path="a", size_bytes=10)

    with refused_as("STORAGE_PENDING_UPLOAD", 409):
        await store(nexus, token, "files/upload_complete", path="a")
    assert await put(web, begun, DATA) == 200
    with refused_as("STORAGE_PRECONDITION_FAILED"):
        await store(nexus, token, "files/upload_complete", path="a", etag="another")
    with refused_as("STORAGE_INVALID_REQUEST"):
        await store(nexus, token, "files/upload_complete", path="a", size_bytes=9)
    etag = hashlib.sha256(DATA).hexdigest()
    await store(nexus, token, "files/upload_complete", path="a", etag=f'"{etag}"', size_bytes=10)
    with refused_as("STORAGE_NOT_FOUND", 404):
        await store(nexus, token, "files/upload_complete", path="a")


async def test_an_upload_lasts_ten_minutes_and_then_gives_its_room_back(
    nexus: Nexus, stub: NexusStub, token: str, web: aiohttp.ClientSession, clock: ManualClock
) -> None:
    begun = await store(nexus, token, "files/upload_begin", path="a", size_bytes=10)
    assert stub.stores.quota.used("ada") == 10
    clock.advance(600)

    assert await put(web, begun, DATA) == 403
    with refused_as("STORAGE_NOT_FOUND"):
        await store(nexus, token, "files/upload_complete", path="a")
    assert stub.stores.files.pending_uploads == stub.stores.quota.used("ada") == 0


@pytest.mark.parametrize(
    "sent",
    [
        (DATA, "image/png", 403),
        (DATA[:-1], "text/plain", 413),
        (DATA + b"x", "text/plain", 413),
        (DATA * 100_000, "text/plain", 413),
    ],
)
async def test_bytes_that_are_not_as_declared_do_not_land(
    nexus: Nexus, token: str, web: aiohttp.ClientSession, sent: tuple[bytes, str, int]
) -> None:
    begun = await store(
        nexus, token, "files/upload_begin", path="a", size_bytes=10, content_type="text/plain"
    )
    data, kind, status = sent
    begun["headers"]["Content-Type"] = kind

    assert await put(web, begun, data) == status
    with refused_as("STORAGE_PENDING_UPLOAD"):
        await store(nexus, token, "files/upload_complete", path="a")


async def test_a_url_that_was_changed_or_has_expired_opens_nothing(
    nexus: Nexus, token: str, web: aiohttp.ClientSession, clock: ManualClock
) -> None:
    await upload(nexus, token, web, "a")
    link = await store(nexus, token, "files/download_url", path="a", ttl_seconds=60)
    url = link["url"]

    async def status(changed: str) -> int:
        async with web.get(changed) as response:
            return response.status

    assert await status(url) == 200
    assert await status(url.replace("expires=1", "expires=2")) == 403
    assert await status(url[:-1] + ("0" if url[-1] != "0" else "1")) == 403
    assert await status(url.partition("?")[0]) == 403
    assert await status(url.partition("&")[0] + "&signature=%00%ff") == 403
    clock.advance(60)
    assert await status(url) == 403


@pytest.mark.parametrize(
    "case",
    [
        ("bytes=0-3", 206, b"0123"),
        ("bytes=8-", 206, b"89"),
        ("bytes=-2", 206, b"89"),
        ("bytes=5-100", 206, b"56789"),
        ("bytes=-100", 206, DATA),
        ("bytes=10-", 416, b""),
        ("bytes=5-4", 416, b""),
        ("bytes=-0", 416, b""),
        ("lines=1-2", 200, DATA),
        ("bytes=0-1,3-4", 200, DATA),
        ("bytes=-", 200, DATA),
    ],
)
async def test_ranges_are_served_and_those_beyond_the_file_are_refused(
    nexus: Nexus, token: str, web: aiohttp.ClientSession, case: tuple[str, int, bytes]
) -> None:
    wanted, status, body = case
    await upload(nexus, token, web, "a")
    link = await store(nexus, token, "files/download_url", path="a")

    async with web.get(link["url"], headers={"Range": wanted}) as response:
        assert (response.status, await response.read()) == (status, body)


async def test_a_new_upload_replaces_the_file_and_ends_links_to_the_old_one(
    nexus: Nexus, stub: NexusStub, token: str, web: aiohttp.ClientSession
) -> None:
    await upload(nexus, token, web, "a")
    link = await store(nexus, token, "files/download_url", path="a")
    again = await upload(nexus, token, web, "a", b"new")

    async with web.get(link["url"]) as response:
        assert response.status == 404
    assert again["generation"] == 2
    assert stub.stores.quota.used("ada") == 3
    assert (await store(nexus, token, "files/delete", path="a"))["deleted"] is True
    assert (await store(nexus, token, "files/delete", path="a"))["deleted"] is False
    with refused_as("STORAGE_NOT_FOUND", 404):
        await store(nexus, token, "files/download_url", path="a")
    assert stub.stores.quota.used("ada") == 0


async def test_a_listing_of_files_goes_on_after_its_cursor(
    nexus: Nexus, token: str, web: aiohttp.ClientSession
) -> None:
    for name in "abc":
        await upload(nexus, token, web, f"d/{name}")
    first = await store(nexus, token, "files/list", prefix="d/", limit=2)
    await upload(nexus, token, web, "d/bb")
    second = await store(
        nexus, token, "files/list", prefix="d/", limit=2, cursor=first["next_cursor"]
    )

    assert [row["path"] for row in first["items"]] == ["d/a", "d/b"]
    assert [row["path"] for row in second["items"]] == ["d/bb", "d/c"]
    assert second["next_cursor"] is None


async def test_a_file_over_256_mib_or_over_the_quota_is_refused_before_it_is_sent(
    clock: ManualClock,
) -> None:
    stub = NexusStub(StubConfig(plans={"": Plan(storage_bytes=100)}), clock=clock)
    _, token = await tokens(stub)

    with refused_as("STORAGE_VALUE_TOO_LARGE", 413):
        await store(stub, token, "files/upload_begin", path="a", size_bytes=256 * 2**20 + 1)
    with refused_as("STORAGE_QUOTA_EXCEEDED", 429):
        await store(stub, token, "files/upload_begin", path="a", size_bytes=101)
    assert stub.stores.files.pending_uploads == 0
