"""Headers that tie a request to nexus to the trace of the call behind it.

Empty, and one look at a context variable, unless `spans` is used. This module is all that
the nexus client knows of tracing.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Final

Inject = Callable[[], Mapping[str, str]]

INJECT: Final[ContextVar[Inject | None]] = ContextVar("executa_trace_headers", default=None)
"""What writes the headers for whatever runs in this context; set by `spans`."""


def trace_headers() -> Mapping[str, str]:
    """The ``traceparent`` and ``tracestate`` of the current span; nothing without tracing."""
    inject = INJECT.get()
    return {} if inject is None else inject()
