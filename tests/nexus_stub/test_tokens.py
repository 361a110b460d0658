"""Tokens: what each is good for, until when, and how everything else is refused."""

from collections.abc import Callable
from typing import Any

import jwt
import pytest

from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.clock import ManualClock
from executa_nexus_stub.tokens import SAMPLING, STORAGE, Binding, TokenAuthority
from executa_protocol.nexus import Nexus
from tests.nexus_stub.calls import ask, opening, refused_as, session, store, tokens

HELLO = ask("Hello there.")
ADA = Binding("ada", "tool-brief", "0" * 32, "brief")


def forged(claims: dict[str, Any], **options: Any) -> str:
    """A token that says `claims`, signed as `options` say."""
    return jwt.encode(claims, **options)


def claims_of(token: str) -> dict[str, Any]:
    """What a token says, unverified."""
    options: Any = {"verify_signature": False}
    return jwt.decode(token, options=options)


@pytest.fixture(params=[True, False], ids=["looked up", "verified"])
def authority(request: pytest.FixtureRequest, clock: ManualClock) -> TokenAuthority:
    """Both ways of recognising a token refuse alike."""
    return TokenAuthority(clock, lookup=request.param)


async def test_a_token_says_whom_it_speaks_for_and_lives_600_seconds(
    nexus: Nexus, clock: ManualClock
) -> None:
    first = opening()
    grant = await nexus.open_invoke(first)
    assert grant.sampling_token is not None
    assert grant.storage_token is not None

    sampling, storage = claims_of(grant.sampling_token.value), claims_of(grant.storage_token.value)

    assert (sampling["aud"], storage["aud"]) == ("executa-sampling", "aps-storage")
    for claims in (sampling, storage):
        assert claims["user_id"] == "ada"
        assert claims["executa_tool_id"] == "tool-brief"
        assert claims["tool_invoke_id"] == first.invoke_id
        assert claims["exp"] == claims["iat"] + 600 == clock.now() + 600
    assert storage["allowed_scopes"] == ["user", "tool"]
    assert storage["max_calls"] == 200
    header = jwt.get_unverified_header(grant.sampling_token.value)
    assert header["alg"] == "HS256"
    assert header["kid"]


async def test_the_session_token_has_its_own_audience_and_type(nexus: Nexus) -> None:
    minted = await session(nexus)

    claims = claims_of(minted.token)

    assert (claims["aud"], claims["type"]) == ("aps-llm", "anna_app_session")
    assert claims["app_session_uuid"] == minted.app_session_uuid


async def test_a_token_of_another_audience_is_refused_by_the_chapter_it_was_shown_to(
    nexus: Nexus,
) -> None:
    sampling, storage = await tokens(nexus)
    minted = await session(nexus)

    for wrong in (storage, minted.token):
        with refused_as("SAMPLING_NOT_GRANTED", 403, match="it is for"):
            await nexus.sample(wrong, HELLO)
    for wrong in (sampling, minted.token):
        with refused_as("STORAGE_NOT_GRANTED", 403):
            await store(nexus, wrong, "storage/get", key="a")
    for wrong in (sampling, storage):
        with refused_as("AGENT_NOT_GRANTED", 403):
            await nexus.cancel_run(wrong, "run")


async def test_a_token_is_refused_once_its_invoke_has_ended(nexus: Nexus) -> None:
    first = opening()
    grant = await nexus.open_invoke(first)
    assert grant.sampling_token is not None
    await nexus.close_invoke(first.invoke_id)

    with refused_as("APP_SESSION_REVOKED", 410):
        await nexus.sample(grant.sampling_token.value, HELLO)


async def test_an_old_token_stays_dead_when_its_invoke_id_is_opened_again(nexus: Nexus) -> None:
    first = opening()
    old = await nexus.open_invoke(first)
    await nexus.close_invoke(first.invoke_id)
    new = await nexus.open_invoke(first)
    assert old.sampling_token is not None
    assert new.sampling_token is not None

    await nexus.sample(new.sampling_token.value, HELLO)
    with refused_as("APP_SESSION_REVOKED", 410):
        await nexus.sample(old.sampling_token.value, HELLO)


async def test_an_expired_token_is_refused_and_a_renewed_one_goes_on(
    nexus: Nexus, clock: ManualClock
) -> None:
    first = opening()
    old = await nexus.open_invoke(first)
    clock.advance(570)
    new = await nexus.renew_invoke(first.invoke_id)
    clock.advance(41)
    assert old.sampling_token is not None
    assert new.sampling_token is not None

    with refused_as("APP_SESSION_TOKEN_EXPIRED", 401):
        await nexus.sample(old.sampling_token.value, HELLO)
    await nexus.sample(new.sampling_token.value, HELLO)


async def test_the_leeway_is_ten_seconds_and_not_one_more(
    authority: TokenAuthority, clock: ManualClock
) -> None:
    token = authority.mint(SAMPLING, ADA).value
    clock.advance(610)

    authority.verify(token, SAMPLING)
    clock.advance(0.5)
    with refused_as("APP_SESSION_TOKEN_EXPIRED"):
        authority.verify(token, SAMPLING)


