"""Wrong requests: each is refused by what is wrong with it, never with a 5xx, never by a clamp."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any

import aiohttp
import pytest

from executa_host.api.limits import BODY_BYTES, SUBMIT_BYTES
from executa_host.api.visit import Pace
from executa_protocol.limits import MAX_DEPTH
from tests.api.conftest import MakeRig
from tests.api.rigs import Rig

JSON = "application/json"


class Raw:
    """Requests that no client would send."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.http = aiohttp.ClientSession(headers={"Authorization": f"Bearer {rig.key()}"})

    async def post(
        self, path: str, data: object, kind: str = JSON, **headers: str
    ) -> tuple[int, dict[str, Any]]:
        async with self.http.post(
            self.rig.url + path,
            data=data,
            headers={"Content-Type": kind, **headers},
            skip_auto_headers=["Content-Type"] if not kind else None,
        ) as response:
            return response.status, (await response.json()).get("error", {})

    async def get(self, path: str, **headers: str) -> tuple[int, dict[str, Any]]:
        async with self.http.get(self.rig.url + path, headers=headers) as response:
            body: dict[str, Any] = await response.json() if response.content_type == JSON else {}
            return response.status, body.get("error", {})


@pytest.fixture
async def raw(rig: Rig) -> AsyncIterator[Raw]:
    raw = Raw(rig)
    yield raw
    await raw.http.close()


@pytest.mark.parametrize(
    ("body", "code", "path"),
    [
        ({}, "INVALID_REQUEST", "$.capability"),
        ([], "INVALID_REQUEST", "$"),
        ({"capability": 7}, "INVALID_REQUEST", "$.capability"),
        ({"capability": "notebook.recall", "colour": "red"}, "INVALID_REQUEST", "$.colour"),
        ({"capability": "notebook.recall", "input": []}, "INVALID_REQUEST", "$.input"),
        ({"capability": "notebook.recall", "input": None}, "INVALID_REQUEST", "$.input"),
        ({"capability": "notebook.recall", "mode": "later"}, "INVALID_REQUEST", "$.mode"),
        ({"capability": "bank.pay", "mode": "streaming"}, "MODE_NOT_OFFERED", "$.mode"),
        ({"capability": "no.such"}, "UNKNOWN_CAPABILITY", "$.capability"),
        ({"capability": "notebook.recall", "timeout_ms": "5"}, "INVALID_REQUEST", "$.timeout_ms"),
        ({"capability": "notebook.recall", "timeout_ms": 2**70}, "OUT_OF_RANGE", "$.timeout_ms"),
        ({"capability": "notebook.recall", "callback": {}}, "INVALID_REQUEST", "$.callback.url"),
        (
            {"capability": "notebook.recall", "callback": {"url": "https://x", "to": 1}},
            "INVALID_REQUEST",
            "$.callback.to",
        ),
        (
            {"capability": "notebook.recall", "context": {"memory": [1]}},
            "INVALID_REQUEST",
            "$.context.memory",
        ),
        (
            {"capability": "notebook.recall", "context": {"observability": {"x": 1}}},
            "INVALID_REQUEST",
            "$.context.observability.x",
        ),
        (
            {"capability": "notebook.recall", "delegation": ["ada", 7]},
            "INVALID_REQUEST",
            "$.delegation[1]",
        ),
        (
            {"capability": "notebook.recall", "app": {"app_id": "a"}},
            "INVALID_REQUEST",
            "$.app.app_slug",
        ),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict | list) else value,
)
async def test_a_wrong_member_is_named_by_its_path(
    raw: Raw, body: object, code: str, path: str
) -> None:
    status, error = await raw.post("/v1/actions", json.dumps(body))
    assert (status, error["code"], error["path"]) == (400, code, path)
    assert set(error) == {"code", "message", "path", "retryable", "data"}
    assert error["retryable"] is False


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b'{"capability": "a.b"',
        b'{"capability": "a.b"} {}',
        b'{"capability": "\xff"}',
        b'{"capability": "\\ud800"}',
        b'{"input": {"n": NaN}}',
        b'{"input": {"n": [1, 1e999]}}',
        b'{"input": ' + b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1) + b"}",
        b"[" * 200_000,
        b"\x00",
        b"null",
        b'"text"',
        b"\xef\xbb\xbf{}",
    ],
    ids=lambda data: data[:24].decode("latin-1"),
)
async def test_what_is_no_json_object_is_refused(raw: Raw, data: bytes) -> None:
    status, error = await raw.post("/v1/actions", data)
    assert (status, error["code"]) == (400, "INVALID_REQUEST")
    assert not raw.rig.actions.records


