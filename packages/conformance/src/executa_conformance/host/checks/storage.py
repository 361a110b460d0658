"""Storage and files, from the plugin to nexus and back (R-29)."""

from functools import partial
from typing import Any

from executa_conformance.host.asking import GET, open_invoke
from executa_conformance.host.book import Reply
from executa_conformance.host.scene import HostScene, need
from executa_conformance.reading import expect
from executa_conformance.registry import check
from executa_protocol.limits import KIB

host = partial(check, role="host")

KV = ("aps.kv",)
FILES = ("aps.files",)
SET: dict[str, Any] = {"key": "notes/1", "scope": "user", "value": "v"}


@host("STOR-101", level="storage")
async def under_the_token_of_the_invoke(scene: HostScene) -> None:
    asked = await open_invoke(scene, KV)
    await asked.get("storage/get", GET)
    seen = await scene.heard(asked.actor, "storage/get")
    token = asked.request.context.get("storage_token")
    expect(seen.bearer == token, "it came under another token")
    await asked.end()


@host("STOR-102", level="storage")
async def a_missing_key_is_no_error(scene: HostScene) -> None:
    asked = await open_invoke(scene, KV)
    missing = {"value": None, "exists": False, "etag": None}
    asked.actor.book.answers["storage/get"] = lambda _: Reply(missing)
    got = await asked.get("storage/get", GET)
    right = got.get("exists") is False and "value" in got and got["value"] is None
    expect(right, f"a missing key reads as {got!r}")
    await asked.end()


@host("STOR-103", level="storage")
async def values_are_kept_exactly(scene: HostScene) -> None:
    asked = await open_invoke(scene, KV)
    book = asked.actor.book
    values: list[Any] = [None, 2**63 + 1, "\u2028\U0001f600", {"a": [None, {}]}, False, 0, ""]
    for value in values:
        await asked.get("storage/set", {**SET, "value": value})
        sent = book.named("storage/set")[-1].body
        expect("value" in sent and sent["value"] == value, f"nexus was sent {sent!r:.120}")
        told = Reply({"value": value, "exists": True, "etag": "e", "generation": 1})
        book.always("storage/get", told)
        got = await asked.get("storage/get", GET)
        same = "value" in got and got["value"] == value and type(got["value"]) is type(value)
        expect(same, f"{value!r} came back as {got!r:.120}")
    await asked.end()


@host("STOR-104", level="storage")
async def set_tells_what_is_there_now(scene: HostScene) -> None:
    asked = await open_invoke(scene, KV)
    told = {"etag": "e9", "generation": 9, "size_bytes": 3}
    asked.actor.book.answers["storage/set"] = lambda _: Reply(told)
    got = await asked.get("storage/set", SET)
    expect({name: got.get(name) for name in told} == told, f"set answered {got!r}")
    await asked.end()


@host("STOR-105", level="storage")
async def an_etag_that_no_longer_holds(scene: HostScene) -> None:
    asked = await open_invoke(scene, KV)
    for method in ("storage/set", "storage/delete"):
        asked.actor.book.refuse(method, 412, -32023, "STORAGE_PRECONDITION_FAILED")
        params = {**(SET if method == "storage/set" else GET), "if_match": "old"}
        await asked.refused(method, params, -32023)
        sent = asked.actor.book.named(method)[-1].body
        expect(sent.get("if_match") == "old", f"nexus was sent if_match {sent.get('if_match')!r}")
    await asked.end()


@host("STOR-106", level="storage")
async def a_value_that_is_too_large(scene: HostScene) -> None:
    asked = await open_invoke(scene, KV)
    asked.actor.book.refuse("storage/set", 413, -32025, "STORAGE_VALUE_TOO_LARGE")
    await asked.refused("storage/set", {**SET, "value": "x" * (257 * KIB)}, -32025)
    await asked.end()


@host("STOR-107", level="storage")
async def keys_that_are_none(scene: HostScene) -> None:
    asked = await open_invoke(scene, KV)
    asked.actor.book.refuse("storage/get", 422, -32027, "STORAGE_INVALID_PATH")
    for key in ("/abs", "a//b", "a/../b", "./a", "a\\b", "a\u0000b", ""):
        await asked.refused("storage/get", {**GET, "key": key}, -32027, wrong=True)
    await asked.end()


