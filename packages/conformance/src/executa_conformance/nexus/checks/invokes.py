"""Invokes at nexus: tokens, grants and credentials (R-39)."""

import base64
import time
from functools import partial
from typing import Any

import msgspec

from executa_conformance.model import NotMet
from executa_conformance.nexus.scene import EVERYTHING, SAMPLE, NexusScene
from executa_conformance.reading import expect, items, members
from executa_conformance.registry import check

nexus = partial(check, role="nexus")

GET = {"key": "kit/1", "scope": "user"}


def claims(token: str) -> dict[str, Any]:
    """The claims of a JWT. Raises `NotMet` for what is none."""
    parts = token.split(".")
    expect(len(parts) == 3, "the token is no JWT")
    try:
        return members(msgspec.json.decode(_bytes(parts[1])))
    except (ValueError, msgspec.DecodeError):
        raise NotMet("the claims of the token cannot be read") from None


def _bytes(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


@nexus("NEXS-001")
async def what_an_invoke_is_granted(scene: NexusScene) -> None:
    opened = await scene.open()
    grant = opened.grant
    names = ("grants", "caps", "granted_tools", "sampling_token", "storage_token")
    missing = [name for name in names if name not in grant]
    expect(not missing, f"the grant lacks {missing}")
    switches = members(grant["grants"])
    fits = all(isinstance(switches.get(one), bool) for one in ("sampling", "agent", "storage"))
    expect(fits, f"grants is {switches!r}")
    for kind in ("sampling", "storage"):
        until = members(grant.get(f"{kind}_token")).get("expires_at")
        alive = isinstance(until, int | float) and until > time.time()
        expect(alive, f"the {kind} token's expires_at is {until!r}")
    scopes = items(members(grant["storage_token"]).get("scopes"))
    expect("user" in scopes and "tool" in scopes, f"the storage token's scopes are {scopes}")


@nexus("NEXS-002")
async def no_token_without_its_word(scene: NexusScene) -> None:
    for words, kinds in (((), ("sampling", "storage")), (("llm.sample",), ("storage",)),
                         (("aps.kv",), ("sampling",))):  # fmt: skip
        grant = (await scene.open(words)).grant
        given = [kind for kind in kinds if grant.get(f"{kind}_token")]
        expect(not given, f"with {words} nexus gave a token for {given}")


@nexus("NEXS-003")
async def audiences_and_lives(scene: NexusScene) -> None:
    opened = await scene.open()
    for kind, audience in (("sampling", "executa-sampling"), ("storage", "aps-storage")):
        held = claims(opened.token(kind))
        aud = held.get("aud")
        expect(aud in (audience, [audience]), f"the {kind} token's aud is {aud!r}")
        left = float(held.get("exp", 0)) - time.time()
        expect(500 < left <= 610, f"the {kind} token lives {left:.0f} s, not 600")


@nexus("NEXS-004")
async def tokens_are_bound(scene: NexusScene) -> None:
    opened = await scene.open()
    for kind in ("sampling", "storage"):
        held = claims(opened.token(kind))
        wanted = {
            "user_id": scene.user,
            "executa_tool_id": "tool-kit",
            "tool_invoke_id": opened.invoke_id,
        }
        for name, value in wanted.items():
            expect(held.get(name) == value, f"the {kind} token's {name} is {held.get(name)!r}")


@nexus("NEXS-005")
async def closing_ends_the_tokens(scene: NexusScene) -> None:
    opened = await scene.open()
    path = f"/executa/invokes/{opened.invoke_id}"
    for _ in range(2):
        answer = await scene.client.ask("DELETE", path, bearer=scene.key)
        expect(answer.status in (200, 204), f"closing was answered with {answer}")
    answer = await scene.sample(opened.token("sampling"))
    expect(answer.status in (401, 410), f"a token of a closed invoke was answered with {answer}")


@nexus("NEXS-006")
async def renewing(scene: NexusScene) -> None:
    opened = await scene.open()
    path = f"/executa/invokes/{opened.invoke_id}/renew"
    answer = await scene.client.ask("POST", path, {}, bearer=scene.key)
    expect(answer.status == 200, f"renewing was answered with {answer.status}")
    value = members(answer.members.get("sampling_token")).get("value")
    expect(bool(value), "renewing gave no sampling_token")
    answer = await scene.sample(str(value))
    expect(answer.status == 200, f"the new token was answered with {answer}")
    await scene.client.ask("DELETE", f"/executa/invokes/{opened.invoke_id}", bearer=scene.key)
    answer = await scene.client.ask("POST", path, {}, bearer=scene.key)
    expect(answer.status >= 400, "a closed invoke was renewed")


@nexus("NEXS-007")
async def no_token_no_answer(scene: NexusScene) -> None:
    asked: dict[str, Any] = {
        "/copilot/sampling": SAMPLE,
        "/storage/kv/get": GET,
        "/copilot/app/agent": {"run_id": "kit", "content": "hi"},
    }
    for bearer in ("", "nobody-gave-this"):
        for path, body in asked.items():
            answer = await scene.client.ask("POST", path, body, bearer=bearer)
            expect(answer.status == 401, f"{path} without a token was answered with {answer}")


@nexus("NEXS-008")
async def each_audience_has_its_door(scene: NexusScene) -> None:
    opened = await scene.open()
    answer = await scene.sample(opened.token("storage"))
    expect(answer.status in (401, 403), f"a storage token sampled: {answer}")
    answer = await scene.stored("get", opened.token("sampling"), GET)
    expect(answer.status in (401, 403), f"a sampling token opened storage: {answer}")


@nexus("NEXS-009")
async def changed_tokens_are_refused(scene: NexusScene) -> None:
    token = (await scene.open()).token("sampling")
    head, body, signature = token.split(".")
    other = "A" if signature[0] != "A" else "B"
    held = claims(token)
    held["user_id"] = "somebody-else"
    claimed = base64.urlsafe_b64encode(msgspec.json.encode(held)).decode().rstrip("=")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
    for forged in (
        f"{head}.{body}.{other}{signature[1:]}",
        f"{head}.{claimed}.{signature}",
        f"{unsigned}.{claimed}.",
    ):
        answer = await scene.sample(forged)
        expect(answer.status == 401, f"a forged token was answered with {answer}")


@nexus("NEXS-020")
async def the_scope_app_is_attested(scene: NexusScene) -> None:
    plain = await scene.open(EVERYTHING)
    scopes = items(members(plain.grant.get("storage_token")).get("scopes"))
    expect("app" not in scopes, "the scope app was given without an app")
    app = {"app_id": "app-kit", "app_slug": "kit"}
    attested = await scene.open(EVERYTHING, app=app)
    scopes = items(members(attested.grant.get("storage_token")).get("scopes"))
    expect("app" in scopes, f"with an app the scopes are {scopes}")


@nexus("NEXS-025")
async def refusals_have_a_form(scene: NexusScene) -> None:
    opened = await scene.open()
    broken: dict[str, Any] = {"messages": [], "maxTokens": 5}
    found = [
        await scene.sample(""),
        await scene.sample(opened.token("sampling"), broken),
        await scene.stored("get", opened.token("storage"), {"key": "/no", "scope": "user"}),
        await scene.client.ask("POST", "/executa/invokes", {"user_id": 5}, bearer=scene.key),
    ]
    for answer in found:
        expect(answer.status >= 400, f"what is wrong was answered with {answer}")
        error = answer.error
        expect(isinstance(error.get("errorCode"), str), f"a refusal without errorCode: {answer}")
        expect(isinstance(error.get("message"), str), f"a refusal without message: {answer}")
        expect("code" in error, f"a refusal without code: {answer}")


@nexus("NEXS-027")
async def answers_tell_no_tokens(scene: NexusScene) -> None:
    opened = await scene.open()
    session = await scene.create(opened)
    tokens = {opened.token("sampling"), opened.token("storage"), str(session.get("token"))}
    sampling = opened.token("sampling")
    answers = [
        await scene.sample(sampling),
        await scene.sample(sampling, {"messages": [], "maxTokens": 1}),
        await scene.stored("get", opened.token("storage"), GET),
        await scene.stored("get", sampling, GET),
        await scene.creating(opened, {"kind": "nothing"}),
    ]
    for answer in answers:
        told = [token for token in tokens if token.encode() in answer.raw]
        expect(not told, f"an answer with status {answer.status} tells a token")


@nexus("NEXS-028")
async def bodies_that_are_no_json(scene: NexusScene) -> None:
    opened = await scene.open()
    for raw in (b"{", b"\xff\xfe", b"[1", b'{"messages": NaN}'):
        answer = await scene.client.ask(
            "POST", "/copilot/sampling", raw=raw, bearer=opened.token("sampling")
        )
        expect(answer.status in (400, 422), f"{raw!r} was answered with {answer}")
    answer = await scene.sample(opened.token("sampling"))
    expect(answer.status == 200, f"afterwards a completion was answered with {answer}")
