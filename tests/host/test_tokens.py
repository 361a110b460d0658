"""Tokens and grants come from nexus, and are renewed while an invoke runs long (R-39)."""

import asyncio
import json
from typing import Any

import pytest

from executa_host import InvokeHandle, InvokeRefused, InvokeTimeout
from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.faults import FaultConfig, FaultRule
from executa_protocol import transcript
from executa_protocol.errors import UsageError
from executa_protocol.gate import Verdict
from executa_protocol.limits import TOKEN_RENEW_BEFORE, TOKEN_TTL
from executa_protocol.nexus import AppContext, InvokeGrant, NexusError
from tests.host.clocks import HostClock
from tests.host.conftest import MakeRig, Rig, soon
from tests.host.scripted_model import ScriptedModel

GET = {"key": "k", "scope": "tool"}


class Long:
    """An invoke that runs for as long as a test wants, on a clock that the test moves."""

    def __init__(self, make_rig: MakeRig, *rules: FaultRule, ttl: float = TOKEN_TTL) -> None:
        self.clock = HostClock()
        self.model = ScriptedModel()
        config = StubConfig(faults=FaultConfig(rules=rules, seed=1), token_ttl=ttl)
        self.nexus = NexusStub(config, clock=self.clock, models=[self.model])
        self.rig: Rig = make_rig(self.nexus, clock=self.clock)
        self.rig.add()
        self.renewals = 0
        renew = self.nexus.renew_invoke
        self.renewed = asyncio.Event()

        async def noted(invoke_id: str) -> InvokeGrant:
            self.renewals += 1
            try:
                return await renew(invoke_id)
            finally:
                self.renewed.set()

        self.nexus.renew_invoke = noted

    async def begin(self, *after: tuple[str, dict[str, Any]]) -> InvokeHandle:
        """Begin an invoke whose first reverse call waits for `release`."""
        hold = {"role": "user", "content": {"type": "text", "text": "hold x"}}
        first = ("sampling/createMessage", {"messages": [hold], "maxTokens": 5})
        calls = [{"method": method, "params": params} for method, params in (first, *after)]
        handle = self.rig.host.begin("raw", "calls", {"calls": calls}, timeout=86_400)
        await self.model.reached("x")
        return handle

    async def finish(self, handle: InvokeHandle) -> list[dict[str, Any]]:
        self.model.release("x")
        return (await soon(handle.result())).data

    async def renewal(self) -> None:
        async with asyncio.timeout(5):
            await self.renewed.wait()
        self.renewed.clear()
        await asyncio.sleep(0)


def _codes(answers: list[dict[str, Any]]) -> list[int]:
    return [answer["error"]["code"] if "error" in answer else 0 for answer in answers]


async def test_tokens_are_renewed_thirty_seconds_before_they_expire_and_not_earlier(
    make_rig: MakeRig,
) -> None:
    long = Long(make_rig)
    handle = await long.begin(("storage/get", GET))
    long.clock.advance(TOKEN_TTL - TOKEN_RENEW_BEFORE - 1)
    await asyncio.sleep(0)
    assert long.renewals == 0
    long.clock.advance(1)
    await long.renewal()
    for _ in range(3):
        long.clock.advance(TOKEN_TTL - TOKEN_RENEW_BEFORE)
        await long.renewal()
    assert long.renewals == 4
    assert _codes(await long.finish(handle))[1] == 0
    assert long.clock.pending_count == 0


async def test_tokens_that_hardly_live_are_not_renewed_all_the_time(make_rig: MakeRig) -> None:
    long = Long(make_rig, ttl=20)
    handle = await long.begin(("storage/get", GET))
    assert long.renewals == 1  # for the first call, whose token was as good as expired
    long.renewed.clear()
    for count in range(2, 10):
        long.clock.advance(5)
        await long.renewal()
        assert long.renewals == count
    assert _codes(await long.finish(handle))[1] == 0


