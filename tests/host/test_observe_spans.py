"""One trace through an invoke, its reverse calls, the requests to nexus, and nested invokes."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, format_span_id, format_trace_id

from executa_host import Host
from executa_host.nexus.http import HttpNexus
from executa_host.observe.propagation import trace_headers
from executa_host.observe.spans import Spans
from executa_host.spec import PluginSpec
from executa_protocol import transcript
from tests.host.conftest import raw_command
from tests.host.nexus_server import ScriptedNexus, answers
from tests.support.leaks import LeakCheck

AT = 1_700_000_000.0


class Tracing:
    """Spans, and what was exported of them."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.spans = Spans(self.provider)

    def ended(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}


@pytest.fixture
def tracing(leak_check: LeakCheck) -> Iterator[Tracing]:
    """Spans of one test, none of which may stay open."""
    made = Tracing()
    leak_check.watch(made.spans, "spans")
    yield made
    made.provider.shutdown()


def _parent(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def _id(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def _start(invoke_id: str, tool: str = "t") -> transcript.InvokeStarted:
    return transcript.InvokeStarted(at=AT, plugin="x", invoke_id=invoke_id, tool=tool)


def _end(invoke_id: str, outcome: str = "ok") -> transcript.InvokeEnded:
    return transcript.InvokeEnded(
        at=AT + 1, plugin="x", invoke_id=invoke_id, tool="t", outcome=outcome, ms=1000, tokens=5
    )


def _call(invoke_id: str, call: int = 1) -> transcript.ReverseStarted:
    return transcript.ReverseStarted(
        at=AT, plugin="x", method="agent/session.run", call=call, invoke_id=invoke_id
    )


def _answer(invoke_id: str, verdict: Any = "served", **more: Any) -> transcript.ReverseEnded:
    more = {"method": "agent/session.run", "call": 1, "invoke_id": invoke_id, **more}
    return transcript.ReverseEnded(at=AT + 1, plugin="x", verdict=verdict, ms=1000, **more)


async def test_a_nested_invoke_is_in_the_trace_of_the_call_that_made_it(tracing: Tracing) -> None:
    spans = tracing.spans
    seen: dict[str, str] = {}

    async def nested() -> None:
        spans(_start("inner", "u"))
        seen["inner"] = trace_headers()["traceparent"]
        spans(_end("inner"))

    async def reverse() -> None:
        spans(_call("outer"))
        seen["call"] = trace_headers()["traceparent"]
        await asyncio.create_task(nested())
        spans(_answer("outer", tokens=7))

    spans(_start("outer"))
    seen["outer"] = trace_headers()["traceparent"]
    await asyncio.create_task(reverse())
    spans(_end("outer"))
    assert trace_headers() == {}
    ended = tracing.ended()
    outer, call, inner = ended["invoke x.t"], ended["agent/session.run"], ended["invoke x.u"]
    assert [_parent(span) for span in (outer, call, inner)] == [None, _id(outer), _id(call)]
    for name, span in (("outer", outer), ("call", call), ("inner", inner)):
        assert span.context is not None
        _, trace_id, span_id, _ = seen[name].split("-")
        assert trace_id == format_trace_id(span.context.trace_id)
        assert span_id == format_span_id(span.context.span_id)
    assert outer.start_time == AT * 1e9
    assert outer.attributes is not None
    assert outer.attributes["executa.tokens"] == 5


async def test_calls_side_by_side_do_not_get_each_others_spans(tracing: Tracing) -> None:
    spans = tracing.spans
    both = asyncio.Barrier(2)

    async def one(invoke_id: str) -> None:
        spans(_start(invoke_id, invoke_id))
        await both.wait()
        own = trace_headers()
        spans(_end(invoke_id))
        assert own["traceparent"].split("-")[2] == format_span_id(
            _id(tracing.ended()[f"invoke x.{invoke_id}"])
        )

    await asyncio.gather(one("a"), one("b"))


async def test_a_callers_own_span_is_the_parent_of_a_root_invoke(tracing: Tracing) -> None:
    with tracing.provider.get_tracer("caller").start_as_current_span("request"):
        tracing.spans(_start("i"))
        tracing.spans(_end("i"))
    ended = tracing.ended()
    assert _parent(ended["invoke x.t"]) == _id(ended["request"])


async def test_what_failed_is_an_error_and_says_no_more_than_a_known_word(
    tracing: Tracing,
) -> None:
    spans = tracing.spans
    spans(_start("i"))
    spans(_call("i"))
    refused = {"step": "budget", "code": -32006, "symbol": "MAX_CALLS_EXCEEDED"}
    spans(_answer("i", "refused", message="private words", **refused))
    spans(_answer("i", "refused", call=0, message="never began"))
    spans(_end("i", "a plugin's own words"))
    ended = tracing.ended()
    call, invoke = ended["agent/session.run"], ended["invoke x.t"]
    assert call.status.status_code is invoke.status.status_code is StatusCode.ERROR
    assert call.status.description == "MAX_CALLS_EXCEEDED"
    assert invoke.status.description == "other"
    assert call.attributes is not None
    assert call.attributes["executa.step"] == "budget"
    assert "private" not in call.to_json()


async def test_an_invoke_that_ends_in_another_task_leaves_the_context_alone(
    tracing: Tracing,
) -> None:
    async def begin() -> None:
        tracing.spans(_start("i"))

    await asyncio.create_task(begin())
    tracing.spans(_end("i"))
    assert trace_headers() == {}


GRANT = (
    b'{"grants":{"sampling":true},"sampling_token":{"value":"t","expires_at":9999999999},'
    b'"granted_tools":[]}'
)
SAMPLED = (
    b'{"role":"assistant","content":{"type":"text","text":"x"},"model":"m","stopReason":"endTurn"}'
)


async def test_a_request_to_nexus_carries_the_span_of_the_reverse_call_behind_it(
    tracing: Tracing,
) -> None:
    async with ScriptedNexus(answers(GRANT), answers(SAMPLED), answers(b"{}")) as server:
        nexus = HttpNexus(server.url)
        async with Host(nexus, trace=tracing.spans) as host:
            host.add(PluginSpec(name="raw", command=raw_command()))
            text = {"role": "user", "content": {"type": "text", "text": "?"}}
            params = {"messages": [text], "maxTokens": 5}
            outcome = await host.invoke(
                "raw", "reverse", {"method": "sampling/createMessage", "params": params}
            )
        assert "result" in outcome.data
        await nexus.aclose()
    ended = tracing.ended()
    call, invoke = ended["sampling/createMessage"], ended["invoke raw.reverse"]
    assert _parent(call) == _id(invoke)
    sampled = next(seen for seen in server.seen if seen.path.endswith("/copilot/sampling"))
    assert sampled.headers["traceparent"].split("-")[2] == format_span_id(_id(call))


async def test_without_spans_no_request_carries_a_header() -> None:
    async with ScriptedNexus(answers(b"{}")) as server:
        nexus = HttpNexus(server.url)
        await nexus.storage("t", "storage/get", b"{}")
        await nexus.aclose()
    assert "traceparent" not in server.seen[0].headers
