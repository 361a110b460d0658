"""No token, key or credential gets out: not into an event, a log, an error, a result, a file.

The one place where tokens and credentials stand is the context of an `invoke`, which is
theirs. Here everything that a host lets out passes a scanner while all kinds of calls go
through it: served, refused, failed, timed out, with nexus in this process and over HTTP,
healthy and broken.
"""

import json
import logging
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from rich.pretty import pretty_repr

from executa_host import PluginSpec
from executa_host.config import read_config
from executa_host.nexus.calls import Call
from executa_host.nexus.http import HttpNexus
from executa_nexus_stub.faults import FaultRule
from tests.host.nexus_server import ScriptedNexus
from tests.host.secret_scanner import LogScan, Scanner
from tests.host.secret_watch import (
    FROM_NEXUS,
    FROM_SPEC,
    KEY,
    OF_ANOTHER,
    UNDECLARED,
    Watched,
    no_pause,
    watched_host,
)

SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Tea is hot. Ice is cold."}}],
    "maxTokens": 50,
}
AT_SCOPE = {"key": "k", "scope": "tool"}
REVERSE: list[tuple[str, dict[str, Any]]] = [
    ("sampling/createMessage", SAMPLE),
    ("sampling/createMessage", SAMPLE | {"maxTokens": 8193}),
    ("sampling/createMessage", {"maxTokens": 5}),
    ("agent/complete", {"prompt": "Tea is hot.", "max_tokens": 20}),
    ("agent/session.create", {"kind": "agent", "agent_submode": "auto", "label": "l"}),
    ("agent/session.create", {"kind": "fixed", "fixed_client_id": "no.such"}),
    ("agent/session.list", {}),
    ("agent/session.run", {"app_session_uuid": "unknown", "content": "x"}),
    ("storage/set", AT_SCOPE | {"value": {"a": 1}}),
    ("storage/set", AT_SCOPE | {"value": 1, "if_match": "other"}),
    ("storage/get", AT_SCOPE),
    ("storage/get", AT_SCOPE | {"scope": "app"}),
    ("storage/get", AT_SCOPE | {"key": "../x"}),
    ("storage/list", {"scope": "user", "prefix": "", "cursor": "made-up"}),
    ("files/list", {"scope": "tool"}),
    ("files/download_url", {"scope": "tool", "path": "gone.txt"}),
    ("image/generate", {}),
    ("no/such", {}),
]


@pytest.fixture
def scanner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Scanner]:
    """A scanner that reads every log record of this process."""
    found = Scanner()
    for what, secret in (
        ("the host's key", KEY),
        ("a credential of nexus", FROM_NEXUS),
        ("a credential of the spec", FROM_SPEC),
        ("a credential of another plugin", OF_ANOTHER),
        ("an undeclared credential", UNDECLARED),
    ):
        found.add(what, secret)
    monkeypatch.setenv("STUB_HOST_KEY", KEY)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    root, handler = logging.getLogger(), LogScan(found)
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield found
    root.setLevel(before)
    root.removeHandler(handler)


@pytest.fixture(params=["direct", "http"])
async def watched(
    request: pytest.FixtureRequest, scanner: Scanner, tmp_path: Path
) -> AsyncIterator[Watched]:
    """A watched host over a healthy stub."""
    async with watched_host(request.param, scanner, tmp_path) as made:
        yield made


async def test_the_scanner_finds_tokens_and_credentials_where_they_belong(
    watched: Watched,
) -> None:
    """Or it would find nothing anywhere: a plugin that gives its context away, here on purpose."""
    watched.add("raw")
    outcome = await watched.host.invoke("raw", "whoami")
    context = outcome.data["params"]["context"]
    assert context["credentials"] == {"CLOUD_KEY": FROM_NEXUS, "LOCAL_KEY": FROM_SPEC}
    hits = watched.scanner.hits(json.dumps(context))
    assert "a credential of nexus" in hits
    assert "a credential of the spec" in hits
    assert sum("token" in hit for hit in hits) == 6
    assert KEY not in json.dumps(outcome.data["params"])


async def test_nothing_gets_out_of_a_mixed_load(watched: Watched) -> None:
    scanner = watched.scanner
    watched.add("raw")
    watched.add("other")
    for plugin in ("raw", "other"):
        for method, params in REVERSE:
            outcome = await watched.invoke(plugin, "reverse", {"method": method, "params": params})
            assert outcome.success, outcome
    created = await watched.invoke(
        "raw",
        "reverse",
        {"method": "agent/session.create", "params": {"kind": "agent", "agent_submode": "auto"}},
    )
    uuid = created.data["result"]["app_session_uuid"]
    for method, params in (
        ("agent/session.run", {"content": "Use raw.echo and say what it holds."}),
        ("agent/session.refresh", {"ttl_seconds": 600}),
        ("agent/session.list", {}),
        ("agent/session.cancel", {"run_id": "none"}),
        ("agent/session.delete", {}),
    ):
        asked = {"method": method, "params": {"app_session_uuid": uuid, **params}}
        await watched.invoke("raw", "reverse", asked)
    await watched.invoke("raw", "fail")
    await watched.invoke("raw", "late")
    await watched.invoke("raw", "progress", {"count": 3})
    await watched.invoke("raw", "hang", timeout=0.05)
    await watched.invoke("raw", "no-such-tool")
    await watched.invoke("raw", "raw", {"line": '{"id":$ID,"jsonrpc":"2.0","result":NaN}'})
    await watched.invoke("raw", "die", {"code": 3})
    await watched.invoke("raw", "echo", {"value": {}})
    assert scanner.looked > 200
    assert sum("token" in what for what in scanner.secrets.values()) > 50
    assert scanner.found == []


