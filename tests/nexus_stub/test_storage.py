"""Key-value storage behind its token: scopes, conditions, limits and bad input (R-29)."""

import base64
from typing import Any

import pytest

from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.clock import ManualClock
from executa_nexus_stub.grants import Plan, PluginGrant
from executa_protocol import codec
from executa_protocol.nexus import AppContext, Caps, Nexus
from tests.nexus_stub.calls import opening, refused_as, store, tokens


async def token_of(nexus: Nexus, **options: Any) -> str:
    """The storage token of a new invoke."""
    return (await tokens(nexus, **options))[1]


async def test_a_value_comes_back_as_it_was_stored(nexus: Nexus) -> None:
    token = await token_of(nexus)
    value = {"big": 2**70, "text": "\u00fc\u2028", "null": None, "list": [1.5, True]}

    stored = await store(nexus, token, "storage/set", key="a/b", value=value)
    read = await store(nexus, token, "storage/get", key="a/b")

    assert read == {"value": value, "exists": True, "etag": stored["etag"], "generation": 1}
    assert stored["size_bytes"] == len(codec.encode(value))


async def test_null_is_a_value_and_a_miss_is_not(nexus: Nexus) -> None:
    token = await token_of(nexus)
    await store(nexus, token, "storage/set", key="a", value=None)

    assert (await store(nexus, token, "storage/get", key="a"))["exists"] is True
    assert await store(nexus, token, "storage/get", key="b") == {
        "value": None,
        "exists": False,
        "etag": None,
    }


async def test_each_scope_has_keys_of_its_own_and_the_user_scope_is_shared(nexus: Nexus) -> None:
    app = AppContext("app-1", "planner")
    brief = await token_of(nexus, app=app)
    notebook = await token_of(nexus, plugin="notebook", app=app)
    elsewhere = await token_of(nexus, app=AppContext("app-2", "planner"))
    for scope in ("user", "tool", "app"):
        await store(nexus, brief, "storage/set", key="k", value=scope, scope=scope)

    async def seen(token: str, scope: str) -> Any:
        return (await store(nexus, token, "storage/get", key="k", scope=scope))["value"]

    assert [await seen(brief, scope) for scope in ("user", "tool", "app")] == [
        "user",
        "tool",
        "app",
    ]
    assert await seen(notebook, "user") == "user"
    assert await seen(notebook, "tool") is None
    assert await seen(notebook, "app") == "app"
    assert await seen(elsewhere, "app") is None


@pytest.mark.parametrize("scope", ["app", "admin", "", "USER"])
async def test_a_scope_that_the_token_does_not_open_is_forbidden(nexus: Nexus, scope: str) -> None:
    token = await token_of(nexus)

    with refused_as("STORAGE_FORBIDDEN_SCOPE", 403):
        await store(nexus, token, "storage/get", key="k", scope=scope)


async def test_an_absent_scope_reads_as_tool(nexus: Nexus) -> None:
    token = await token_of(nexus)
    await nexus.storage(token, "storage/set", b'{"key":"k","value":1}')

    assert (await store(nexus, token, "storage/get", key="k", scope="tool"))["value"] == 1


async def test_storage_and_files_need_their_own_declaration_and_grant(
    nexus: Nexus, stub: NexusStub
) -> None:
    only_kv = await nexus.open_invoke(opening(("aps.kv",)))
    only_files = await nexus.open_invoke(opening(("aps.files",)))
    assert only_kv.storage_token is not None
    assert only_files.storage_token is not None

    with refused_as("STORAGE_NOT_GRANTED", match=r"aps\.files"):
        await store(nexus, only_kv.storage_token.value, "files/list")
    with refused_as("STORAGE_NOT_GRANTED", match=r"aps\.kv"):
        await store(nexus, only_files.storage_token.value, "storage/list")
    stub.directory.change("ada", "brief", files=False)
    with refused_as("STORAGE_NOT_GRANTED", match="user"):
        await store(nexus, only_files.storage_token.value, "files/list")