async def test_a_token_from_the_future_is_refused(
    authority: TokenAuthority, clock: ManualClock
) -> None:
    token = authority.mint(SAMPLING, ADA).value
    clock.advance(-9)

    authority.verify(token, SAMPLING)
    clock.advance(-2)
    with refused_as("SAMPLING_NOT_GRANTED", match="future"):
        authority.verify(token, SAMPLING)


async def test_a_rotated_key_verifies_for_600_seconds_and_leeway(
    authority: TokenAuthority, clock: ManualClock
) -> None:
    old = authority.mint(SAMPLING, ADA, ttl=7200).value
    authority.rotate()
    new = authority.mint(SAMPLING, ADA, ttl=7200).value
    clock.advance(610)
    authority.verify(old, SAMPLING)
    clock.advance(1)

    with refused_as("SAMPLING_NOT_GRANTED", 401, match="rotated"):
        authority.verify(old, SAMPLING)
    authority.verify(new, SAMPLING)
    authority.rotate()
    authority.verify(new, SAMPLING)


async def test_a_signed_but_unknown_token_is_refused_as_ended(authority: TokenAuthority) -> None:
    token = authority.mint(SAMPLING, ADA).value
    authority.end("another group")
    authority.verify(token, SAMPLING)
    authority.end(ADA.tool_invoke_id)

    with refused_as("APP_SESSION_REVOKED", 410):
        authority.verify(token, SAMPLING)


def _none_algorithm(token: str) -> str:
    kid = jwt.get_unverified_header(token)["kid"]
    return forged(claims_of(token), key="", algorithm="none", headers={"kid": kid})


def _other_key(token: str) -> str:
    kid = jwt.get_unverified_header(token)["kid"]
    return forged(claims_of(token), key="x" * 32, algorithm="HS256", headers={"kid": kid})


def _other_user(token: str) -> str:
    head, _, sign = token.split(".")
    claims = {**claims_of(token), "user_id": "eve"}
    middle = forged(claims, key="x" * 32, algorithm="HS256").split(".")[1]
    return f"{head}.{middle}.{sign}"


def _stronger_algorithm(token: str) -> str:
    kid = jwt.get_unverified_header(token)["kid"]
    return forged(claims_of(token), key="x" * 64, algorithm="HS512", headers={"kid": kid})


def _no_key_id(token: str) -> str:
    return forged(claims_of(token), key="x" * 32, algorithm="HS256")


def _cut_short(token: str) -> str:
    return token[:-2]


def _in_capitals(token: str) -> str:
    return token.upper()


def _empty(_: str) -> str:
    return ""


def _only_dots(_: str) -> str:
    return "..."


def _too_long(_: str) -> str:
    return "x" * 10_000


def _snow(_: str) -> str:
    return "\u2603"


@pytest.mark.parametrize(
    "forge",
    [
        _none_algorithm,
        _other_key,
        _other_user,
        _stronger_algorithm,
        _no_key_id,
        _cut_short,
        _in_capitals,
        _empty,
        _only_dots,
        _too_long,
        _snow,
    ],
)
async def test_a_forged_token_is_refused_and_never_repeated(
    stub: NexusStub, forge: Callable[[str], str]
) -> None:
    sampling, _ = await tokens(stub)
    token = forge(sampling)

    with refused_as("SAMPLING_NOT_GRANTED", 401) as info:
        await stub.sample(token, HELLO)
    assert not token or token not in str(info.value)


async def test_a_bound_token_opens_nothing_of_another_user_tool_or_invoke(nexus: Nexus) -> None:
    _, adas = await tokens(nexus)
    _, bobs = await tokens(nexus, user="bob")
    _, others = await tokens(nexus, plugin="other")
    await store(nexus, adas, "storage/set", key="k", value=1)

    for token in (bobs, others):
        assert (await store(nexus, token, "storage/get", key="k"))["exists"] is False


async def test_a_session_token_is_bound_to_its_session(nexus: Nexus) -> None:
    one, other = await session(nexus), await session(nexus)

    with refused_as("AGENT_INVALID_UUID", 403):
        await nexus.refresh_agent_session(one.token, other.app_session_uuid, None)
    with refused_as("AGENT_INVALID_UUID", 403):
        await nexus.delete_agent_session(one.token, other.app_session_uuid)


async def test_verifying_signatures_serves_as_looking_up_does(clock: ManualClock) -> None:
    stub = NexusStub(StubConfig(lookup_tokens=False), clock=clock)
    sampling, storage = await tokens(stub)

    await stub.sample(sampling, HELLO)
    await store(stub, storage, "storage/set", key="a", value=1)
    with refused_as("STORAGE_NOT_GRANTED", 403):
        await store(stub, sampling, "storage/get", key="a")
    assert claims_of(storage)["aud"] == STORAGE
