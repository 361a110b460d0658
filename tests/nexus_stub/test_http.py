"""What only the HTTP door has: bodies, headers, admin endpoints and its own description."""

import asyncio
import io
import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.clock import ManualClock
from executa_nexus_stub.http import handlers
from executa_nexus_stub.http.openapi import document
from executa_nexus_stub.http.routes import BASE, ENDPOINTS
from executa_nexus_stub.http.server import BODY_LIMIT, NexusServer
from executa_nexus_stub.models.faulty import FaultyModel, ModelFaults
from executa_nexus_stub.models.offline import OfflineModel
from executa_protocol import codec
from tests.nexus_stub.calls import RECALL, ask, opening, run, session, tokens, until

SAMPLING = f"{BASE}/copilot/sampling"


@pytest.fixture
async def url(stub: NexusStub) -> AsyncIterator[str]:
    """Where the stub listens."""
    async with NexusServer(stub) as server:
        yield server.url


@pytest.fixture
async def web(url: str) -> AsyncIterator[aiohttp.ClientSession]:
    """A client at that address."""
    async with aiohttp.ClientSession(url) as session:
        yield session


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def data_of(text: str) -> list[str]:
    """The data of each event of a stream."""
    return re.findall(r"^data: (.*)$", text, re.MULTILINE)


async def error_of(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """The refusal in the one form that all have."""
    body = await response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "errorCode", "message"}
    return body["error"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Basic eDp5"}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": "Bearer nonsense"}, 401),
    ],
)
@pytest.mark.parametrize(
    "path",
    [BASE + e.path for e in ENDPOINTS if e.bearer not in ("none", "host key") and e.body],
)
async def test_every_endpoint_wants_its_bearer(
    web: aiohttp.ClientSession, path: str, headers: dict[str, str], status: int
) -> None:
    body = b'{"run_id":"r","content":"c","call_id":"c","ok":true,"data":1}'
    if path.endswith("sampling"):
        body = codec.encode(ask("x"))
    if path.endswith("from_sampling"):
        body = b'{"kind":"agent","agent_submode":"auto"}'

    async with web.post(path.replace("{uuid}", "u"), data=body, headers=headers) as response:
        assert response.status == status
        assert "nonsense" not in (await error_of(response))["message"]


async def test_a_token_in_the_query_opens_nothing(
    stub: NexusStub, web: aiohttp.ClientSession
) -> None:
    sampling, _ = await tokens(stub)

    async with web.post(f"{SAMPLING}?access_token={sampling}", data=b"{}") as response:
        assert response.status == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"nonsense", 400),
        (b"[]", 422),
        (b'{"messages":[]}', 422),
        (b'{"messages":"x","maxTokens":1}', 422),
        (
            b'{"messages":[{"role":"robot","content":{"type":"text","text":"x"}}],"maxTokens":1}',
            422,
        ),
        (b'{"messages":[{"role":"user","content":{"type":"text","text":"\xff"}}]}', 400),
        (b"[" * 300 + b"]" * 300, 400),
        (b'{"a":1e999}', 400),
    ],
)
async def test_a_bad_body_has_a_defined_answer(
    stub: NexusStub, web: aiohttp.ClientSession, body: bytes, status: int
) -> None:
    sampling, _ = await tokens(stub)

    async with web.post(SAMPLING, data=body, headers=bearer(sampling)) as response:
        assert response.status == status
        await error_of(response)


async def test_unknown_members_of_a_body_are_ignored(
    stub: NexusStub, web: aiohttp.ClientSession
) -> None:
    sampling, _ = await tokens(stub)
    message = b'{"role":"user","content":{"type":"text","text":"Hi."},"x":1}'
    body = b'{"messages":[' + message + b'],"maxTokens":9,"y":[]}'

    async with web.post(SAMPLING, data=body, headers=bearer(sampling)) as response:
        assert response.status == 200
        assert (await response.json())["stopReason"] == "endTurn"


async def test_a_body_over_the_limit_is_refused(web: aiohttp.ClientSession) -> None:
    async with web.post(
        f"{BASE}/executa/invokes", data=io.BytesIO(b"x" * (BODY_LIMIT + 1))
    ) as response:
        assert response.status == 413
        await error_of(response)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nowhere", 404), ("GET", SAMPLING, 405), ("PUT", "/", 404)],
)
async def test_what_is_not_there_is_refused_in_the_same_form(
    web: aiohttp.ClientSession, method: str, path: str, status: int
) -> None:
    async with web.request(method, path) as response:
        assert response.status == status
        await error_of(response)


