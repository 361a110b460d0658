"""Who gets in: every route without a key, with a wrong one, without scope, of another tenant."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing

import aiohttp
import pytest

from executa_host.actions.requests import ALL_SCOPES, OWN_WORK, Scope
from executa_host.api.endpoint import Endpoint, full_path
from executa_host.api.routes import ENDPOINTS
from tests.api.rigs import Serving

PRIVATE = [endpoint for endpoint in ENDPOINTS if endpoint.scope is not None]
OPEN = [endpoint for endpoint in ENDPOINTS if endpoint.scope is None]

BODIES: dict[str, dict[str, object]] = {
    "/actions": {"capability": "notebook.recall"},
    "/handshake": {"responder": "agent"},
    "/sessions/{session_id}/close": {"outcome": "cancelled"},
    "/resume": {"resume_token": "no-such-token", "attempt_id": "a1"},
}
SECRET = "gnomes under the hill"  # noqa: S105 - what must not be seen, no password


def _named(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


each_private = pytest.mark.parametrize("endpoint", PRIVATE, ids=_named)


class Door:
    """Sends a request that fits an endpoint, under some key."""

    def __init__(self, rig: Serving, parts: dict[str, str], session: aiohttp.ClientSession) -> None:
        self.rig = rig
        self.parts = parts
        self._session = session

    async def knock(
        self, endpoint: Endpoint, headers: dict[str, str], query: str = ""
    ) -> tuple[int, dict[str, str], bytes]:
        path = full_path(endpoint).format(**self.parts)
        body = None if endpoint.body is None else BODIES.get(endpoint.path, {})
        async with self._session.request(
            endpoint.method, f"{self.rig.url}{path}{query}", json=body, headers=headers
        ) as response:
            return response.status, dict(response.headers), await response.read()


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
async def door(either: Serving) -> AsyncIterator[Door]:
    """Ada of the default tenant has a session, and in it an action that awaits approval."""
    ada = either.client("ada")
    session = (await ada.sessions.open("agent", label=SECRET)).session
    action = (await ada.submit("bank.pay", {"query": SECRET}, session_id=session.session_id)).action
    async with aclosing(ada.follow(action.action_id)) as events:
        async for event in events:
            if event.state == "pending_approval":
                break
    parts = {
        "action_id": action.action_id,
        "session_id": session.session_id,
        "name": "bank.pay",
        "plugin": "notebook",
    }
    async with aiohttp.ClientSession() as http:
        yield Door(either, parts, http)


@each_private
async def test_nobody_gets_in_without_a_key(door: Door, endpoint: Endpoint) -> None:
    status, headers, body = await door.knock(endpoint, {})
    assert status == 401
    assert headers["WWW-Authenticate"].startswith("Bearer")
    assert json.loads(body)["error"]["code"] == "UNAUTHENTICATED"


@each_private
async def test_nobody_gets_in_with_a_key_that_is_none(door: Door, endpoint: Endpoint) -> None:
    valid = door.rig.key()
    revoked = door.rig.keys.create("ada", scopes=ALL_SCOPES)
    door.rig.keys.revoke(revoked.key.key_id)
    wrong = [
        "nonsense",
        valid[:-1] + ("A" if valid[-1] != "A" else "B"),
        valid + "A",
        valid.upper(),
        revoked.text,
        "exk_" + "0" * 12 + "_" + "A" * 43,
    ]
    for key in wrong:
        status, headers, body = await door.knock(endpoint, bearer(key))
        assert status == 401
        assert 'error="invalid_token"' in headers["WWW-Authenticate"]
        assert key.encode() not in body
    for shown in ("Basic " + valid, "Bearer", "Bearer ", valid, ""):
        status, _, _ = await door.knock(endpoint, {"Authorization": shown})
        assert status == 401


@each_private
async def test_a_key_in_the_url_is_not_looked_at(door: Door, endpoint: Endpoint) -> None:
    status, _, body = await door.knock(endpoint, {}, f"?key={door.rig.key()}")
    assert status == 401
    assert b"exk_" not in body


@each_private
async def test_a_key_without_the_scope_is_refused_before_anything_is_looked_at(
    door: Door, endpoint: Endpoint
) -> None:
    assert endpoint.scope is not None
    others = ALL_SCOPES - {endpoint.scope, Scope.ADMIN}
    before = await door.rig.known()
    status, headers, body = await door.knock(
        endpoint, bearer(door.rig.key("ada", scopes=others)), "?nonsense=1"
    )
    assert status == 403
    assert endpoint.scope in headers["WWW-Authenticate"]
    error = json.loads(body)["error"]
    assert (error["code"], error["retryable"]) == ("FORBIDDEN", False)
    assert await door.rig.known() == before


@pytest.mark.parametrize(
    # Processes belong to no tenant: what concerns them is for admin keys alone.
    "endpoint",
    [each for each in PRIVATE if each.group != "plugins"],
    ids=_named,
)
async def test_another_tenant_sees_and_changes_nothing(door: Door, endpoint: Endpoint) -> None:
    scopes = ALL_SCOPES - {Scope.ADMIN}
    stranger = bearer(door.rig.key("ada", tenant="elsewhere", scopes=scopes))
    before = await door.rig.known()
    status, _, body = await door.knock(endpoint, stranger)
    addressed = "{action_id}" in endpoint.path or "{session_id}" in endpoint.path
    if addressed or endpoint.path == "/resume":
        assert status == 404
        parts = dict(door.parts)
        door.parts |= {
            "action_id": "act_00000000000000000000000000",
            "session_id": "ses_00000000000000000000000000",
        }
        _, _, nothing = await door.knock(endpoint, stranger)
        for name, value in parts.items():  # but for the id they are the same answer
            body = body.replace(value.encode(), door.parts[name].encode())
        assert body == nothing
        assert await door.rig.known() == before
    else:
        assert status < 300
        assert SECRET.encode() not in body
        assert door.parts["action_id"].encode() not in body
        assert door.parts["session_id"].encode() not in body


@each_private
async def test_the_owner_with_the_scope_is_let_in(door: Door, endpoint: Endpoint) -> None:
    assert endpoint.scope is not None
    if endpoint.handler == "redrive":
        door.parts["action_id"] = await door.rig.dead_letter()
    key = bearer(door.rig.key("ada", scopes=frozenset({endpoint.scope})))
    status, headers, _ = await door.knock(endpoint, key)
    assert status == 404 if endpoint.path == "/resume" else status < 300
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("endpoint", OPEN, ids=_named)
async def test_probes_need_no_key_and_tell_nothing_else(door: Door, endpoint: Endpoint) -> None:
    status, _, body = await door.knock(endpoint, {})
    assert status == 200
    assert set(json.loads(body)) <= {"status", "ready", "draining"}


async def test_an_admin_handles_every_tenant(door: Door) -> None:
    admin = bearer(door.rig.key("root", tenant="ops", scopes=frozenset({Scope.ADMIN})))
    for endpoint in PRIVATE:
        if endpoint.method == "GET":
            status, _, _ = await door.knock(endpoint, admin)
            assert status == 200, endpoint.path


async def test_a_sync_submission_needs_the_scope_to_read_its_result(door: Door) -> None:
    key = door.rig.key("ada", scopes=frozenset({Scope.SUBMIT}))
    before = await door.rig.known()
    body = {"capability": "notebook.recall", "mode": "sync"}
    async with (
        aiohttp.ClientSession(headers=bearer(key)) as http,
        http.post(f"{door.rig.url}/v1/actions", json=body) as response,
    ):
        assert response.status == 403
    assert await door.rig.known() == before


async def test_a_key_file_that_cannot_be_trusted_lets_nobody_in(door: Door) -> None:
    key = bearer(door.rig.key())
    listing = next(each for each in PRIVATE if _named(each) == "GET /actions")
    assert (await door.knock(listing, key))[0] == 200
    door.rig.keys.path.write_text("{")
    status, headers, body = await door.knock(listing, key)
    assert status == 503
    assert headers["Retry-After"]
    assert json.loads(body)["error"]["retryable"] is True


def test_ordinary_keys_have_neither_tenant_nor_admin() -> None:
    assert not OWN_WORK & {Scope.TENANT, Scope.ADMIN, Scope.ATTEST, Scope.APPROVE}