@pytest.mark.parametrize(
    ("path", "code", "where"),
    [
        ("/v1/actions?limit=0", "OUT_OF_RANGE", "query.limit"),
        ("/v1/actions?limit=1001", "OUT_OF_RANGE", "query.limit"),
        ("/v1/actions?limit=-1", "OUT_OF_RANGE", "query.limit"),
        ("/v1/actions?limit=" + "9" * 400, "OUT_OF_RANGE", "query.limit"),
        ("/v1/actions?limit=many", "INVALID_REQUEST", "query.limit"),
        ("/v1/actions?limit=", "INVALID_REQUEST", "query.limit"),
        ("/v1/actions?limit=5&limit=6", "INVALID_REQUEST", "query.limit"),
        ("/v1/actions?state=running,dancing", "INVALID_REQUEST", "query.state[1]"),
        ("/v1/actions?state=unknown", "INVALID_REQUEST", "query.state[0]"),
        ("/v1/actions?order=random", "INVALID_REQUEST", "query.order"),
        ("/v1/actions?colour=red", "INVALID_REQUEST", "query.colour"),
        ("/v1/actions?capability=%00", "INVALID_REQUEST", "query.capability"),
        ("/v1/actions?capability=a%0A", "INVALID_REQUEST", "query.capability"),
        ("/v1/actions?principal=" + "x" * 257, "INVALID_REQUEST", "query.principal"),
        ("/v1/actions?cursor=nonsense", "CURSOR_INVALID", "query.cursor"),
        ("/v1/sessions?limit=1001", "OUT_OF_RANGE", "query.limit"),
        ("/v1/sessions?state=open", "INVALID_REQUEST", "query.state[0]"),
        ("/v1/capabilities?x=1", "INVALID_REQUEST", "query.x"),
    ],
)
async def test_a_wrong_parameter_is_named(raw: Raw, path: str, code: str, where: str) -> None:
    status, error = await raw.get(path)
    assert (status, error["code"], error["path"]) == (400, code, where)


async def test_limits_and_waits_are_refused_outside_and_taken_at_the_edge(raw: Raw) -> None:
    action = (await raw.rig.client().submit("notebook.recall")).action
    raw.rig.actions.finish(action.action_id)
    base = f"/v1/actions/{action.action_id}"
    fits = ("/result?wait=0", "/result?wait=30", "/events?limit=1", "/events?limit=1000&wait=30")
    for path in fits:
        assert (await raw.get(base + path))[0] == 200
    wrong = (
        "/result?wait=30.001",
        "/result?wait=-1",
        "/result?wait=nan",
        "/result?wait=inf",
        "/events?wait=31",
        "/events?limit=1001",
        "/events?limit=0",
    )
    for path in wrong:
        status, error = await raw.get(base + path)
        assert (status, error["code"]) == (400, "OUT_OF_RANGE"), path
    _, error = await raw.get(f"{base}/events?limit=0")
    assert error["message"] == "expected a number of at least 1"


@pytest.mark.parametrize(
    ("after", "code"),
    [("c99", "CURSOR_AHEAD"), ("zzz", "CURSOR_INVALID"), ("%FF", "CURSOR_INVALID")],
)
async def test_a_cursor_that_is_none_is_refused_on_pages_and_streams_alike(
    raw: Raw, after: str, code: str
) -> None:
    action = (await raw.rig.client().submit("notebook.recall")).action
    path = f"/v1/actions/{action.action_id}/events"
    for accept in (JSON, "text/event-stream"):
        status, error = await raw.get(f"{path}?after={after}", Accept=accept)
        assert (status, error["code"]) == (400, code)
    if after != "%FF":
        headers = {"Accept": "text/event-stream", "Last-Event-ID": after}
        status, error = await raw.get(path, **headers)
        assert (status, error["code"]) == (400, code)


