"""What one root invoke may use, what it has used, and that it adds up (R-35)."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from msgspec import structs

from executa_host import InvokeTimeout, Ledger
from executa_host.reverse.budget import Budget
from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.faults import FaultConfig, FaultRule
from executa_protocol import transcript
from executa_protocol.gate import Refusal
from executa_protocol.limits import NESTED_MAX_CALLS, OPEN_REVERSE_CALLS
from executa_protocol.nexus import Caps
from tests.host.conftest import MakeRig, Rig, soon
from tests.host.scripted_model import ScriptedModel, program

CREATE: dict[str, Any] = {"kind": "agent", "agent_submode": "auto"}
GET = {"key": "k", "scope": "tool"}


def sample(text: str = "x", tokens: int = 50) -> tuple[str, dict[str, Any]]:
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return "sampling/createMessage", {"messages": [message], "maxTokens": tokens}


def _codes(answers: list[dict[str, Any]]) -> list[int]:
    return [answer["error"]["code"] if "error" in answer else 0 for answer in answers]


def _row(refusal: Refusal | int | None) -> str:
    assert isinstance(refusal, Refusal)
    return refusal.row


# --- The purse alone -------------------------------------------------------------------------


def test_calls_and_tokens_are_reserved_at_the_limit_and_refused_one_past_it() -> None:
    budget = Budget(Caps(sampling_calls=2, tokens_per_call=100, tokens=150))
    assert budget.reserve(100) is None
    assert budget.reserve(50) is None
    assert (budget.calls, budget.tokens, budget.tokens_left) == (2, 150, 0)
    assert _row(budget.reserve(1)) == "SAMPLING_MAX_CALLS_EXCEEDED"


def test_what_was_reserved_and_not_used_is_given_back() -> None:
    budget = Budget(Caps(sampling_calls=9, tokens_per_call=100, tokens=150))
    assert budget.reserve(100) is None
    budget.settle(100, 20)
    assert budget.tokens == 20
    assert budget.reserve(100) is None
    budget.settle(100, 0)  # it failed
    assert (budget.tokens, budget.calls) == (20, 2)


def test_over_budget_is_terminal_and_a_call_that_asks_too_much_is_not() -> None:
    budget = Budget(Caps(sampling_calls=9, tokens_per_call=100, tokens=150))
    assert _row(budget.reserve(101)) == "SAMPLING_MAX_TOKENS_EXCEEDED"
    assert budget.reserve(100) is None
    assert _row(budget.reserve(51)) == "SAMPLING_MAX_TOKENS_EXCEEDED"
    assert _row(budget.reserve(1)) == "SAMPLING_MAX_TOKENS_EXCEEDED"
    assert budget.calls == 1


def test_a_run_is_one_call_and_takes_what_tokens_are_left() -> None:
    budget = Budget(Caps(sampling_calls=3, tokens_per_call=100, tokens=150))
    assert budget.reserve_run(100) == 100
    assert budget.reserve_run(100) == 50
    assert _row(budget.reserve_run(100)) == "SAMPLING_MAX_TOKENS_EXCEEDED"
    assert _row(budget.reserve_run(100)) == "SAMPLING_MAX_TOKENS_EXCEEDED"
    assert budget.calls == 2


def test_runs_count_against_the_calls() -> None:
    budget = Budget(Caps(sampling_calls=1))
    assert budget.reserve_run(10) == 10
    assert _row(budget.reserve_run(10)) == "SAMPLING_MAX_CALLS_EXCEEDED"


def test_storage_calls_and_nested_invokes_have_purses_of_their_own() -> None:
    budget = Budget(Caps(sampling_calls=0, storage_calls=1))
    assert budget.take_storage() is None
    assert _row(budget.take_storage()) == "STORAGE_RATE_LIMITED"
    assert _row(budget.take_storage()) == "STORAGE_RATE_LIMITED"
    assert all(budget.take_nested() for _ in range(NESTED_MAX_CALLS))
    assert not budget.take_nested()


# --- In a host -------------------------------------------------------------------------------


def _with_caps(
    make_rig: MakeRig,
    *,
    rules: tuple[FaultRule, ...] = (),
    model: ScriptedModel | None = None,
    **caps: int,
) -> Rig:
    config = StubConfig(faults=FaultConfig(rules=rules, seed=1))
    nexus = NexusStub(config, models=[model or ScriptedModel()])
    nexus.directory.change("local", "raw", caps=structs.asdict(Caps(**caps)))
    rig = make_rig(nexus)
    rig.add()
    return rig


async def test_the_ninth_sampling_call_is_refused_and_so_is_every_later_one(
    make_rig: MakeRig,
) -> None:
    rig = _with_caps(make_rig)
    answers = await rig.calls(*[sample()] * 10)
    assert _codes(answers) == [0] * 8 + [-32006] * 2
    assert answers[8]["error"]["data"]["missing"]["step"] == "budget"
    assert _codes(await rig.calls(sample())) == [0]  # each root has its own


async def test_the_users_grant_may_set_other_caps(make_rig: MakeRig) -> None:
    rig = _with_caps(make_rig, sampling_calls=2, tokens_per_call=60, tokens=100, storage_calls=1)
    assert _codes(await rig.calls(sample(tokens=61), *[sample(tokens=60)] * 3)) == [
        -32007,
        0,
        0,
        -32006,
    ]
    assert _codes(await rig.calls(*[("storage/get", GET)] * 2)) == [0, -32026]


async def test_calls_side_by_side_cannot_spend_the_same_tokens(make_rig: MakeRig) -> None:
    model = ScriptedModel()
    rig = _with_caps(make_rig, model=model, tokens_per_call=100, tokens=250, sampling_calls=100)
    asked = [sample("hold x", tokens=100)] * 10
    calling = asyncio.ensure_future(rig.calls(*asked, parallel=True))
    await rig.until(lambda _: len(rig.seen(transcript.ReverseEnded)) == 8)
    model.release("x")
    assert sorted(_codes(await soon(calling))) == [-32007] * 8 + [0] * 2


async def test_a_failed_call_gives_its_tokens_back(make_rig: MakeRig) -> None:
    rig = _with_caps(
        make_rig,
        rules=(FaultRule(kind="error", endpoint="sample", times=1, status=503),),
        tokens_per_call=100,
        tokens=100,
    )
    answers = await rig.calls(sample(tokens=100), sample(tokens=100))
    assert _codes(answers) == [-32003, 0]
    ended = rig.seen(transcript.InvokeEnded)[-1]
    assert (ended.sampling_calls, ended.tokens) == (2, 7)
    assert (ended.calls, ended.tokens_used) == (2, 7)


async def test_a_cancelled_call_gives_its_tokens_back(make_rig: MakeRig) -> None:
    rig = _with_caps(make_rig)
    handle = rig.host.begin(
        "raw", "reverse", {"method": sample()[0], "params": sample("hold x")[1]}
    )
    await rig.until(lambda event: isinstance(event, transcript.ReverseStarted))
    await handle.cancel()
    ended = rig.seen(transcript.InvokeEnded)[-1]
    assert (ended.sampling_calls, ended.tokens, ended.tokens_used) == (1, 0, 0)


async def test_a_thousand_reverse_calls_in_one_invoke_are_all_answered(make_rig: MakeRig) -> None:
    rig = _with_caps(make_rig, storage_calls=900)
    answers = await rig.calls(*[("storage/get", GET)] * 1000, parallel=True)
    counts = Counter(_codes(answers))
    assert counts == {0: 900, -32026: 100}
    ended = rig.seen(transcript.InvokeEnded)[-1]
    assert (ended.storage_calls, ended.denied) == (900, 100)


async def test_more_open_calls_than_one_process_may_have_are_refused_at_once(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executa_host.reverse.gateway.OPEN_REVERSE_CALLS", 3)
    assert OPEN_REVERSE_CALLS >= 1000
    latency = FaultRule(kind="latency", endpoint="storage", seconds=0.5)
    rig = _with_caps(make_rig, rules=(latency,))
    answers = await rig.calls(*[("storage/get", GET)] * 5, parallel=True)
    assert sorted(_codes(answers)) == [-32000, -32000, 0, 0, 0]
    refused = next(answer["error"] for answer in answers if "error" in answer)
    assert refused["data"]["errorCode"] == "TOO_MANY_CALLS"


# --- The ledger ------------------------------------------------------------------------------


async def test_a_ledger_counts_what_went_through_and_what_was_turned_down(
    make_rig: MakeRig,
) -> None:
    rig = _with_caps(make_rig)
    listed: list[tuple[str, dict[str, Any]]] = [
        sample(),
        ("agent/complete", {"prompt": "x", "max_tokens": 50}),
        ("storage/set", GET | {"value": 1}),
        ("storage/get", GET),
        ("storage/get", GET | {"scope": "app"}),
        ("image/generate", {}),
        sample(tokens=8193),
        ("sampling/createMessage", {"messages": [], "maxTokens": 5}),
    ]
    calls = [{"method": method, "params": params} for method, params in listed]
    outcome = await rig.host.invoke("raw", "calls", {"calls": calls})
    ledger = outcome.ledger
    assert (ledger.sampling_calls, ledger.completions, ledger.tokens) == (2, 1, 14)
    assert ledger.storage_calls == 2
    assert ledger.denied == 2  # the scope and the cap; what was asked wrongly is no denial
    assert ledger.bytes_in > len(json.dumps(outcome.data))
    assert ledger.bytes_out > len(json.dumps(calls))


async def test_a_refusal_counts_for_its_invoke_also_before_it_was_correlated(rig: Rig) -> None:
    rig.add("--manifest", json.dumps({"host_capabilities": ["aps.kv"]}))
    await rig.calls(sample(), ("agent/session.list", {}), ("storage/get", GET))
    ended = rig.seen(transcript.InvokeEnded)[-1]
    assert (ended.denied, ended.storage_calls) == (2, 1)


async def test_a_failed_invoke_has_a_ledger_too(make_rig: MakeRig) -> None:
    rig = _with_caps(make_rig)
    handle = rig.host.begin("raw", "calls", {"calls": [], "parallel": True})
    await handle.result()
    asked = {"method": "sampling/createMessage", "params": sample("hold x")[1]}
    with pytest.raises(InvokeTimeout):
        await rig.host.invoke("raw", "reverse", asked, timeout=0.3)
    ended = rig.seen(transcript.InvokeEnded)[-1]
    assert (ended.outcome, ended.sampling_calls, ended.tokens) == ("InvokeTimeout", 1, 0)
    handle = rig.host.begin("raw", "die", {"code": 1})
    with pytest.raises(Exception, match="code 1"):
        await handle.result()
    assert handle.ledger.bytes_out > 0


SUMMED = (
    "sampling_calls",
    "tokens",
    "storage_calls",
    "agent_runs",
    "nested_calls",
    "frames",
    "frame_bytes",
    "denied",
    "progress",
    "bytes_in",
    "bytes_out",
)


async def test_a_roots_totals_are_the_sum_of_its_own_part_and_those_nested_in_it(
    make_rig: MakeRig,
) -> None:
    """Each part is known from the events of its reverse calls; the ledgers must agree."""
    model = ScriptedModel()
    rig = make_rig(NexusStub(models=[model]))
    rig.add()
    rig.add(name="other")
    inner = [{"method": method, "params": params} for method, params in (sample(), sample())]
    inner.append({"method": "storage/get", "params": GET})
    inner.append({"method": "storage/get", "params": GET | {"scope": "app"}})
    await rig.host.start("other")
    content = program(
        [{"say": "a"}, {"call": "other.calls", "args": {"calls": inner}}, {"tokens": 5}],
        [{"call": "raw.progress", "args": {"count": 3}}],
        [{"say": "b", "times": 3}],
    )
    created, ran = await _run(rig, content, sample())
    assert "result" in created
    assert "result" in ran
    started = {event.invoke_id: event for event in rig.seen(transcript.InvokeStarted)}
    ended = {event.invoke_id: event for event in rig.seen(transcript.InvokeEnded)}
    (root,) = [event for event in started.values() if not event.parent]
    nested = [ended[event.invoke_id] for event in started.values() if event.parent]
    assert len(nested) == 2
    total = ended[root.invoke_id]
    calls = rig.seen(transcript.ReverseEnded)
    own_calls = [event for event in calls if event.invoke_id == root.invoke_id]
    assert total.tokens == sum(event.tokens for event in calls)
    assert total.tokens == sum(event.tokens for event in own_calls) + sum(
        part.tokens for part in nested
    )
    assert total.sampling_calls == 1 + 2
    assert total.agent_runs == 1
    assert total.nested_calls == 2
    assert total.denied == sum(event.verdict == "refused" for event in calls) == 1
    assert total.frames == len(rig.seen(transcript.RunFrame))
    assert total.frame_bytes == sum(
        len(bytes(event.frame)) for event in rig.seen(transcript.RunFrame)
    )
    assert total.progress == len(rig.seen(transcript.Progress)) == 3
    assert total.storage_calls == 1
    for name in SUMMED:
        assert getattr(total, name) >= sum(getattr(part, name) for part in nested)
    assert (total.calls, total.tokens_used) == (4, total.tokens)
    assert all(part.calls_cap == total.calls_cap for part in nested)


async def _run(
    rig: Rig, content: str, *more: tuple[str, dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Let the plugin create an agent session in one invoke and run it in another."""
    created = (await rig.calls(("agent/session.create", CREATE)))[0]
    rig.events.clear()
    uuid = created["result"]["app_session_uuid"]
    run = ("agent/session.run", {"app_session_uuid": uuid, "content": content})
    answers = await rig.calls(*more, run)
    return created, answers[-1]


