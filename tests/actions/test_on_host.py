"""Durable actions as invokes of a real host, with a real plugin on real pipes."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import format_span_id, format_trace_id

from executa_host import Host, PluginSpec
from executa_host.actions.engine import Engine
from executa_host.actions.faults import ActionsError, Code
from executa_host.actions.interface import Outcome
from executa_host.actions.records import ActionState, Context, Mode, Observability
from executa_host.actions.requests import ALL_SCOPES, Caller, Include, Submission, submission
from executa_host.actions.sqlite import SqliteStore
from executa_host.observe.spans import Spans
from executa_nexus_stub import NexusStub
from executa_protocol.actions import CancelOutcome, ResultStatus
from executa_protocol.chunks import ChunkKind
from tests.support.leaks import LeakCheck

S = ActionState
ME = Caller(principal="ana", scopes=ALL_SCOPES)
WORKER = Path(__file__).parent / "plugins" / "worker.py"


@pytest.fixture
async def engine(tmp_path: Path, leak_check: LeakCheck) -> AsyncIterator[Engine]:
    """An engine on a host that knows the worker and a plugin that does not start."""
    nexus = NexusStub()
    async with Host(nexus) as host:
        host.add(PluginSpec(name="worker", command=(sys.executable, str(WORKER))))
        host.add(PluginSpec(name="broken", command=("/nowhere/at/all",)))
        async with (
            await SqliteStore.open(tmp_path / "a.db", synchronous="NORMAL") as store,
            Engine.on_host(host, store) as engine,
        ):
            yield engine
            assert await store.check() == []
    await nexus.aclose()
    leak_check.watch(nexus, "nexus")
    leak_check.watch(engine, "engine")


async def ends(engine: Engine, action_id: str) -> Outcome:
    """Wait for the end."""
    async with asyncio.timeout(30):
        return await engine.result(ME, action_id, wait=30)


async def run(engine: Engine, tool: str, mode: Mode = Mode.ASYNC, **arguments: Any) -> Outcome:
    """Submit and wait for the end."""
    submitted = await engine.submit(ME, submission(f"worker.{tool}", arguments, mode=mode))
    return await ends(engine, submitted.action.action_id)


def output(outcome: Outcome) -> Any:
    """What it returned."""
    assert outcome.result is not None
    assert isinstance(outcome.result.output, Raw), outcome
    return json.loads(bytes(outcome.result.output))


async def test_an_action_becomes_an_invoke(engine: Engine) -> None:
    outcome = await run(engine, "flip", text="tea")
    assert output(outcome) == "aet"
    assert outcome.action.state is S.COMPLETED


async def test_contracts_come_from_the_manifests(engine: Engine) -> None:
    contracts = {each.capability: each for each in await engine.capabilities(ME)}
    assert contracts["worker.count"].modes == (Mode.SYNC, Mode.ASYNC, Mode.STREAMING)
    assert contracts["worker.flip"].effect == "read"
    assert contracts["worker.pay"].approval
    assert contracts["worker.dawdle"].timeout_ms == 300
    assert contracts["worker.flip"].input_schema["required"] == ["text"]
    assert not any(name.startswith("broken.") for name in contracts)


async def test_progress_becomes_chunks(engine: Engine) -> None:
    outcome = await run(engine, "count", Mode.STREAMING, to=5)
    view = await engine.get(ME, outcome.action.action_id, frozenset({Include.CHUNKS}))
    assert output(outcome) == 5
    assert view is not None
    assert view.chunks
    *kinds, last = [chunk.kind for chunk in view.chunks]
    assert set(kinds) == {ChunkKind.PROGRESS}  # the SDK leaves some out that come too fast
    assert last is ChunkKind.END
    assert "at 0" in bytes(view.chunks[0].data).decode()


async def test_frames_of_an_agent_run_become_chunks(engine: Engine) -> None:
    outcome = await run(engine, "think", Mode.STREAMING, text="tea")
    view = await engine.get(ME, outcome.action.action_id, frozenset({Include.CHUNKS}))
    assert view is not None
    assert view.chunks
    kinds = [chunk.kind for chunk in view.chunks]
    assert ChunkKind.TOOL in kinds
    assert ChunkKind.DATA in kinds
    assert kinds[-1] is ChunkKind.END
    tools = [json.loads(bytes(c.data)) for c in view.chunks if c.kind is ChunkKind.TOOL]
    assert tools[0]["event"] == "tool_call"
    assert tools[0]["name"] == "worker.flip"
    assert outcome.action.state is S.COMPLETED


async def test_a_tools_own_words_are_the_error(engine: Engine) -> None:
    outcome = await run(engine, "fail", text="tea")
    assert outcome.result is not None
    assert outcome.result.error
    assert outcome.result.error.message == "no tea today"
    assert outcome.action.state is S.FAILED


async def test_a_plugin_that_dies_is_started_again_for_what_only_reads(
    engine: Engine, tmp_path: Path
) -> None:
    outcome = await run(engine, "die_once", marker=str(tmp_path / "marker"))
    assert output(outcome) == "alive"
    assert outcome.action.attempt == 2


async def test_a_plugin_that_dies_leaves_a_mutating_action_to_a_person(engine: Engine) -> None:
    outcome = await run(engine, "die", text="t")
    assert outcome.action.state is S.DEAD_LETTERED
    assert outcome.result is not None
    assert outcome.result.status is ResultStatus.REQUIRES_HUMAN


async def test_a_tool_that_takes_too_long_leaves_an_unknown_outcome(engine: Engine) -> None:
    outcome = await run(engine, "dawdle", text="t")
    assert outcome.action.state is S.DEAD_LETTERED
    assert outcome.action.dead_letter
    assert outcome.action.dead_letter.reason == "timed_out"


async def test_a_cancelled_invoke_is_confirmed_by_the_plugin(engine: Engine) -> None:
    submitted = await engine.submit(ME, submission("worker.hang", {"text": "t"}))
    action_id = submitted.action.action_id
    async for page in engine.follow(ME, action_id):
        if any(event.type == "chunk" for event in page.events):
            break  # the tool has begun
    await engine.cancel(ME, action_id, "enough")
    outcome = await ends(engine, action_id)
    assert outcome.action.state is S.CANCELLED
    assert outcome.action.cancellation
    assert outcome.action.cancellation.outcome is CancelOutcome.CONFIRMED


async def test_an_approved_action_runs(engine: Engine) -> None:
    submitted = await engine.submit(ME, submission("worker.pay", {"amount": 1.5}))
    action_id = submitted.action.action_id
    async for page in engine.follow(ME, action_id):
        if any(event.state == "pending_approval" for event in page.events):
            break
    await engine.approve(ME, action_id)
    assert output(await ends(engine, action_id)) == {"paid": 1.5}


async def test_an_input_reaches_the_plugin_as_it_was_written(engine: Engine) -> None:
    given = Raw(b'{"to": 3, "more": 123456789012345678901234567890}')
    submitted = await engine.submit(ME, Submission(capability="worker.count", input=given))
    outcome = await ends(engine, submitted.action.action_id)
    assert outcome.action.state in (S.COMPLETED, S.FAILED)  # what the tool makes of `more`
    assert await engine.get(ME, submitted.action.action_id) is not None


async def test_the_callers_trace_goes_on_in_the_spans_of_the_invoke(tmp_path: Path) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    nexus = NexusStub()
    trace = Observability("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    async with (
        Host(nexus, trace=Spans(provider)) as host,
        await SqliteStore.open(tmp_path / "a.db", synchronous="NORMAL") as store,
        Engine.on_host(host, store) as engine,
    ):
        host.add(PluginSpec(name="worker", command=(sys.executable, str(WORKER))))
        traced = submission("worker.flip", {"text": "t"}, context=Context(observability=trace))
        submitted = await engine.submit(ME, traced)
        await ends(engine, submitted.action.action_id)
        await run(engine, "flip", text="t")
    await nexus.aclose()
    provider.shutdown()

    spans = [span for span in exporter.get_finished_spans() if "flip" in span.name]
    assert [span.parent is not None for span in spans] == [True, False]
    assert spans[0].parent is not None
    assert format_trace_id(spans[0].parent.trace_id) == "0af7651916cd43dd8448eb211c80319c"
    assert format_span_id(spans[0].parent.span_id) == "b7ad6b7169203331"


async def test_many_actions_at_once_on_one_plugin(engine: Engine) -> None:
    outcomes = await asyncio.gather(*(run(engine, "flip", text=f"{n}") for n in range(100)))
    assert sorted(output(outcome)[::-1] for outcome in outcomes) == sorted(map(str, range(100)))


async def test_a_plugin_that_does_not_start_is_worth_a_retry(engine: Engine) -> None:
    with pytest.raises(ActionsError) as refused:
        await engine.submit(ME, submission("broken.tool"))
    assert refused.value.code is Code.CAPABILITY_UNAVAILABLE
    assert refused.value.retryable
    for unknown in ("nobody.tool", "worker.nothing", "worker", "worker.", ".flip", ""):
        assert await engine.capability(ME, unknown) is None