async def test_a_conditional_set_fails_once_somebody_else_has_written(nexus: Nexus) -> None:
    token = await token_of(nexus)
    first = await store(nexus, token, "storage/set", key="k", value=1)
    second = await store(nexus, token, "storage/set", key="k", value=2, if_match=first["etag"])

    with refused_as("STORAGE_PRECONDITION_FAILED", 412):
        await store(nexus, token, "storage/set", key="k", value=3, if_match=first["etag"])
    with refused_as("STORAGE_PRECONDITION_FAILED", 412):
        await store(nexus, token, "storage/delete", key="k", if_match=first["etag"])
    assert second["generation"] == 2
    assert (await store(nexus, token, "storage/get", key="k"))["value"] == 2


async def test_the_same_value_again_has_another_etag(nexus: Nexus) -> None:
    token = await token_of(nexus)
    first = await store(nexus, token, "storage/set", key="k", value=1)
    await store(nexus, token, "storage/set", key="k", value=2)
    third = await store(nexus, token, "storage/set", key="k", value=1)
    await store(nexus, token, "storage/delete", key="k")
    again = await store(nexus, token, "storage/set", key="k", value=1)

    assert len({first["etag"], third["etag"], again["etag"]}) == 3


async def test_a_star_asks_only_that_the_key_exists(nexus: Nexus) -> None:
    token = await token_of(nexus)

    with refused_as("STORAGE_PRECONDITION_FAILED"):
        await store(nexus, token, "storage/set", key="k", value=1, if_match="*")
    await store(nexus, token, "storage/set", key="k", value=1)
    await store(nexus, token, "storage/set", key="k", value=2, if_match="*")


async def test_a_later_set_replaces_the_time_to_live(nexus: Nexus, clock: ManualClock) -> None:
    token = await token_of(nexus)
    await store(nexus, token, "storage/set", key="short", value=1, ttl_seconds=10)
    await store(nexus, token, "storage/set", key="kept", value=1, ttl_seconds=10)
    await store(nexus, token, "storage/set", key="kept", value=2)
    clock.advance(10)

    assert (await store(nexus, token, "storage/get", key="short"))["exists"] is False
    assert (await store(nexus, token, "storage/get", key="kept"))["value"] == 2
    listed = await store(nexus, token, "storage/list")
    assert [row["key"] for row in listed["items"]] == ["kept"]


async def test_a_listing_tells_everything_but_the_value(nexus: Nexus) -> None:
    token = await token_of(nexus)
    more = {"tags": ["x", "y"], "metadata": {"a": 1}}
    stored = await store(nexus, token, "storage/set", key="k", value="secret", **more)

    (row,) = (await store(nexus, token, "storage/list"))["items"]

    assert row == {
        "key": "k",
        "etag": stored["etag"],
        "size_bytes": 8,
        "updated_at": "2023-11-14T22:13:20Z",
        **more,
    }


