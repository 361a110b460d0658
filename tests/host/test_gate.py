"""Reverse calls from a real plugin: each step of R-22 refuses with its own code."""

import asyncio
import json
from typing import Any

import pytest

from executa_protocol import transcript
from executa_protocol.errors import UsageError
from tests.host.conftest import Rig

SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Tea is hot. Ice is cold."}}],
    "maxTokens": 50,
}
GET = {"key": "k", "scope": "tool"}
CREATE = {"kind": "agent", "agent_submode": "auto"}


def _error(answer: dict[str, Any]) -> tuple[int, str, str]:
    error = answer["error"]
    data = error["data"]
    return error["code"], data["errorCode"], data.get("missing", {}).get("step", "")


async def test_sampling_is_served(rig: Rig) -> None:
    rig.add()
    answer = await rig.reverse("sampling/createMessage", SAMPLE)
    assert answer["result"]["content"]["text"]
    assert answer["result"]["role"] == "assistant"


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("sampling/createMessage", SAMPLE, -32008),
        ("agent/complete", {"prompt": "x", "max_tokens": 5}, -32041),
        ("agent/session.create", CREATE, -32041),
        ("storage/get", GET, -32021),
        ("files/list", {"scope": "tool"}, -32021),
    ],
)
async def test_an_undeclared_capability_is_refused_with_its_chapters_code(
    rig: Rig, method: str, params: dict[str, Any], code: int
) -> None:
    rig.add("--manifest", json.dumps({"host_capabilities": ["web.search"]}))
    answer = await rig.reverse(method, params)
    assert answer["error"]["code"] == code
    missing = answer["error"]["data"]["missing"]
    assert missing["step"] == "manifest"
    assert missing["needs"]


@pytest.mark.parametrize(
    ("declared", "needs"),
    [
        (["llm.sample"], ["llm.agent.auto"]),
        (["llm.agent.auto"], ["llm.sample"]),
        (["aps.kv"], ["llm.sample", "llm.agent.auto"]),
    ],
)
async def test_agent_sessions_need_both_strings_and_the_refusal_names_the_missing(
    rig: Rig, declared: list[str], needs: list[str]
) -> None:
    rig.add("--manifest", json.dumps({"host_capabilities": declared}))
    answer = await rig.reverse("agent/session.create", CREATE)
    assert _error(answer) == (-32041, "AGENT_NOT_GRANTED", "manifest")
    assert answer["error"]["data"]["missing"]["needs"] == needs


@pytest.mark.parametrize("declared", ["aps.kv", "aps.scope.user.read", "aps"])
async def test_a_scope_string_unlocks_key_value_storage_as_aps_kv_does(
    rig: Rig, declared: str
) -> None:
    rig.add("--manifest", json.dumps({"host_capabilities": [declared]}))
    answer = await rig.reverse("storage/get", GET)
    assert answer["result"]["exists"] is False


async def test_strict_mode_wants_the_sampling_key(strict_rig: Rig) -> None:
    answer = {"protocolVersion": "2.0", "server_info": {"name": "raw"}, "capabilities": {}}
    strict_rig.add("--init", json.dumps(answer))
    refused = await strict_rig.reverse("sampling/createMessage", SAMPLE)
    assert _error(refused) == (-32008, "not_negotiated", "negotiated")


@pytest.mark.parametrize(
    ("grant", "method", "params", "expected"),
    [
        ("sampling", "sampling/createMessage", SAMPLE, (-32001, "NOT_GRANTED", "grant")),
        ("agent", "agent/session.create", CREATE, (-32041, "AGENT_NOT_GRANTED", "grant")),
        ("storage", "storage/get", GET, (-32021, "not_granted", "grant")),
    ],
)
async def test_a_grant_that_the_user_took_away_refuses(
    rig: Rig, grant: str, method: str, params: dict[str, Any], expected: tuple[int, str, str]
) -> None:
    rig.nexus.directory.change("local", "raw", **{grant: False})
    rig.add()
    assert _error(await rig.reverse(method, params)) == expected


async def test_scopes_come_only_from_the_token(rig: Rig) -> None:
    rig.add()
    for scope in ("user", "tool"):
        assert "result" in await rig.reverse("storage/get", GET | {"scope": scope})
    for scope in ("app", "everything"):
        answer = await rig.reverse("storage/get", GET | {"scope": scope})
        assert _error(answer) == (-32021, "forbidden_scope", "scope")


async def test_an_unknown_method_and_one_that_is_not_served_are_told_apart(rig: Rig) -> None:
    rig.add()
    assert _error(await rig.reverse("no/such", {}))[:2] == (-32601, "METHOD_NOT_FOUND")
    assert _error(await rig.reverse("invoke", {}))[:2] == (-32601, "METHOD_NOT_FOUND")
    assert _error(await rig.reverse("image/generate", {}))[:2] == (-32601, "UNMAPPED_METHOD")