@host("STOR-108", level="storage")
async def lists_are_pages(scene: HostScene) -> None:
    asked = await open_invoke(scene, KV)
    book = asked.actor.book
    row = {"key": "notes/1", "etag": "e1", "size_bytes": 3}
    book.answers["storage/list"] = lambda _: Reply({"items": [row], "next_cursor": "c2"})
    params = {"prefix": "notes/", "cursor": "c1", "limit": 1000, "scope": "user"}
    got = await asked.get("storage/list", params)
    expect(got.get("next_cursor") == "c2", f"next_cursor is {got.get('next_cursor')!r}")
    expect([one.get("key") for one in got.get("items", ())] == ["notes/1"], f"items: {got!r}")
    sent = book.named("storage/list")[-1].body
    right = all(sent.get(name) == params[name] for name in ("prefix", "cursor", "limit"))
    expect(right, f"nexus was sent {sent!r:.160}")
    for limit in (0, 1001):
        answer = await asked.ask("storage/list", {**params, "limit": limit}, wrong=True)
        expect("error" in answer, f"limit {limit} was served")
    await asked.end()


@host("STOR-109", level="storage")
async def scopes_reach_nexus_as_they_are(scene: HostScene) -> None:
    asked = await open_invoke(scene, KV)
    for scope in ("user", "tool"):
        await asked.get("storage/get", {**GET, "scope": scope})
        sent = asked.actor.book.named("storage/get")[-1].body
        expect(sent.get("scope") == scope, f"scope {scope} reached nexus as {sent!r:.120}")
    await asked.end()


@host("STOR-110", level="storage")
async def the_scope_app(scene: HostScene) -> None:
    need(scene, "apps", "the host attests no apps")
    asked = await open_invoke(scene, KV)
    app = {**GET, "scope": "app"}
    await asked.refused("storage/get", app, -32021, "forbidden_scope")
    await asked.end()
    told = {"app_id": "app-1", "app_slug": "planner"}
    attested = await open_invoke(scene, KV, asked.actor, app=told)
    await attested.get("storage/get", app)
    sent = asked.actor.book.named("open")[-1].body.get("app")
    expect(sent == told, f"nexus was told of the app {sent!r}")
    await attested.end()


@host("STOR-111", level="files")
async def a_file_goes_through(scene: HostScene) -> None:
    asked = await open_invoke(scene, FILES)
    begun = await asked.get(
        "files/upload_begin",
        {"path": "a.txt", "size_bytes": 5, "content_type": "text/plain", "scope": "user"},
    )
    expect(str(begun.get("put_url", "")).endswith("/put"), f"put_url is {begun.get('put_url')!r}")
    headers = begun.get("headers")
    expect(headers == {"Content-Type": "text/plain"}, f"headers are {headers!r}")
    done = await asked.get("files/upload_complete", {"path": "a.txt", "scope": "user"})
    expect(done.get("path") == "a.txt", f"upload_complete answered {done!r}")
    got = await asked.get("files/download_url", {"path": "a.txt", "scope": "user"})
    expect(str(got.get("url", "")).endswith("/get"), f"url is {got.get('url')!r}")
    await asked.end()


@host("STOR-112", level="files")
async def an_upload_that_has_not_landed(scene: HostScene) -> None:
    asked = await open_invoke(scene, FILES)
    asked.actor.book.refuse("files/upload_complete", 409, -32029, "pending_upload")
    params = {"path": "a.txt", "scope": "user"}
    await asked.refused("files/upload_complete", params, -32029)
    await asked.end()


@host("STOR-113", level="storage")
async def failures_of_nexus(scene: HostScene) -> None:
    asked = await open_invoke(scene, KV)
    book = asked.actor.book
    book.refuse("storage/set", 429, -32026, "STORAGE_RATE_LIMITED")
    await asked.refused("storage/set", SET, -32026)
    book.answers["storage/set"] = lambda _: Reply(b"oops", 500)
    await asked.refused("storage/set", SET, -32029)
    del book.answers["storage/set"]
    await asked.get("storage/set", SET)
    await asked.end()


@host("STOR-114", level="storage")
async def older_method_names(scene: HostScene) -> None:
    asked = await open_invoke(scene, KV)
    got = await asked.get("storage/kv_get", GET, wrong=True)
    expect("exists" in got, f"storage/kv_get answered {got!r}")
    await asked.end()


@host("STOR-004", level="files")
async def the_answer_to_upload_begin(scene: HostScene) -> None:
    asked = await open_invoke(scene, FILES)
    params = {"path": "a", "size_bytes": 1, "content_type": "text/plain", "scope": "user"}
    got = await asked.get("files/upload_begin", params)
    expect("put_url" in got and "headers" in got, f"it answered {sorted(got)}")
    await asked.end()


@host("STOR-005", level="files")
async def the_answer_to_download_url(scene: HostScene) -> None:
    asked = await open_invoke(scene, FILES)
    got = await asked.get("files/download_url", {"path": "a", "scope": "user"})
    expect("url" in got, f"it answered {sorted(got)}")
    await asked.end()
