"""Sampling behind its token: models, formats, caps and quotas."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from msgspec import UNSET, Raw

from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.clock import ManualClock
from executa_nexus_stub.grants import Plan, PluginGrant, User
from executa_nexus_stub.models.base import (
    Completion,
    ModelError,
    ModelInfo,
    ModelRequest,
    TokenUsage,
    ToolSpec,
    TurnEnd,
    TurnEvent,
)
from executa_nexus_stub.models.offline import OfflineModel
from executa_protocol.methods.response_format import (
    JsonObjectFormat,
    JsonSchemaFormat,
    JsonSchemaSpec,
)
from executa_protocol.methods.sampling import ModelHint, ModelPreferences, SamplingResult
from executa_protocol.nexus import Caps, Nexus
from tests.nexus_stub.calls import ask, opening, refused_as, tokens

TEXT = "Summarize: Boats float. Boats are long. Boats sail on water. Tea is hot."
NAMED = JsonSchemaFormat(JsonSchemaSpec(name="x", schema=Raw(b'{"type":"array","minItems":2}')))


async def sample(nexus: Nexus, **params: Any) -> SamplingResult:
    """One call in an invoke of its own."""
    return await nexus.sample((await tokens(nexus))[0], ask(TEXT, **params))


async def test_the_answer_has_text_model_reason_and_usage_that_adds_up(nexus: Nexus) -> None:
    result = await sample(nexus)

    assert result.role == "assistant"
    assert "oats" in result.content.text
    assert (result.model, result.stop_reason) == ("offline-extractive", "endTurn")
    assert result.usage is not UNSET
    assert result.usage.input_tokens > result.usage.output_tokens > 0
    assert result.usage.total_tokens == result.usage.input_tokens + result.usage.output_tokens
    assert result.meta is not UNSET
    assert result.meta.provider == "offline"


@pytest.mark.parametrize(
    ("response_format", "requested"), [(JsonObjectFormat(), "json_object"), (NAMED, "json_schema")]
)
async def test_a_format_is_applied_and_reported(
    nexus: Nexus, response_format: Any, requested: str
) -> None:
    result = await sample(nexus, response_format=response_format)

    assert result.meta is not UNSET
    assert result.meta.response_format is not UNSET
    report = result.meta.response_format
    assert (report.requested, report.applied) == (requested, requested)
    assert (report.structured_valid, report.downgraded) == (True, False)


async def test_json_that_was_cut_is_reported_as_invalid(nexus: Nexus) -> None:
    result = await sample(nexus, response_format=JsonObjectFormat(), max_tokens=3)

    assert result.stop_reason == "maxTokens"
    assert result.meta is not UNSET
    assert result.meta.response_format is not UNSET
    assert result.meta.response_format.structured_valid is False


@pytest.mark.parametrize(
    ("fallback", "formats", "applied"),
    [
        (UNSET, ("text", "json_object"), None),
        ("error", ("text", "json_object"), None),
        ("json_object", ("text", "json_object"), "json_object"),
        ("json_object", ("text",), None),
        ("text", ("text",), "text"),
    ],
)
async def test_a_model_without_the_format_does_what_on_unsupported_says(
    clock: ManualClock, fallback: Any, formats: Any, applied: str | None
) -> None:
    stub = NexusStub(clock=clock, models=[OfflineModel(ModelInfo(name="plain", formats=formats))])
    if applied is None:
        with refused_as("SAMPLING_UNSUPPORTED_RESPONSE_FORMAT", 422, match="plain"):
            await sample(stub, response_format=NAMED, on_unsupported=fallback)
        return

    result = await sample(stub, response_format=NAMED, on_unsupported=fallback)

    assert result.meta is not UNSET
    assert result.meta.response_format is not UNSET
    assert result.meta.response_format.applied == applied
    assert result.meta.response_format.downgraded is True


@pytest.mark.parametrize(
    ("hints", "preferred", "chosen"),
    [
        ([], "", "small"),
        (["LARGE"], "", "large"),
        (["nothing", "med"], "", "medium"),
        (["nothing"], "large", "large"),
        ([], "medium", "medium"),
        (["small"], "large", "small"),
        (["retired"], "", "small"),
    ],
)
async def test_hints_come_before_the_users_preference_and_that_before_the_cheapest(
    clock: ManualClock, hints: list[str], preferred: str, chosen: str
) -> None:
    models = [
        OfflineModel(ModelInfo(name=name, cost=cost, active=name != "retired"))
        for name, cost in (("large", 9.0), ("small", 1.0), ("medium", 3.0), ("retired", 0.0))
    ]
    config = StubConfig(users={"ada": User(model=preferred)})
    stub = NexusStub(config, clock=clock, models=models)
    wanted = ModelPreferences(hints=[ModelHint(name=name) for name in hints], cost_priority=0.0)

    assert (await sample(stub, model_preferences=wanted)).model == chosen


async def test_bad_params_are_refused(stub: NexusStub) -> None:
    token, _ = await tokens(stub)
    empty = ask("x")
    empty.messages = []

    with refused_as("SAMPLING_INVALID_REQUEST", 422, match="maxTokens"):
        await stub.sample(token, ask("x", 0))
    with refused_as("SAMPLING_MAX_TOKENS_EXCEEDED", 429):
        await stub.sample(token, ask("x", 8193))
    with refused_as("SAMPLING_INVALID_REQUEST", 422, match="messages"):
        await stub.sample(token, empty)


class Weary:
    """A model that fails at every other call."""

    info = ModelInfo(name="weary")
    calls = 0

    async def complete(self, request: ModelRequest) -> Completion:
        self.calls += 1
        if self.calls % 2:
            raise ModelError("tired", status=429, retry_after=3.0)
        return Completion("awake", "endTurn", TokenUsage(10, 5))

    async def turn(
        self, request: ModelRequest, tools: Sequence[ToolSpec]
    ) -> AsyncIterator[TurnEvent]:
        yield TurnEnd("endTurn", TokenUsage())

    async def aclose(self) -> None:
        pass


async def test_calls_of_one_invoke_are_bounded_and_failed_ones_do_not_count(
    clock: ManualClock,
) -> None:
    config = StubConfig(grant=PluginGrant(caps=Caps(sampling_calls=2)))
    stub = NexusStub(config, clock=clock, models=[Weary()])
    token, _ = await tokens(stub)

    for _ in range(2):
        with refused_as("SAMPLING_PROVIDER_ERROR", 429, match="tired") as info:
            await stub.sample(token, ask(TEXT))
        assert info.value.retry_after == 3.0
        await stub.sample(token, ask(TEXT))
    with refused_as("SAMPLING_MAX_CALLS_EXCEEDED", 429):
        await stub.sample(token, ask(TEXT))
    assert stub.ledger.total().sampling_calls == 2


async def test_output_tokens_of_one_invoke_are_bounded(clock: ManualClock) -> None:
    config = StubConfig(grant=PluginGrant(caps=Caps(tokens=5, tokens_per_call=100)))
    stub = NexusStub(config, clock=clock)
    token, _ = await tokens(stub)
    await stub.sample(token, ask(TEXT, 100))

    with refused_as("SAMPLING_MAX_TOKENS_EXCEEDED", 429):
        await stub.sample(token, ask(TEXT, 100))
    with refused_as("SAMPLING_MAX_TOKENS_EXCEEDED", 429, match="100"):
        await stub.sample((await tokens(stub))[0], ask(TEXT, 101))


async def test_a_plans_tokens_of_the_day_come_back_at_midnight(clock: ManualClock) -> None:
    config = StubConfig(plans={"": Plan(tokens_per_day=30)})
    stub = NexusStub(config, clock=clock)
    await sample(stub)
    await sample(stub)

    with refused_as("SAMPLING_QUOTA_EXCEEDED", 429):
        await sample(stub)
    await stub.sample((await tokens(stub, user="bob"))[0], ask(TEXT))
    clock.advance(86_400)
    await sample(stub)


async def test_without_an_active_model_the_provider_has_failed(clock: ManualClock) -> None:
    stub = NexusStub(clock=clock, models=[OfflineModel(ModelInfo(name="off", active=False))])

    with refused_as("SAMPLING_PROVIDER_ERROR", 502, match="no model"):
        await sample(stub)


async def test_the_ledger_knows_what_each_user_plugin_and_invoke_consumed(
    nexus: Nexus, stub: NexusStub
) -> None:
    first, second = opening(), opening(user="bob", plugin="other")
    for each, calls in ((first, 2), (second, 1)):
        grant = await nexus.open_invoke(each)
        assert grant.sampling_token is not None
        for _ in range(calls):
            await nexus.sample(grant.sampling_token.value, ask(TEXT))

    ledger = stub.ledger
    assert ledger.invoke(first.invoke_id).sampling_calls == 2
    assert ledger.total("ada", "brief").sampling_calls == 2
    assert ledger.total("bob").sampling_calls == 1
    total = ledger.total()
    assert total.sampling_calls == 3
    assert total.input_tokens == 3 * ledger.total("bob").input_tokens
    assert ledger.report()["total"]["sampling_calls"] == 3