async def test_a_renewal_that_fails_is_tried_again(make_rig: MakeRig) -> None:
    long = Long(make_rig, FaultRule(kind="error", endpoint="renew_invoke", times=2))
    handle = await long.begin(("storage/get", GET))
    long.clock.advance(TOKEN_TTL - TOKEN_RENEW_BEFORE)
    await long.renewal()
    for _ in range(2):
        long.clock.advance(5)
        await long.renewal()
    long.clock.advance(TOKEN_TTL - TOKEN_RENEW_BEFORE - 1)
    assert long.renewals == 3
    assert _codes(await long.finish(handle))[1] == 0


async def test_a_token_that_could_not_be_renewed_refuses_with_what_nexus_said(
    make_rig: MakeRig,
) -> None:
    long = Long(make_rig, FaultRule(kind="error", endpoint="renew_invoke", status=503))
    handle = await long.begin(("storage/get", GET))
    for _ in range(6):
        long.clock.advance(TOKEN_TTL / 6)
        await asyncio.sleep(0)
    assert _codes(await long.finish(handle))[1] == -32029


async def test_a_grant_that_was_taken_away_meanwhile_counts_after_a_renewal(
    make_rig: MakeRig,
) -> None:
    long = Long(make_rig)
    handle = await long.begin(("storage/get", GET))
    long.nexus.directory.change("local", "raw", storage=False, files=False)
    long.clock.advance(TOKEN_TTL - TOKEN_RENEW_BEFORE)
    await long.renewal()
    assert _codes(await long.finish(handle))[1] == -32021


async def test_tokens_of_a_cancelled_invoke_are_ended_and_never_renewed_again(
    make_rig: MakeRig,
) -> None:
    long = Long(make_rig)
    handle = await long.begin()
    await handle.cancel()
    await asyncio.sleep(0)
    long.clock.advance(10_000)
    await long.rig.host.close()
    assert long.renewals == 0
    assert long.nexus.open_invokes == 0


# --- Opening ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "symbol"),
    [
        (FaultRule(kind="error", endpoint="open_invoke", status=503), "INTERNAL_ERROR"),
        (FaultRule(kind="error", endpoint="open_invoke", status=412), "INTERNAL_ERROR"),
        (FaultRule(kind="rate_limit", endpoint="open_invoke"), "INTERNAL_ERROR"),
    ],
    ids=["down", "412", "429"],
)
async def test_an_invoke_that_nexus_does_not_open_is_refused_and_recorded(
    make_rig: MakeRig, rule: FaultRule, symbol: str
) -> None:
    rig = make_rig(NexusStub(StubConfig(faults=FaultConfig(rules=(rule,)))))
    rig.add()
    with pytest.raises(InvokeRefused, match="nexus did not open the invoke") as refused:
        await rig.host.invoke("raw", "echo", {"value": {}})
    assert refused.value.symbol == symbol
    assert rig.seen(transcript.InvokeEnded)[0].outcome == symbol


async def test_a_nexus_that_does_not_answer_in_time_costs_the_invoke_its_time(
    make_rig: MakeRig,
) -> None:
    rule = FaultRule(kind="latency", endpoint="open_invoke", seconds=3600)
    rig = make_rig(NexusStub(StubConfig(faults=FaultConfig(rules=(rule,)))))
    rig.add()
    await rig.host.start("raw")
    with pytest.raises(InvokeTimeout, match="nexus") as late:
        await rig.host.invoke("raw", "echo", {"value": {}}, timeout=0.3)
    assert late.value.written is False


async def test_a_missing_credential_refuses_by_name_and_closes_what_was_opened(
    rig: Rig,
) -> None:
    credentials = [{"name": "OPENAI_API_KEY", "description": "x"}]
    rig.add("--manifest", json.dumps({"credentials": credentials}))
    with pytest.raises(InvokeRefused, match="OPENAI_API_KEY"):
        await rig.host.invoke("raw", "echo", {"value": {}})
    await rig.host.close()
    assert rig.nexus.open_invokes == 0


