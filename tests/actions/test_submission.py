"""What is accepted, and what is refused before it reaches the disk, with the path of the fault."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from executa_host.actions.faults import ActionsError, Code
from executa_host.actions.limits import CONTEXT_BYTES, INPUT_BYTES
from executa_host.actions.records import (
    AppContext,
    Callback,
    Context,
    Mode,
    Observability,
    Transaction,
)
from executa_host.actions.requests import Caller, Include, Scope, Submission
from executa_host.actions.settings import CapabilityConfig, Delegation, EngineSettings
from tests.actions.rig import ANA, BOSS, Rig
from tests.actions.scripted import PATIENCE, raw

GOOD = raw({"text": "t"})


async def refusal(rig: Rig, caller: Caller = ANA, **members: Any) -> ActionsError:
    """How a submission is refused; nothing may come of it."""
    known: dict[str, Any] = {"capability": "p.read", "input": GOOD}
    with pytest.raises(ActionsError) as refused:
        await rig.engine.submit(caller, Submission(**(known | members)))
    assert (await rig.store.counts()).open == 0
    return refused.value


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (b"{}", "$.input.text"),
        (b'{"text":5}', "$.input.text"),
        (b'{"text":"t","n":"x"}', "$.input.n"),
        (b'{"text":"t","n":true}', "$.input.n"),
        (b"[]", "$.input"),
        (b'"text"', "$.input"),
        (b"", "$.input"),
        (b'{"text":"t"', "$.input"),
        (b'{"text":"\xff"}', "$.input"),
        (b'{"text":"\\ud800"}', "$.input"),
        (b'{"text":"t","n":1e999}', "$.input"),
        (b'{"text":"t","x":' + b"[" * 200 + b"]" * 200 + b"}", "$.input"),
        (b'{"text":"' + b"x" * INPUT_BYTES + b'"}', "$.input"),
    ],
    ids=range(13),
)
async def test_an_input_that_does_not_fit_is_refused_by_its_path(
    rig: Rig, given: bytes, path: str
) -> None:
    refused = await refusal(rig, input=Raw(given))
    assert (refused.code, refused.path, refused.retryable) == (Code.INVALID_INPUT, path, False)


async def test_all_faults_of_an_input_are_named(rig: Rig) -> None:
    refused = await refusal(rig, input=raw({"n": "x"}))
    assert [fault["path"] for fault in refused.data["faults"]] == ["$.input.text", "$.input.n"]


@pytest.mark.parametrize(
    ("members", "code", "path"),
    [
        ({"capability": "p.nothing"}, Code.UNKNOWN_CAPABILITY, "$.capability"),
        ({"capability": "nobody.read"}, Code.UNKNOWN_CAPABILITY, "$.capability"),
        ({"mode": Mode.STREAMING, "capability": "q.read"}, Code.MODE_NOT_OFFERED, "$.mode"),
        ({"idempotency_key": "k" * 257}, Code.INVALID_REQUEST, "$.idempotency_key"),
        ({"idempotency_key": "a\nb"}, Code.INVALID_REQUEST, "$.idempotency_key"),
        ({"timeout_ms": 0}, Code.OUT_OF_RANGE, "$.timeout_ms"),
        ({"timeout_ms": 86_400_001}, Code.OUT_OF_RANGE, "$.timeout_ms"),
        ({"expires_in_ms": -1}, Code.OUT_OF_RANGE, "$.expires_in_ms"),
        ({"approval": "maybe"}, Code.INVALID_REQUEST, "$.approval"),
        ({"context": Context(memory=raw([]))}, Code.INVALID_REQUEST, "$.context.memory"),
        (
            {"context": Context(identity=raw({"x": "y" * CONTEXT_BYTES}))},
            Code.INVALID_REQUEST,
            "$.context",
        ),
        (
            {"context": Context(observability=Observability("a\x00"))},
            Code.INVALID_REQUEST,
            "$.context.observability",
        ),
        (
            {"transaction": Transaction("")},
            Code.INVALID_REQUEST,
            "$.transaction.transaction_id",
        ),
        ({"transaction": Transaction("t", "", raw(1))}, Code.INVALID_REQUEST, "$.transaction.data"),
        ({"delegation": tuple("abcdefghijklmnopqrs")}, Code.INVALID_REQUEST, "$.delegation"),
        ({"delegation": ("boss", "a\x00")}, Code.INVALID_REQUEST, "$.delegation[1]"),
        ({"callback": Callback("http://hook.example/x")}, Code.CALLBACK_REFUSED, "$.callback.url"),
        ({"callback": Callback("https://10.0.0.1/x")}, Code.CALLBACK_REFUSED, "$.callback.url"),
    ],
    ids=map(str, itertools.count()),
)
async def test_a_submission_that_is_wrong_is_refused_by_its_path(
    rig: Rig, members: dict[str, Any], code: Code, path: str
) -> None:
    refused = await refusal(rig, **members)
    assert (refused.code, refused.path) == (code, path)


async def test_a_capability_whose_plugin_does_not_start_is_worth_a_retry(rig: Rig) -> None:
    rig.catalog.down = True
    refused = await refusal(rig)
    assert (refused.code, refused.retryable) == (Code.CAPABILITY_UNAVAILABLE, True)


async def test_a_key_without_the_scope_submits_nothing(rig: Rig) -> None:
    caller = Caller(principal="ana", scopes=frozenset({Scope.READ}))
    refused = await refusal(rig, caller)
    assert (refused.code, refused.data) == (Code.FORBIDDEN, {"missing": "actions:submit"})


async def test_an_app_is_attested_only_by_a_key_that_may(rig: Rig) -> None:
    app = AppContext("1", "one")
    assert (await refusal(rig, app=app)).code is Code.FORBIDDEN
    record = await rig.submit(caller=BOSS, app=app)
    run = await rig.runner.begun(record.action_id)
    run.answer()
    assert run.attempt.app == app


async def test_what_an_action_carries_is_given_back(rig: Rig) -> None:
    context = Context(
        conversation=raw({"id": 1}),
        memory=raw({"m": []}),
        identity=raw({"sub": "ana"}),
        compliance=raw({"region": "eu"}),
        observability=Observability("00-" + "1" * 32 + "-" + "2" * 16 + "-01"),
    )
    transaction = Transaction("tx", "2", raw({"total": 5}))
    record = await rig.submit(context=context, transaction=transaction, timeout_ms=1234)
    (await rig.runner.begun(record.action_id)).answer()
    view = await rig.engine.get(ANA, record.action_id, frozenset(Include))

    assert view is not None
    assert view.action.context == context
    assert view.action.transaction == transaction
    assert view.action.input == GOOD
    assert view.action.timeout_ms == 1234
    run = rig.runner.of(record.action_id)[0]
    assert (run.attempt.timeout_ms, run.attempt.observability) == (1234, context.observability)


async def test_settings_say_more_than_the_manifest(rig: Rig) -> None:
    rig.catalog.configured["p.*"] = CapabilityConfig(modes=(Mode.ASYNC,), timeout_ms=7)
    rig.catalog.configured["p.slow"] = CapabilityConfig(approval=True, approvers=("boss",))
    contracts = {each.capability: each for each in await rig.engine.capabilities(ANA)}

    assert contracts["p.read"].modes == (Mode.ASYNC,)
    assert contracts["p.read"].timeout_ms == 7
    assert contracts["p.slow"].approval
    assert contracts["p.slow"].timeout_ms == 5000
    assert contracts["p.send"].retry.attempts == 1
    assert contracts["q.read"].modes == (Mode.SYNC, Mode.ASYNC)
    assert contracts["q.read"].input_schema["required"] == ["text"]


# --- Room. ----------------------------------------------------------------------------------------


async def test_more_open_actions_than_there_is_room_for_are_refused(tmp_path: Path) -> None:
    async with Rig(tmp_path / "a.db", EngineSettings(open_actions=2)) as rig:
        runs = [await rig.running() for _ in range(2)]
        with pytest.raises(ActionsError) as refused:
            await rig.submit()
        assert (refused.value.code, refused.value.retryable) == (Code.QUEUE_FULL, True)
        with rig.store.watch(runs[0][0]) as bell:
            runs[0][1].answer()
            async with asyncio.timeout(PATIENCE):
                await bell.wait()  # the engine has heard of it before anybody else
        await rig.submit()


# --- Delegation. ----------------------------------------------------------------------------------

CHAIN = (
    Delegation(actor="agent", subject="ana", user_id="ana's", capabilities=("p.*",)),
    Delegation(actor="ana", subject="boss"),
    Delegation(actor="agent", subject="ben", tenant="other"),
)
AGENT = Caller(principal="agent")


@pytest.fixture
async def delegating(tmp_path: Path) -> AsyncIterator[Rig]:
    """A rig that knows who may act for whom."""
    async with Rig(tmp_path / "delegating.db", EngineSettings(delegations=CHAIN)) as rig:
        yield rig


async def test_an_action_runs_for_the_principal_at_the_head_of_its_chain(
    delegating: Rig,
) -> None:
    rig = delegating
    record = await rig.submit(caller=AGENT, delegation=("ana", "agent"))
    run = await rig.runner.begun(record.action_id)
    run.answer()

    assert (record.principal, record.subject) == ("agent", "ana")
    assert run.attempt.user_id == "ana's"
    assert await rig.engine.get(ANA, record.action_id) is not None


@pytest.mark.parametrize(
    ("chain", "path"),
    [
        (("agent", "ana"), ""),
        (("boss", "agent"), "$.delegation[1]"),
        (("ben", "agent"), "$.delegation[1]"),
        (("ana", "ana", "agent"), "$.delegation[1]"),
    ],
    ids=map(str, itertools.count()),
)
async def test_a_chain_with_a_link_that_nobody_allowed_is_refused(
    delegating: Rig, chain: tuple[str, ...], path: str
) -> None:
    refused = await refusal(delegating, AGENT, delegation=chain)
    assert (refused.code, refused.path) == (Code.DELEGATION_REFUSED, path)


async def test_every_link_of_a_longer_chain_is_checked(delegating: Rig) -> None:
    record = await delegating.submit(caller=AGENT, delegation=("boss", "ana", "agent"))
    assert record.subject == "boss"
    refused = await delegating.engine.get(ANA, record.action_id)
    assert refused is None  # a link in between sees nothing by itself


async def test_a_delegation_holds_for_the_capabilities_that_it_names(delegating: Rig) -> None:
    refused = await refusal(delegating, AGENT, delegation=("ana", "agent"), capability="q.read")
    assert refused.code is Code.DELEGATION_REFUSED
