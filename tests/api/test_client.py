"""The client against servers that fail: what is asked again, what is not, and how it is told."""

from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from executa_host.actions.records import ActionState
from executa_host.actions.requests import Scope
from executa_host.client import (
    ApiError,
    Client,
    Forbidden,
    Gone,
    Invalid,
    ServerFailed,
    Unauthenticated,
    Unavailable,
    Unreachable,
)
from executa_protocol.errors import DecodeFailure, UsageError
from tests.api.flaky import KEY, Flaky, refusal
from tests.api.rigs import Rig, no_pause

ACTION = "act_00000000000000000000000000"


RECORD = (
    b'{"action": {"action_id": "%s", "capability": "a.b", "state": "running", "mode": "async",'
    b' "tenant": "t", "principal": "p", "subject": "p", "effect": "read", "accepted_at_ms": 1,'
    b' "updated_at_ms": 1, "cursor": "c1", "a_newer_member": 1}}' % ACTION.encode()
)


async def test_a_lost_answer_to_a_submission_is_asked_for_again_under_the_same_key(
    flaky: Flaky, client: Client
) -> None:
    flaky.script = [None, (503, refusal("QUEUE_FULL", retryable=True)), (202, RECORD)]
    submitted = await client.submit("a.b", {"x": 1})
    assert submitted.action.state is ActionState.RUNNING
    bodies = [body for _, _, body in flaky.seen]
    assert len(set(bodies)) == 1
    assert b'"idempotency_key":"' in bodies[0]


async def test_a_lost_answer_is_not_asked_for_again_where_that_would_do_it_twice(
    flaky: Flaky, client: Client
) -> None:
    once: list[Callable[[], Awaitable[object]]] = [
        lambda: client.submit("a.b", idempotency_key=""),
        lambda: client.sessions.open("agent"),
        lambda: client.plugins.restart("notebook"),
    ]
    for ask in once:
        flaky.script = [None]
        with pytest.raises(Unreachable) as lost:
            await ask()
        assert lost.value.written is not False
        assert flaky.script == []


async def test_what_was_refused_for_now_is_always_asked_again(flaky: Flaky, client: Client) -> None:
    opened = (
        b'{"session": {"session_id": "s", "tenant": "t", "initiator": "a",'
        b'"responder": "b", "state": "new", "created_at_ms": 1, "updated_at_ms": 1,'
        b'"cursor": "", "floor": ""}, "resume_token": "r"}'
    )
    flaky.script = [(503, refusal("DRAINING", retryable=True)), (201, opened)]
    assert (await client.sessions.open("agent")).session.responder == "b"
    flaky.script = [(503, refusal("DRAINING", retryable=True))] * 4
    with pytest.raises(Unavailable):
        await client.sessions.open("agent")


async def test_a_resume_is_one_attempt_however_often_it_is_asked(
    flaky: Flaky, client: Client
) -> None:
    flaky.script = [None, None, (410, refusal("RESUME_SPENT"))]
    with pytest.raises(Gone) as refused:
        await client.sessions.resume("token")
    assert refused.value.code == "RESUME_SPENT"
    assert len({body for _, _, body in flaky.seen}) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Invalid),
        (401, Unauthenticated),
        (403, Forbidden),
        (410, Gone),
        (413, Invalid),
        (418, ServerFailed),
        (500, ServerFailed),
    ],
)
async def test_refusals_are_exceptions_with_everything_that_was_said(
    flaky: Flaky, client: Client, status: int, kind: type[ApiError]
) -> None:
    flaky.script = [(status, refusal("SOME_CODE"))]
    with pytest.raises(kind) as refused:
        await client.result(ACTION)
    fault = refused.value
    assert (fault.status, fault.code, fault.path, fault.data) == (
        status,
        "SOME_CODE",
        "$.x",
        {"a": 1},
    )
    assert str(fault) == "$.x: m"


async def test_answers_of_somebody_else_are_told_apart(flaky: Flaky, client: Client) -> None:
    flaky.script = [(502, b"<html>secret of a proxy</html>")]
    with pytest.raises(ServerFailed) as refused:
        await client.result(ACTION)
    assert "proxy" not in str(refused.value)
    flaky.script = [(200, b"{}"), (200, b"\xff"), (302, b"")]
    for _ in range(2):
        with pytest.raises(DecodeFailure):
            await client.result(ACTION)
    with pytest.raises((DecodeFailure, ApiError)):
        await client.result(ACTION)  # a redirect is not followed: the key is for this host


async def test_the_key_is_sent_as_a_bearer_and_shown_nowhere(flaky: Flaky, client: Client) -> None:
    flaky.script = [(200, RECORD)]
    await client.get(ACTION)
    assert flaky.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(client) + repr(client.sessions) + flaky.seen[0][1]


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8717", "ftp://x", "http://user:pass@x", "http://x/?key=1"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="address"):
        Client(url, KEY)


def test_a_key_that_would_break_a_header_is_refused() -> None:
    for key in ("a\r\nX: y", "a b", "\x00", "schlüssel"):
        with pytest.raises(UsageError, match="no key has") as refused:
            Client("http://127.0.0.1", key)
        assert key not in str(refused.value)


async def test_an_address_with_a_path_is_kept(flaky: Flaky) -> None:
    flaky.script = [(200, RECORD)]
    async with Client(f"{flaky.url}/behind/a/proxy/", KEY, pause=no_pause) as client:
        await client.get(ACTION)
    assert flaky.seen[0][1] == f"/behind/a/proxy/v1/actions/{ACTION}"


async def test_plugins_are_told_restarted_and_reloaded(rig: Rig) -> None:
    admin = rig.client("root", Scope.ADMIN)
    statuses = await admin.plugins.list()
    assert [(status.plugin, status.last_words) for status in statuses] == [
        ("notebook", ()),
        ("broken", ()),
    ]
    assert await admin.plugins.logs("notebook") == ("loading", "ready")
    assert await admin.plugins.logs("notebook", limit=1) == ("ready",)
    assert (await admin.plugins.restart("notebook")).state == "ready"
    assert (await admin.plugins.reload("notebook", user_id="u2")).user_id == "u2"
    assert rig.plugins.asked == [("restart", "notebook", "local"), ("reload", "notebook", "u2")]
    with pytest.raises(ApiError) as refused:
        await admin.plugins.get("nothing")
    assert refused.value.code == "UNKNOWN_PLUGIN"
    with pytest.raises(Unavailable, match="exited with code 7") as failed:
        await admin.plugins.restart("broken")
    assert failed.value.code == "PLUGIN_NOT_STARTED"


async def test_openapi_is_to_be_had_without_a_key(rig: Rig) -> None:
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{rig.url}/v1/openapi.json") as response,
    ):
        assert (await response.json())["openapi"] == "3.1.0"
    document = await rig.client_of("").openapi()
    assert bytes(document).startswith(b"{")
