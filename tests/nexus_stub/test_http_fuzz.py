"""Nonsense at every endpoint: a defined answer to each, and nothing left behind.

Seeded, so that a failure is the same again. Bodies are valid ones with members taken
away, replaced or nested, and JSON that has nothing to do with the endpoint.
"""

import random
from typing import Any, Final, cast

import aiohttp
import pytest

from executa_nexus_stub import NexusStub
from executa_nexus_stub.http.routes import BASE, ENDPOINTS, Endpoint
from executa_nexus_stub.http.server import NexusServer
from executa_protocol import codec
from tests.nexus_stub.calls import ask, opening, run, session, tokens

ROUNDS: Final = 40
ODD: Final[list[Any]] = [
    None, True, 0, -1, 2**70, 1.5, "", "x" * 2000, "../a", "\u0000", "\u202e", "\U0001f600",
    [], {}, [[]], {"a": {"b": []}}, [None] * 70, "*", "user", {"type": "text", "text": "x"},
]  # fmt: skip

VALID: Final[dict[str, Any]] = {
    "/executa/invokes": codec.decode_any(codec.encode(opening())),
    "/copilot/sampling": codec.decode_any(codec.encode(ask("Boats float."))),
    "/copilot/app/sessions/from_sampling": {"kind": "agent", "agent_submode": "auto"},
    "/copilot/app/sessions/{uuid}/refresh": {"ttl_seconds": 60},
    "/copilot/app/agent": codec.decode_any(codec.encode(run("Boats float."))),
    "/copilot/app/agent/cancel": {"run_id": "r"},
    "/copilot/app/agent/tool_result": {"run_id": "r", "call_id": "c", "ok": True, "data": {}},
    "/admin/faults": {"rules": [], "seed": 1},
    "/admin/grants": {"user_id": "u", "plugin": "p", "changes": {}},
}
STORAGE: Final = {
    "key": "a/b", "path": "a/b", "value": {"x": 1}, "scope": "tool", "prefix": "a/", "limit": 5,
    "size_bytes": 3, "content_type": "text/plain", "ttl_seconds": 60, "if_match": "e",
    "tags": ["t"], "metadata": {"m": 1}, "cursor": "c",
}  # fmt: skip


def odd(dice: random.Random, value: Any) -> Any:
    """`value` with something wrong in it, or something else altogether."""
    if dice.random() < 0.2:
        return dice.choice(ODD)
    if isinstance(value, dict) and value:
        changed = dict(cast("dict[str, Any]", value))
        for name in dice.sample(sorted(changed), dice.randint(0, min(2, len(changed)))):
            if dice.random() < 0.4:
                del changed[name]
            else:
                changed[name] = odd(dice, changed[name])
        if dice.random() < 0.2:
            changed["unknown"] = dice.choice(ODD)
        return changed
    if isinstance(value, list) and value:
        return [odd(dice, item) for item in cast("list[Any]", value)]
    return dice.choice(ODD)


def body_of(dice: random.Random, endpoint: Endpoint) -> bytes:
    """Some bytes for an endpoint."""
    valid = VALID.get(endpoint.path, STORAGE)
    data = codec.encode(odd(dice, valid))
    if dice.random() < 0.1:
        data = data[: dice.randint(0, len(data))] + dice.choice([b"", b"\xff", b"\x00", b"]]"])
    return data


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: f"{e.method} {e.path}")
async def test_nonsense_has_a_defined_answer(stub: NexusStub, endpoint: Endpoint) -> None:
    dice = random.Random(f"7 {endpoint.method} {endpoint.path}")  # noqa: S311 - reproducible
    sampling, storage = await tokens(stub)
    minted = await session(stub)
    bearers = {"sampling token": sampling, "storage token": storage, "session token": minted.token}
    async with NexusServer(stub) as server, aiohttp.ClientSession(server.url) as web:
        for _ in range(ROUNDS):
            token = bearers.get(endpoint.bearer, "")
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            names = {"uuid": minted.app_session_uuid, "id": dice.choice(["0" * 32, "x", "%00"])}
            path = BASE + endpoint.path.format(**names)
            body = body_of(dice, endpoint)
            async with web.request(endpoint.method, path, data=body, headers=headers) as response:
                text = await response.read()
                assert response.status < 500, (body, text)
                if response.status >= 400:
                    assert set(codec.decode_any(text)) == {"error"}, (body, text)
    stub.faults.use(type(stub.config.faults)())
    assert stub.in_flight == stub.pending_count == 0