async def test_a_defect_is_logged_and_its_story_stays_at_home(
    stub: NexusStub,
    web: aiohttp.ClientSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("a secret detail")

    monkeypatch.setattr(stub.ledger, "report", broken)
    with caplog.at_level(logging.ERROR):
        async with web.get(f"{BASE}/admin/ledger") as response:
            assert response.status == 500
            assert "secret" not in (await error_of(response))["message"]
    assert "a secret detail" in caplog.text


async def test_a_host_shows_its_key_where_one_is_set(clock: ManualClock, host_key: str) -> None:
    stub = NexusStub(StubConfig(host_key_env="NEXUS_TEST_HOST_KEY"), clock=clock)
    async with NexusServer(stub) as server, aiohttp.ClientSession(server.url) as web:
        body = codec.encode(opening())
        for headers, status in (({}, 401), (bearer("wrong"), 401), (bearer(host_key), 200)):
            path = f"{BASE}/executa/invokes"
            async with web.post(path, data=body, headers=headers) as response:
                assert response.status == status
    await stub.aclose()


async def test_a_run_ends_with_an_event_that_says_so(
    stub: NexusStub, web: aiohttp.ClientSession
) -> None:
    minted = await session(stub)
    body = codec.encode(run("Boats."))

    async with web.post(
        f"{BASE}/copilot/app/agent", data=body, headers=bearer(minted.token)
    ) as response:
        assert response.content_type == "text/event-stream"
        text = await response.text()

    events = [
        codec.decode_any(found.encode())
        for found in re.findall(r"^data: (.*)$", text, re.MULTILINE)
    ]
    assert [event["event"] for event in events] == ["delta", "final", "end"]
    assert events[-1] == {"event": "end", "run_id": "run", "done": True}


async def test_a_run_that_fails_half_way_says_so_in_the_stream(clock: ManualClock) -> None:
    model = FaultyModel(OfflineModel(), ModelFaults(cut_after=1))
    stub = NexusStub(clock=clock, models=[model])
    minted = await session(stub)
    body = codec.encode(run("Boats float on the open water all day."))
    path, headers = f"{BASE}/copilot/app/agent", bearer(minted.token)
    async with (
        NexusServer(stub) as server,
        aiohttp.ClientSession(server.url) as web,
        web.post(path, data=body, headers=headers) as response,
    ):
        text = await response.text()

    delta, error, end = [codec.decode_any(data.encode()) for data in data_of(text)]
    assert delta["event"] == "delta"
    assert (error["event"], error["code"], error["errorCode"]) == (
        "error",
        -32046,
        "AGENT_NEXUS_ERROR",
    )
    assert end["done"] is True


async def test_a_silent_run_shows_signs_of_life(
    stub: NexusStub, web: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "KEEP_ALIVE", 0.001)
    minted = await session(stub)
    body = codec.encode(run("Use notebook.recall.", RECALL))

    async with (
        asyncio.timeout(10),
        web.post(f"{BASE}/copilot/app/agent", data=body, headers=bearer(minted.token)) as response,
    ):
        await response.content.readuntil(b"\n\n")
        assert await response.content.readuntil(b"\n\n") == b": waiting\n\n"
    await until(lambda: stub.in_flight == 0)


# --- Admin -----------------------------------------------------------------------------


async def admin(web: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> Any:
    """One admin call."""
    data = None if body is None else codec.encode(body)
    async with web.request(method, f"{BASE}/admin/{path}", data=data) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def test_grants_change_and_keys_rotate_while_the_stub_runs(
    stub: NexusStub, web: aiohttp.ClientSession
) -> None:
    change = {"user_id": "ada", "plugin": "brief", "changes": {"sampling": False}}

    changed = await admin(web, "PUT", "grants", change)
    first, second = [await admin(web, "POST", "keys/rotate") for _ in range(2)]

    assert changed["grants"]["sampling"] is False
    assert stub.directory.grant("ada", "brief").sampling is False
    assert first["kid"] != second["kid"]


@pytest.mark.parametrize("changes", [{"sampling": 1}, {"magic": True}, {"caps": {"tokens": "x"}}])
async def test_a_change_that_makes_no_sense_changes_nothing(
    stub: NexusStub, web: aiohttp.ClientSession, changes: dict[str, Any]
) -> None:
    before = stub.directory.grant("ada", "brief")
    body = codec.encode({"user_id": "ada", "plugin": "brief", "changes": changes})

    async with web.put(f"{BASE}/admin/grants", data=body) as response:
        assert response.status == 422
        await error_of(response)
    assert stub.directory.grant("ada", "brief") == before


async def test_faults_are_set_and_what_they_struck_is_told(
    stub: NexusStub, web: aiohttp.ClientSession
) -> None:
    rule = {"kind": "error", "endpoint": "open_invoke", "status": 500}
    told = await admin(web, "PUT", "faults", {"seed": 7, "rules": [rule]})
    async with web.post(f"{BASE}/executa/invokes", data=codec.encode(opening())) as response:
        assert response.status == 500

    assert told["seed"] == 7
    assert (await admin(web, "GET", "faults"))["injected"] == [
        {"endpoint": "open_invoke", "call": 1, "kind": "error"}
    ]


async def test_the_ledger_and_the_state_are_told(
    stub: NexusStub, web: aiohttp.ClientSession
) -> None:
    sampling, _ = await tokens(stub)
    await stub.sample(sampling, ask("Hello."))

    ledger, state = await admin(web, "GET", "ledger"), await admin(web, "GET", "state")

    assert ledger["total"]["sampling_calls"] == 1
    assert [row["plugin"] for row in ledger["plugins"]] == ["brief"]
    assert state["open_invokes"] == 1
    assert state["live_tokens"] == 2


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Host": "10.0.0.1:80"}],
)
async def test_a_web_page_may_not_use_the_admin_endpoints(
    web: aiohttp.ClientSession, headers: dict[str, str]
) -> None:
    async with web.post(f"{BASE}/admin/keys/rotate", headers=headers) as response:
        assert response.status == 403


# --- OpenAPI ----------------------------------------------------------------------------


async def test_the_description_names_every_endpoint_and_resolves_every_reference(
    web: aiohttp.ClientSession,
) -> None:
    async with web.get(f"{BASE}/openapi.json") as response:
        described = await response.json()

    assert described["openapi"] == "3.1.0"
    for endpoint in ENDPOINTS:
        operation = described["paths"][BASE + endpoint.path][endpoint.method.lower()]
        assert operation["x-source"] in ("stated", "observed", "assumed")
    ids = [op["operationId"] for path in described["paths"].values() for op in path.values()]
    assert len(ids) == len(set(ids))
    for name in set(
        re.findall(r'"#/components/schemas/([^"]+)"', str(described).replace("'", '"'))
    ):
        assert name in described["components"]["schemas"]
    assert described == codec.decode_any(codec.encode(document(described["info"]["version"])))