async def test_nothing_gets_out_when_invokes_are_refused(watched: Watched) -> None:
    watched.add("raw", credentials={})
    missing = await watched.invoke("raw", "echo", {"value": {}})
    assert "LOCAL_KEY" in str(missing)
    watched.host.add(PluginSpec(name="ghost", command=("no-such-command-anywhere",)))
    await watched.invoke("ghost", "echo")
    watched.add("old", "--v1")
    await watched.invoke("old", "echo", {"value": {}})
    assert watched.scanner.found == []


async def test_no_repr_and_no_pretty_printer_shows_a_secret(
    scanner: Scanner, tmp_path: Path
) -> None:
    file = tmp_path / "host.toml"
    file.write_text(
        """
        [nexus]
        kind = "http"
        url = "http://127.0.0.1:1"
        key = { env = "A" }
        [plugins.x]
        command = ["x"]
        credentials = { LOCAL_KEY = { env = "B" } }
        env = { LOCAL_KEY = { env = "B" } }
        """
    )
    config = read_config(file, environ={"A": KEY, "B": FROM_SPEC})
    call = Call(path="/x", chapter="agent", seconds=1, bearer=KEY, body=FROM_SPEC.encode())
    assert config.nexus.key == KEY
    assert config.plugins[0].credentials == {"LOCAL_KEY": FROM_SPEC}
    nexus = config.build_nexus()
    for thing in (config, config.nexus, *config.plugins, nexus, call, config.build()):
        scanner.look("a repr", repr(thing) + str(thing) + pretty_repr(thing))
    await nexus.aclose()
    assert scanner.found == []


FAULTS = {
    "errors": [FaultRule(kind="error", rate=0.5, status=500)],
    "refusals": [FaultRule(kind="error", rate=0.5, status=401)],
    "limits": [FaultRule(kind="rate_limit", rate=0.5, retry_after=1)],
    "streams": [
        FaultRule(kind="cut", rate=0.4, after=1),
        FaultRule(kind="malformed", rate=0.4, after=0),
    ],
}


@pytest.mark.parametrize("kind", ["direct", "http"])
@pytest.mark.parametrize("faults", FAULTS)
async def test_nothing_gets_out_when_nexus_fails(
    kind: str, faults: str, scanner: Scanner, tmp_path: Path
) -> None:
    async with watched_host(kind, scanner, tmp_path, *FAULTS[faults]) as watched:
        watched.add("raw")
        for _ in range(3):
            for method, params in REVERSE:
                await watched.invoke("raw", "reverse", {"method": method, "params": params})
    assert scanner.found == []


async def test_nothing_gets_out_of_a_nexus_that_repeats_what_it_was_sent(
    scanner: Scanner, tmp_path: Path
) -> None:
    """Its errors hold the request's own token, and its body, in every place there is."""
    session = "session-token-c0ffee-0123456789"
    scanner.add("a session token", session)

    async def reply(request: web.Request) -> web.StreamResponse:
        shown = request.headers.get("Authorization", "")
        if request.path.endswith("/executa/invokes"):
            grant = {
                "grants": {"sampling": True, "agent": True, "storage": True, "files": True},
                "granted_tools": ["*"],
                "credentials": {"CLOUD_KEY": FROM_NEXUS, "OTHER": OF_ANOTHER},
                "sampling_token": {"value": "tok-sampling-5150", "expires_at": 9e9},
                "storage_token": {
                    "value": "tok-storage-5151", "expires_at": 9e9, "scopes": ["tool", "user"],
                },
            }  # fmt: skip
            return web.json_response(grant)
        if request.path.endswith("/from_sampling"):
            minted = {
                "app_session_uuid": "u", "token": session, "thread_id": "t", "expires_at": 9e9,
            }  # fmt: skip
            return web.json_response(minted)
        words = f"no: {shown} at {request.url}?token={shown[7:]}"
        error = {"message": words, "errorCode": shown, "token": shown[7:]}
        headers = {"X-Echo": shown, "Retry-After": "0"}
        return web.json_response({"error": error}, status=503, headers=headers)

    for token in ("tok-sampling-5150", "tok-storage-5151"):
        scanner.add("a token", token)
    async with ScriptedNexus(reply) as server:
        nexus = HttpNexus(server.url, key=KEY, pause=no_pause)
        watched = Watched(nexus, scanner, tmp_path)
        async with watched.host:
            watched.add("raw")
            create = {"kind": "agent", "agent_submode": "auto"}
            run = {"app_session_uuid": "u", "content": "x"}
            for method, params in (
                ("agent/session.create", create),
                ("agent/session.run", run),
                ("agent/session.refresh", {"app_session_uuid": "u"}),
                *REVERSE,
            ):
                await watched.invoke("raw", "reverse", {"method": method, "params": params})
        watched.finish()
        await nexus.aclose()
        assert any(session in seen.headers.get("Authorization", "") for seen in server.seen)
    assert scanner.found == []
