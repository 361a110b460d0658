"""Storage and files at nexus (R-29)."""

from functools import partial
from typing import Any

from executa_conformance.nexus.scene import NexusScene
from executa_conformance.reading import expect, items, members
from executa_conformance.registry import check
from executa_protocol.limits import KIB

nexus = partial(check, role="nexus", level="storage")


def at(key: str, **more: Any) -> dict[str, Any]:
    """Params of a call about a key."""
    return {"key": key, "scope": "user", **more}


@nexus("NEXS-019")
async def scopes_come_from_the_token(scene: NexusScene) -> None:
    token = (await scene.open()).token("storage")
    answer = await scene.stored("get", token, {"key": "k", "scope": "app"})
    expect(answer.status in (401, 403), f"the scope app was answered with {answer}")
    symbol = answer.error.get("errorCode")
    expect(symbol == "forbidden_scope", f"errorCode is {symbol!r}")


@nexus("NEXS-021")
async def a_missing_key(scene: NexusScene) -> None:
    token = (await scene.open()).token("storage")
    answer = await scene.stored("get", token, at("nothing/here"))
    expect(answer.status == 200, f"a missing key was answered with {answer}")
    got = answer.members
    missing = "value" in got and got["value"] is None and got.get("exists") is False
    expect(missing, f"a missing key reads as {got!r}")


@nexus("NEXS-022")
async def conditions_and_sizes(scene: NexusScene) -> None:
    token = (await scene.open()).token("storage")
    answer = await scene.stored("set", token, at("etag", value=1))
    expect(answer.status == 200, f"a set was answered with {answer}")
    first = answer.members.get("etag")
    answer = await scene.stored("set", token, at("etag", value=2, if_match=first))
    expect(answer.status == 200, f"a set under its etag was answered with {answer}")
    answer = await scene.stored("set", token, at("etag", value=3, if_match=first))
    expect(answer.status == 412, f"a set under an old etag was answered with {answer}")
    answer = await scene.stored("set", token, at("big", value="x" * (257 * KIB)))
    expect(answer.status == 413, f"257 KiB were answered with {answer.status}")


@nexus("NEXS-023")
async def lists_are_pages(scene: NexusScene) -> None:
    token = (await scene.open()).token("storage")
    wanted = [f"list/{number}" for number in range(5)]
    for key in wanted:
        await scene.stored("set", token, at(key, value=1))
    found: list[Any] = []
    cursor: Any = None
    for _ in range(10):
        more = {} if cursor is None else {"cursor": cursor}
        answer = await scene.stored(
            "list", token, {"prefix": "list/", "scope": "user", "limit": 2, **more}
        )
        expect(answer.status == 200, f"a page was answered with {answer}")
        page = [members(one) for one in items(answer.members.get("items"))]
        expect(len(page) <= 2, f"a page of 2 has {len(page)}")
        expect(not any("value" in one for one in page), "a list tells values")
        found += [one.get("key") for one in page]
        cursor = answer.members.get("next_cursor")
        if cursor is None:
            break
    expect(sorted(found) == wanted, f"the pages gave {found}")


@nexus("NEXS-024", patience=2)
async def a_file_there_and_back(scene: NexusScene) -> None:
    token = (await scene.open()).token("storage")
    content = bytes(range(256)) * 8
    params: dict[str, Any] = {"path": "kit/a.bin", "scope": "user"}
    begun = await scene.stored(
        "files/upload_begin",
        token,
        {**params, "size_bytes": len(content), "content_type": "application/octet-stream"},
    )
    expect(begun.status == 200, f"upload_begin was answered with {begun}")
    url = str(begun.members.get("put_url", ""))
    headers = {name: str(value) for name, value in members(begun.members.get("headers")).items()}
    early = await scene.stored("files/upload_complete", token, params)
    expect(early.status >= 400, "an upload was complete before its bytes had landed")
    headers = {"Content-Type": "application/octet-stream", **headers}
    put = await scene.client.ask("PUT", url, raw=content, headers=headers)
    expect(put.status in (200, 201, 204), f"the PUT was answered with {put.status}")
    done = await scene.stored("files/upload_complete", token, params)
    expect(done.status == 200, f"upload_complete was answered with {done}")
    asked = await scene.stored("files/download_url", token, params)
    expect(asked.status == 200, f"download_url was answered with {asked}")
    got = await scene.client.ask("GET", str(asked.members.get("url", "")))
    expect(got.raw == content, f"of {len(content)} bytes came back {len(got.raw)}, or others")


@nexus("NEXS-030")
async def values_are_kept_exactly(scene: NexusScene) -> None:
    token = (await scene.open()).token("storage")
    values: list[Any] = [None, 2**63 + 1, "\u2028\U0001f600", {"a": [None, {}]}, False, 0, ""]
    for value in values:
        await scene.stored("set", token, at("exact", value=value))
        got = (await scene.stored("get", token, at("exact"))).members
        same = "value" in got and got["value"] == value and type(got["value"]) is type(value)
        expect(same, f"{value!r} came back as {got.get('value')!r:.100}")
        expect(got.get("exists") is True, f"after a set, exists is {got.get('exists')!r}")