async def test_ten_thousand_keys_are_listed_page_by_page(clock: ManualClock) -> None:
    plenty = PluginGrant(caps=Caps(storage_calls=20_000))
    stub = NexusStub(StubConfig(grant=plenty), clock=clock)
    token = await token_of(stub)
    for number in range(10_000):
        await stub.storage(token, "storage/set", b'{"key":"p/%d","value":1}' % number)

    seen: list[str] = []
    cursor: str | None = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        page = await store(stub, token, "storage/list", prefix="p/", limit=1000, **more)
        seen += [row["key"] for row in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert seen == sorted(f"p/{number}" for number in range(10_000))


@pytest.mark.parametrize(
    "cursor",
    ["x", "!", "\u00e9", "", base64.urlsafe_b64encode(b"k" * 20).decode(), "A" * 5000],
)
async def test_a_cursor_that_is_not_this_listings_is_refused(nexus: Nexus, cursor: str) -> None:
    token = await token_of(nexus)
    if not cursor:  # an empty one is the beginning
        assert (await store(nexus, token, "storage/list", cursor=cursor))["items"] == []
        return
    with refused_as("STORAGE_INVALID_REQUEST", 422, match="cursor"):
        await store(nexus, token, "storage/list", cursor=cursor)


async def test_a_cursor_of_another_prefix_or_scope_is_refused(nexus: Nexus) -> None:
    token = await token_of(nexus)
    for key in ("a/1", "a/2"):
        await store(nexus, token, "storage/set", key=key, value=1)
    cursor = (await store(nexus, token, "storage/list", prefix="a/", limit=1))["next_cursor"]

    for other in ({"prefix": "b/"}, {"prefix": "a/", "scope": "user"}):
        with refused_as("STORAGE_INVALID_REQUEST", match="cursor"):
            await store(nexus, token, "storage/list", cursor=cursor, **other)


@pytest.mark.parametrize(
    "key", ["../a", "a/../b", "/a", "a//b", "a\u0000", "a\u202eb", "k" * 1025, "", " a", "a\\b"]
)
async def test_a_bad_key_is_refused_everywhere(nexus: Nexus, key: str) -> None:
    token = await token_of(nexus)

    for method, more in (("get", {}), ("set", {"value": 1}), ("delete", {})):
        with refused_as("STORAGE_INVALID_PATH", 422):
            await store(nexus, token, f"storage/{method}", key=key, **more)


async def test_a_key_of_1024_characters_is_stored(nexus: Nexus) -> None:
    token = await token_of(nexus)
    key = "/".join(["s" * 127] * 8)
    assert len(key) == 1023

    await store(nexus, token, "storage/set", key=key + "s", value=1)

    assert (await store(nexus, token, "storage/get", key=key + "s"))["exists"] is True


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("storage/get", b"{}"),
        ("storage/get", b"[]"),
        ("storage/get", b"nonsense"),
        ("storage/get", b'{"key":1}'),
        ("storage/get", b'{"key":"\xff"}'),
        ("storage/set", b'{"key":"a"}'),
        ("storage/set", b'{"key":"a","value":1,"ttl_seconds":0}'),
        ("storage/set", b'{"key":"a","value":1,"ttl_seconds":31536001}'),
        ("storage/set", b'{"key":"a","value":1,"tags":"x"}'),
        ("storage/set", b'{"key":"a","value":NaN}'),
        ("storage/set", b'{"key":"a","value":' + b"[" * 200 + b"]" * 200 + b"}"),
        ("storage/list", b'{"limit":0}'),
        ("storage/list", b'{"limit":1001}'),
        ("storage/list", b'{"limit":"all"}'),
    ],
)
async def test_bad_params_are_refused_and_nothing_is_stored(
    stub: NexusStub, method: str, params: bytes
) -> None:
    token = await token_of(stub)

    with refused_as("STORAGE_INVALID_REQUEST", 422):
        await stub.storage(token, method, params)
    assert stub.stores.kv.buckets == {}


async def test_a_value_may_have_256_kib_and_not_a_byte_more(nexus: Nexus) -> None:
    token = await token_of(nexus)
    await store(nexus, token, "storage/set", key="k", value="x" * (256 * 1024 - 2))

    with refused_as("STORAGE_VALUE_TOO_LARGE", 413):
        await store(nexus, token, "storage/set", key="k", value="x" * (256 * 1024 - 1))
    with refused_as("STORAGE_INVALID_REQUEST", match="metadata"):
        await store(nexus, token, "storage/set", key="k", value=1, metadata={"x": "y" * 20_000})


async def test_the_quota_counts_what_is_stored_now(clock: ManualClock) -> None:
    stub = NexusStub(StubConfig(plans={"": Plan(storage_bytes=1000)}), clock=clock)
    token = await token_of(stub)
    await store(stub, token, "storage/set", key="a", value="x" * 600, ttl_seconds=60)

    with refused_as("STORAGE_QUOTA_EXCEEDED", 429):
        await store(stub, token, "storage/set", key="b", value="x" * 600)
    await store(stub, token, "storage/set", key="a", value="x" * 900, ttl_seconds=60)
    clock.advance(60)
    await store(stub, token, "storage/set", key="b", value="x" * 900)
    await store(stub, token, "storage/delete", key="b")
    assert stub.stores.quota.used("ada") == 0


async def test_storage_calls_of_one_invoke_are_bounded(clock: ManualClock) -> None:
    few = PluginGrant(caps=Caps(storage_calls=2))
    stub = NexusStub(StubConfig(grant=few), clock=clock)
    token = await token_of(stub)
    for _ in range(2):
        await store(stub, token, "storage/get", key="a")

    with refused_as("STORAGE_RATE_LIMITED", 429):
        await store(stub, token, "storage/get", key="a")
    await store(stub, await token_of(stub), "storage/get", key="a")


async def test_a_method_that_is_not_served_is_named_so(stub: NexusStub) -> None:
    token = await token_of(stub)

    with refused_as("UNMAPPED_METHOD", 404):
        await store(stub, token, "storage/quota_status")