async def test_nested_invokes_spend_the_roots_budget(make_rig: MakeRig) -> None:
    nexus = NexusStub(models=[ScriptedModel()])
    nexus.directory.change("local", "raw", caps=structs.asdict(Caps(sampling_calls=3)))
    rig = make_rig(nexus)
    rig.add()
    rig.add(name="other")
    await rig.host.start("other")
    inner = [{"method": method, "params": params} for method, params in [sample()] * 3]
    content = program([{"call": "other.calls", "args": {"calls": inner}}])
    _, ran = await _run(rig, content)
    (result,) = [f for f in ran["result"]["frames"] if f["event"] == "tool_result"]
    # The run itself was one call; the nested invoke's own grant would allow eight.
    assert _codes(result["data"]) == [0, 0, -32006]


async def test_what_ends_after_its_root_changes_the_roots_record_no_more(
    make_rig: MakeRig,
) -> None:
    model = ScriptedModel()
    rig = make_rig(NexusStub(models=[model]))
    rig.add("--take", "cancellation")
    content = program([{"call": "raw.cancelled", "args": {"mode": "complete"}}])
    created = (await rig.calls(("agent/session.create", CREATE)))[0]
    uuid = created["result"]["app_session_uuid"]
    params = {"app_session_uuid": uuid, "content": content}
    handle = rig.host.begin("raw", "reverse", {"method": "agent/session.run", "params": params})
    await rig.until(lambda event: isinstance(event, transcript.Stderr))
    await handle.cancel()
    assert _codes([(await handle.result()).data]) == [-32000]
    before = structs.asdict(handle.ledger)
    await rig.host.close()
    assert structs.asdict(handle.ledger) == before


def test_a_ledger_begins_with_nothing() -> None:
    assert set(structs.asdict(Ledger()).values()) == {0}


async def test_the_budget_is_the_roots_own_and_not_shared_between_roots(make_rig: MakeRig) -> None:
    rig = _with_caps(make_rig, sampling_calls=2)
    answers = await asyncio.gather(*(rig.calls(*[sample()] * 2) for _ in range(5)))
    assert all(_codes(answer) == [0, 0] for answer in answers)
