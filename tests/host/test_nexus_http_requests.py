"""What goes to nexus over HTTP, where to, and which answers are taken."""

import pytest

from executa_host.nexus.http import HttpNexus, read_base
from executa_protocol.errors import UsageError
from executa_protocol.nexus import NexusError
from tests.host.nexus_client import (
    CREATE,
    GRANT,
    KEY,
    OPENING,
    SAMPLE,
    TOKEN,
    against,
)
from tests.host.nexus_server import ScriptedNexus, answers

# --- Requests -----------------------------------------------------------------------------------


async def test_tokens_and_the_key_travel_in_headers_alone() -> None:
    sampled = b'{"role":"assistant","content":{"type":"text","text":"x"},"model":"m",\n'
    sampled += b'"stopReason":"endTurn"}'
    async with against(answers(GRANT), answers(sampled), answers(b"{}")) as (nexus, server, _):
        await nexus.open_invoke(OPENING)
        await nexus.sample(TOKEN, SAMPLE)
        await nexus.storage(TOKEN, "storage/get", b'{"key":"k","scope":"tool"}')
        bearers = [seen.headers["Authorization"] for seen in server.seen]
        assert bearers == [f"Bearer {KEY}", f"Bearer {TOKEN}", f"Bearer {TOKEN}"]
        assert [seen.raw_path for seen in server.seen] == [
            "/api/v1/executa/invokes",
            "/api/v1/copilot/sampling",
            "/api/v1/storage/kv/get",
        ]
        assert not any(TOKEN.encode() in seen.body or seen.query for seen in server.seen)
        assert "Cookie" not in server.seen[-1].headers


async def test_without_a_key_none_is_shown() -> None:
    async with ScriptedNexus(answers(GRANT)) as server:
        nexus = HttpNexus(server.url)
        await nexus.open_invoke(OPENING)
        assert "Authorization" not in server.seen[0].headers
        await nexus.aclose()


async def test_connections_are_used_again() -> None:
    async with against(answers(b"{}")) as (nexus, server, _):
        for _ in range(5):
            await nexus.storage(TOKEN, "storage/get", b"{}")
        assert len({seen.connection for seen in server.seen}) == 1


async def test_a_cookie_and_a_redirect_are_not_followed() -> None:
    away = answers(status=307, Location="http://127.0.0.1:1/steal", Set_Cookie="a=b")
    async with against(away) as (nexus, server, _):
        for _ in range(2):
            with pytest.raises(NexusError, match="307") as refused:
                await nexus.storage(TOKEN, "storage/set", b"{}")
            assert refused.value.status == 307
        assert "Cookie" not in server.seen[1].headers


async def test_an_id_stays_one_segment_of_the_path() -> None:
    async with against(answers()) as (nexus, server, _):
        await nexus.close_invoke("../admin?x=1#y")
        assert server.seen[0].raw_path == "/api/v1/executa/invokes/%2E%2E%2Fadmin%3Fx%3D1%23y"


# --- Answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b'"x"', b"{", b'{"a":1e999}', b'{"a":"\xff"}', b"[" * 200 + b"]" * 200,
     b'{"value":' + b"[" * 126 + b"]" * 126 + b"}"],
    ids=["empty", "array", "text", "half", "infinite", "utf8", "deep", "too deep for the line"],
)  # fmt: skip
async def test_an_answer_that_could_break_the_plugins_line_is_an_error(body: bytes) -> None:
    async with against(answers(body)) as (nexus, _, _):
        with pytest.raises(NexusError):
            await nexus.storage(TOKEN, "storage/get", b"{}")


async def test_a_pretty_printed_answer_becomes_one_line() -> None:
    async with against(answers(b'{\r\n "value": "a\\nb"\n}')) as (nexus, _, _):
        assert await nexus.storage(TOKEN, "storage/get", b"{}") == b'{   "value": "a\\nb" }'


async def test_an_answer_of_another_shape_is_named() -> None:
    async with against(answers(b'{"app_session_uuid":7}')) as (nexus, _, _):
        with pytest.raises(
            NexusError, match=r"agent session that cannot be read: app_session_uuid"
        ):
            await nexus.create_agent_session(TOKEN, CREATE)


# --- The address --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("https://nexus.example", "https://nexus.example/api/v1"),
        ("https://nexus.example/", "https://nexus.example/api/v1"),
        ("http://127.0.0.1:5180/api/v1/", "http://127.0.0.1:5180/api/v1"),
        ("http://[::1]:80/team", "http://[::1]/team/api/v1"),
    ],
)
def test_the_address_ends_with_the_interfaces_own_path(given: str, expected: str) -> None:
    assert str(read_base(given)) == expected


@pytest.mark.parametrize(
    "given",
    ["", "nexus.example", "ftp://x", "http://", "http://user:pass@x", "http://x/?token=1", "a b"],
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="address of nexus") as refused:
        HttpNexus(given)
    assert "pass" not in str(refused.value).replace("password", "")


async def test_a_closed_client_refuses() -> None:
    async with against(answers()) as (nexus, _, _):
        await nexus.aclose()
        await nexus.aclose()
        with pytest.raises(NexusError, match="closed"):
            await nexus.storage(TOKEN, "storage/get", b"{}")
