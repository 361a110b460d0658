"""Trace events as OpenTelemetry spans. Needs the extra ``otel``; imported only when used.

One trace goes through an invoke, its reverse calls, the requests to nexus that serve them,
and the invokes nested in them. Parents are found where the work runs: an event is emitted
in the task that does what it tells of, so a context variable set there is seen by whatever
that task begins, and by nothing else. No span holds what a plugin or a model said.
"""

import contextlib
import functools
import time
from collections.abc import Mapping
from contextvars import ContextVar, Token
from typing import Any, Final, TypeAlias

from msgspec import Struct

from executa_host.observe import labels
from executa_host.observe.propagation import INJECT, Inject
from executa_protocol import transcript
from executa_protocol.errors import UsageError
from executa_protocol.transcript import AnyEvent

Span: TypeAlias = Any
"""An `opentelemetry.trace.Span`: the library is not there to be named."""

_CURRENT: Final[ContextVar[Any]] = ContextVar("executa_span", default=None)
_SCOPE: Final = "executa_host"


def _library() -> Any:
    try:
        from opentelemetry import trace  # noqa: PLC0415 - an extra, loaded when it is used
    except ImportError:
        msg = "spans need opentelemetry; install executa-host[otel]"
        raise UsageError(msg) from None
    return trace


def spans_if_wanted() -> "Spans | None":
    """Spans where somebody has set up OpenTelemetry for this process, such as
    ``opentelemetry-instrument``; None where nobody has."""
    try:
        from opentelemetry import trace  # noqa: PLC0415 - an extra, loaded when it is used
    except ImportError:
        return None
    unset = isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    return None if unset else Spans()


class _Live(Struct):
    """An invoke's span while it runs, and how its task looked before."""

    span: Any
    current: "Token[Any]"
    inject: "Token[Inject | None]"


class Spans:
    """A consumer of trace events that makes a span of each invoke and each reverse call.

    A root invoke's span is a child of whatever span its caller is in. `provider` is an
    `opentelemetry.trace.TracerProvider`, the global one if None. Raises `UsageError`
    if the extra is not installed.
    """

    def __init__(self, provider: Any = None) -> None:
        self._trace = _library()
        self._tracer = self._trace.get_tracer(_SCOPE, tracer_provider=provider)
        self._invokes: dict[str, _Live] = {}
        self._calls: dict[tuple[str, str, int], Span] = {}

    @property
    def in_flight(self) -> int:
        """Spans that have not ended."""
        return len(self._invokes) + len(self._calls)

    def __call__(self, event: AnyEvent) -> None:
        """Begin, note or end a span."""
        match event:
            case transcript.InvokeStarted():
                self._invoke_started(event)
            case transcript.InvokeEnded():
                self._invoke_ended(event)
            case transcript.ReverseStarted():
                self._call_started(event)
            case transcript.ReverseEnded():
                self._call_ended(event)
            case transcript.ToolExecuted():
                span = _CURRENT.get()
                if span is not None:
                    name = f"tool {event.name}"
                    span.add_event(name, {"executa.ok": event.ok, "executa.reason": event.reason})
            case _:
                pass

    # --- Invokes -----------------------------------------------------------------------

    def _invoke_started(self, event: transcript.InvokeStarted) -> None:
        attributes = {
            "executa.plugin": event.plugin,
            "executa.tool": event.tool,
            "executa.invoke_id": event.invoke_id,
        }
        span = self._begin(f"invoke {event.plugin}.{event.tool}", _CURRENT.get(), event, attributes)
        current, inject = self._enter(span)
        self._invokes[event.invoke_id] = _Live(span, current, inject)

    def _invoke_ended(self, event: transcript.InvokeEnded) -> None:
        live = self._invokes.pop(event.invoke_id, None)
        if live is None:
            return
        # An invoke that ends in another task has left nothing behind in this one.
        with contextlib.suppress(ValueError):
            _CURRENT.reset(live.current)
            INJECT.reset(live.inject)
        live.span.set_attributes(
            {
                "executa.outcome": labels.outcome(event.outcome),
                "executa.sampling_calls": event.sampling_calls,
                "executa.storage_calls": event.storage_calls,
                "executa.agent_runs": event.agent_runs,
                "executa.tokens": event.tokens,
                "executa.denied": event.denied,
            }
        )
        self._end(live.span, event, "" if event.outcome == "ok" else labels.outcome(event.outcome))

    # --- Reverse calls -------------------------------------------------------------------

    def _call_started(self, event: transcript.ReverseStarted) -> None:
        live = self._invokes.get(event.invoke_id)
        parent = None if live is None else live.span
        attributes = {"executa.plugin": event.plugin, "executa.invoke_id": event.invoke_id}
        span = self._begin(labels.method(event.method), parent, event, attributes)
        # This task ends with the call, so there is nothing to set back.
        self._enter(span)
        self._calls[event.plugin, event.invoke_id, event.call] = span

    def _call_ended(self, event: transcript.ReverseEnded) -> None:
        span = self._calls.pop((event.plugin, event.invoke_id, event.call), None)
        if span is None:  # refused before it was known which invoke it belongs to
            return
        span.set_attributes({"executa.verdict": event.verdict, "executa.tokens": event.tokens})
        if event.step:
            span.set_attribute("executa.step", event.step)
        if event.code:
            span.set_attribute("executa.code", event.code)
        why = "" if event.verdict == "served" else labels.symbol(event.symbol) or event.verdict
        self._end(span, event, why)

    # --- Spans ---------------------------------------------------------------------------

    def _begin(
        self, name: str, parent: Any, event: AnyEvent, attributes: Mapping[str, str]
    ) -> Span:
        # None leaves it to OpenTelemetry: the caller's own span, if there is one.
        context = None if parent is None else self._trace.set_span_in_context(parent)
        return self._tracer.start_span(
            name, context=context, start_time=_nanoseconds(event.at), attributes=attributes
        )

    def _enter(self, span: Span) -> "tuple[Token[Any], Token[Inject | None]]":
        return _CURRENT.set(span), INJECT.set(functools.partial(_headers, self._trace, span))

    def _end(self, span: Span, event: AnyEvent, error: str) -> None:
        if error:
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, error))
        span.end(_nanoseconds(event.at))


def _headers(trace: Any, span: Span) -> Mapping[str, str]:
    """``traceparent`` and what else the configured propagators write."""
    from opentelemetry.propagate import inject  # noqa: PLC0415 - an extra, loaded when it is used

    headers: dict[str, str] = {}
    inject(headers, context=trace.set_span_in_context(span))
    return headers


def _nanoseconds(at: float) -> int:
    return int(at * 1_000_000_000) if at else time.time_ns()