async def test_only_declared_credentials_are_sent_and_the_specs_own_win(rig: Rig) -> None:
    wanted = [
        {"name": "FROM_SPEC", "description": "x"},
        {"name": "WITH_DEFAULT", "description": "x", "default": "d"},
        {"name": "OPTIONAL", "description": "x", "required": False},
    ]
    manifest = json.dumps({"credentials": wanted})
    rig.add("--manifest", manifest, credentials={"FROM_SPEC": "s", "UNDECLARED": "u"})
    context = (await rig.host.invoke("raw", "whoami")).data["params"]["context"]
    assert context["credentials"] == {"FROM_SPEC": "s", "WITH_DEFAULT": "d"}


# --- The app (R-29) --------------------------------------------------------------------------


async def test_the_app_scope_opens_for_an_attested_app_alone(rig: Rig) -> None:
    rig.add()
    asked = {"method": "storage/get", "params": {"key": "k", "scope": "app"}}
    without = (await rig.host.invoke("raw", "reverse", asked)).data
    assert _codes([without]) == [-32021]
    assert without["error"]["data"]["errorCode"] == "forbidden_scope"
    app = AppContext(app_id="app_1", app_slug="notes")
    inside = (await rig.host.invoke("raw", "reverse", asked, app=app)).data
    assert inside["result"]["exists"] is False
    begun = await rig.host.begin("raw", "reverse", asked, app=app).result()
    assert "result" in begun.data


# --- Why -------------------------------------------------------------------------------------


def _verdicts(verdicts: list[Verdict]) -> dict[str, bool | None]:
    return {verdict.step: verdict.passed for verdict in verdicts}


async def test_why_knows_the_grant_once_an_invoke_was_opened(rig: Rig) -> None:
    rig.nexus.directory.change("local", "raw", agent=False)
    rig.add()
    await rig.host.start("raw")
    assert _verdicts(rig.host.why("raw", "agent/session.run"))["grant"] is None
    await rig.host.invoke("raw", "echo", {"value": {}})
    assert _verdicts(rig.host.why("raw", "agent/session.run"))["grant"] is False
    assert _verdicts(rig.host.why("raw", "sampling/createMessage"))["grant"] is True


async def test_asking_why_asks_nexus_and_leaves_nothing_open(rig: Rig) -> None:
    rig.nexus.directory.change("local", "raw", sampling=False, agent=False)
    rig.add()
    verdicts = await rig.host.ask_why("raw", "sampling/createMessage")
    assert _verdicts(verdicts) == {
        "negotiated": True,
        "manifest": True,
        "correlate": None,
        "grant": False,
        "token": False,
        "scope": None,
        "budget": None,
        "nexus": None,
    }
    assert _verdicts(await rig.host.ask_why("raw", "storage/get"))["token"] is True
    assert not rig.seen(transcript.InvokeStarted)
    await rig.host.close()
    assert rig.nexus.open_invokes == 0


async def test_why_needs_a_plugin_that_runs_and_a_method_that_it_may_call(rig: Rig) -> None:
    rig.add()
    with pytest.raises(UsageError, match="does not run"):
        rig.host.why("raw", "storage/get")
    for method in ("invoke", "no/such", "executa/progress"):
        with pytest.raises(UsageError, match="no method that a plugin can call"):
            await rig.host.ask_why("raw", method)


async def test_asking_why_of_a_nexus_that_is_down_says_so(make_rig: MakeRig) -> None:
    rule = FaultRule(kind="error", endpoint="open_invoke")
    rig = make_rig(NexusStub(StubConfig(faults=FaultConfig(rules=(rule,)))))
    rig.add()
    with pytest.raises(NexusError):
        await rig.host.ask_why("raw", "storage/get")