async def test_a_body_is_taken_at_its_bound_and_refused_one_past_it(raw: Raw) -> None:
    start, end = b'{"capability": "notebook.recall", "input": {"x": "', b'"}}'
    fits = start + b"x" * (SUBMIT_BYTES - len(start) - len(end)) + end
    assert (await raw.post("/v1/actions", BytesIO(fits)))[0] == 202
    status, error = await raw.post("/v1/actions", BytesIO(fits + b" "))
    assert (status, error["code"]) == (413, "BODY_TOO_LARGE")

    async def pieces() -> AsyncIterator[bytes]:
        yield fits
        yield b" "

    status, error = await raw.post("/v1/actions", pieces())  # without a Content-Length
    assert (status, error["code"]) == (413, "BODY_TOO_LARGE")
    action_id = next(iter(raw.rig.actions.records))
    small = b'{"reason": "' + b"x" * BODY_BYTES + b'"}'
    status, error = await raw.post(f"/v1/actions/{action_id}/cancel", small)
    assert (status, error["code"]) == (413, "BODY_TOO_LARGE")
    assert len(raw.rig.actions.records) == 1


@pytest.mark.parametrize(
    ("kind", "headers"),
    [
        ("text/plain", {}),
        ("application/x-www-form-urlencoded", {}),
        ("", {}),
        ("application/json; charset=utf-16", {}),
        (JSON, {"Content-Encoding": "gzip"}),
    ],
)
async def test_a_body_that_is_not_said_to_be_json_is_refused(
    raw: Raw, kind: str, headers: dict[str, str]
) -> None:
    status, error = await raw.post(
        "/v1/actions", b'{"capability": "notebook.recall"}', kind, **headers
    )
    assert (status, error["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


async def test_other_spellings_of_json_are_taken(raw: Raw) -> None:
    for kind in ("application/json; charset=UTF-8", "Application/JSON", "application/x.y+json"):
        data = b' {"capability": "notebook.recall"}\r\n'
        assert (await raw.post("/v1/actions", data, kind))[0] == 202


async def test_an_empty_body_says_nothing(raw: Raw) -> None:
    action = (await raw.rig.client().submit("notebook.recall")).action
    status, _ = await raw.post(f"/v1/actions/{action.action_id}/cancel", b"", "")
    assert status == 200


async def test_a_body_that_does_not_arrive_is_given_up(make_rig: MakeRig) -> None:
    rig = make_rig(Pace(body=0.05))
    async with rig.server:
        host, port = rig.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"POST /v1/actions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {rig.key()}\r\n"
        writer.write(f"{head}Content-Type: {JSON}\r\nContent-Length: 100\r\n\r\n{{".encode())
        async with asyncio.timeout(20):
            answer = await reader.read()  # the server ends the connection by itself
        assert b" 408 " in answer.split(b"\r\n")[0]
        assert b'"BODY_TOO_SLOW"' in answer
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    "lines",
    [
        "GET /v1/actions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\x01\r\n\r\n",
        "GET /v1/actions HTTP/9.9 KEY\r\n\r\n",
        "GET /v1/actions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEYLONG\r\n\r\n",
        "GET /v1/actions?LONG HTTP/1.1\r\nHost: x\r\n\r\n",
        "KEY\r\n\r\n",
        "POST /v1/actions HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ],
    ids=range(6),
)
async def test_what_is_no_http_is_refused_without_a_word_of_it(
    rig: Rig, lines: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key = rig.key()
    reader, writer = await asyncio.open_connection(*rig.address)
    writer.write(lines.replace("KEY", key).replace("LONG", "x" * 9000).encode("latin-1"))
    async with asyncio.timeout(20):
        answer = await reader.read()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b" 400 " in head.split(b"\r\n")[0]
    assert json.loads(body)["error"]["code"] == "BAD_HTTP"
    assert key.encode() not in answer
    assert key not in caplog.text
    writer.close()
    await writer.wait_closed()


async def test_routes_and_methods_that_are_not_there_have_the_same_form(raw: Raw) -> None:
    status, error = await raw.get("/v1/no/such/thing")
    assert (status, error["code"]) == (404, "UNKNOWN_ROUTE")
    async with raw.http.delete(f"{raw.rig.url}/v1/actions") as response:
        assert response.status == 405
        assert response.headers["Allow"] == "GET,POST"
        assert (await response.json())["error"]["code"] == "METHOD_NOT_ALLOWED"


async def test_a_fault_of_the_hosts_own_is_told_to_the_log_and_not_to_the_client(
    raw: Raw, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object, **__: object) -> None:
        msg = "the secret reason"
        raise RuntimeError(msg)

    monkeypatch.setattr(raw.rig.actions, "list", broken)
    status, error = await raw.get("/v1/actions")
    assert (status, error["code"]) == (500, "INTERNAL")
    assert "secret" not in json.dumps(error)
    assert "the secret reason" in caplog.text
    assert "exk_" not in caplog.text