@pytest.mark.parametrize(
    ("method", "params", "code", "path"),
    [
        ("sampling/createMessage", SAMPLE | {"maxTokens": 0}, -32004, "maxTokens"),
        ("sampling/createMessage", {"maxTokens": 5}, -32004, ""),
        ("storage/get", {"key": "../x", "scope": "tool"}, -32027, "key"),
        ("storage/set", GET, -32028, ""),
        ("agent/session.create", {"kind": "agent"}, -32042, "agent_submode"),
        ("agent/session.create", {"kind": "fixed"}, -32043, "fixed_client_id"),
        ("agent/session.create", {"kind": "other"}, -32602, "kind"),
    ],
)
async def test_bad_params_are_answered_with_the_path_of_the_fault(
    rig: Rig, method: str, params: dict[str, Any], code: int, path: str
) -> None:
    rig.add()
    error = (await rig.reverse(method, params))["error"]
    assert error["code"] == code
    assert error["data"].get("path", "") == path


async def test_a_call_that_names_no_invoke_belongs_to_the_only_one(rig: Rig) -> None:
    rig.add()
    assert "result" in await rig.reverse("storage/get", GET, stamp=False)


async def test_a_call_that_names_no_invoke_among_several_is_refused(rig: Rig) -> None:
    rig.add()
    hanging = asyncio.ensure_future(rig.host.invoke("raw", "hang"))
    await rig.until(lambda event: isinstance(event, transcript.InvokeStarted))
    answer = await rig.reverse("storage/get", GET, stamp=False)
    assert _error(answer)[:2] == (-32602, "MISSING_INVOKE_CONTEXT")
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging


async def test_an_unknown_invoke_is_refused_even_when_exactly_one_is_active(rig: Rig) -> None:
    rig.add()
    params = GET | {"context": {"invoke_id": "0" * 32}}
    answer = await rig.reverse("storage/get", params, stamp=False)
    assert _error(answer)[:2] == (-32602, "UNKNOWN_INVOKE_CONTEXT")


async def test_each_step_of_the_gate_has_its_verdict_without_a_call(rig: Rig) -> None:
    rig.add("--manifest", json.dumps({"host_capabilities": ["llm.sample"]}))
    await rig.host.start("raw")
    verdicts = {verdict.step: verdict for verdict in rig.host.why("raw", "agent/session.run")}
    assert list(verdicts) == [
        "negotiated",
        "manifest",
        "correlate",
        "grant",
        "token",
        "scope",
        "budget",
        "nexus",
    ]
    assert verdicts["negotiated"].passed is True
    assert verdicts["manifest"].passed is False
    assert verdicts["manifest"].refusal is not None
    assert verdicts["manifest"].refusal.needs == ("llm.agent.auto",)
    assert verdicts["budget"].passed is None
    with pytest.raises(UsageError, match="no method that a plugin can call"):
        rig.host.why("raw", "describe")


async def test_tokens_of_an_invoke_end_with_it(rig: Rig) -> None:
    rig.add()
    await rig.host.invoke("raw", "whoami")
    await rig.host.close()
    assert rig.nexus.open_invokes == 0


async def test_the_older_storage_names_are_served_and_get_answers_found_too(rig: Rig) -> None:
    rig.add()
    missing, _, found, current = await rig.calls(
        ("storage/kv_get", GET | {"storage_token": "ignored"}),
        ("storage/kv_set", GET | {"value": 7}),
        ("storage/kv_get", GET),
        ("storage/get", GET),
    )
    assert (missing["result"]["exists"], missing["result"]["found"]) == (False, False)
    assert (found["result"]["value"], found["result"]["found"]) == (7, True)
    assert "found" not in current["result"]


async def test_strict_mode_does_not_know_the_older_names(strict_rig: Rig) -> None:
    strict_rig.add()
    (answer,) = await strict_rig.calls(("storage/kv_get", GET))
    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"]["requirement"] == "STOR-006"


async def test_metadata_tells_which_of_several_invokes_calls(rig: Rig) -> None:
    rig.add()
    hanging = asyncio.ensure_future(rig.host.invoke("raw", "hang"))
    await rig.until(lambda event: isinstance(event, transcript.InvokeStarted))
    hinted = GET | {
        "metadata": {"executa_invoke_id": rig.seen(transcript.InvokeStarted)[0].invoke_id}
    }
    assert "result" in await rig.reverse("storage/get", hinted, stamp=False)
    unknown = GET | {"metadata": {"executa_invoke_id": "0" * 32}}
    answer = await rig.reverse("storage/get", unknown, stamp=False)
    assert _error(answer)[:2] == (-32602, "MISSING_INVOKE_CONTEXT")
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
