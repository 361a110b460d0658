"""Trace events as Prometheus metrics. Needs the extra ``metrics``; imported only when used.

Owns names, labels and buckets. Labels are plugin, tool and method names that a manifest or
the protocol bounds, and words that `labels` folds; users, invokes and texts are none. The
endpoint listens on loopback unless it is told otherwise.
"""

import threading
from typing import Any, Final, Self, cast
from wsgiref.simple_server import WSGIServer

from executa_host.observe import labels
from executa_protocol import transcript
from executa_protocol.errors import UsageError
from executa_protocol.transcript import AnyEvent

SECONDS: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip
"""Buckets of durations: from a plain echo to the longest run."""


def _library() -> Any:
    try:
        import prometheus_client  # noqa: PLC0415 - an extra, loaded when it is used
    except ImportError:
        msg = "metrics need prometheus-client; install executa-host[metrics]"
        raise UsageError(msg) from None
    return prometheus_client


class Metrics:
    """A consumer of trace events that counts them in `registry`.

    `registry` is a `prometheus_client.CollectorRegistry`, one of its own if None.
    Raises `UsageError` if the extra is not installed.
    """

    def __init__(self, registry: Any = None) -> None:
        library = _library()
        self.registry = library.CollectorRegistry() if registry is None else registry
        where = {"registry": self.registry}
        counter, gauge, histogram = library.Counter, library.Gauge, library.Histogram
        self._invokes = counter(
            "executa_invokes", "Invokes that ended.", ("plugin", "tool", "outcome"), **where
        )
        self._invoke_seconds = histogram(
            "executa_invoke_seconds",
            "How long invokes took.",
            ("plugin", "tool"),
            buckets=SECONDS,
            **where,
        )
        self._in_flight = gauge(
            "executa_invokes_in_flight", "Invokes that have not ended.", ("plugin",), **where
        )
        self._reverse = counter(
            "executa_reverse_calls",
            "Reverse calls that were answered; step is where one was refused.",
            ("plugin", "method", "verdict", "step", "symbol"),
            **where,
        )
        self._reverse_seconds = histogram(
            "executa_reverse_call_seconds",
            "How long reverse calls took.",
            ("method",),
            buckets=SECONDS,
            **where,
        )
        self._tokens = counter(
            "executa_tokens", "Output tokens that reverse calls used.", ("plugin",), **where
        )
        self._tools = counter(
            "executa_run_tools", "Tools that runs had the host execute.", ("plugin", "ok"), **where
        )
        self._frames = counter(
            "executa_run_frames", "Frames of agent runs that reached plugins.", ("plugin",), **where
        )
        self._cancels = counter(
            "executa_cancellations",
            "Cancelled invokes, by what became of them.",
            ("plugin", "outcome"),
            **where,
        )
        self._starts = counter(
            "executa_plugin_starts", "Processes that were started.", ("plugin",), **where
        )
        self._exits = counter(
            "executa_plugin_exits", "Processes that ended.", ("plugin", "fault"), **where
        )
        self._state = gauge(
            "executa_plugins", "Plugins, one for each user, by state.", ("plugin", "state"), **where
        )
        self._states: dict[tuple[str, str], str] = {}
        self._noise = counter(
            "executa_noise", "Departures from the protocol that were met.", ("plugin", "kind"),
            **where,
        )  # fmt: skip

    def __call__(self, event: AnyEvent) -> None:
        """Count one event."""
        plugin = event.plugin
        match event:
            case transcript.InvokeStarted():
                self._in_flight.labels(plugin).inc()
            case transcript.InvokeEnded():
                self._in_flight.labels(plugin).dec()
                outcome = labels.outcome(event.outcome)
                self._invokes.labels(plugin, event.tool, outcome).inc()
                self._invoke_seconds.labels(plugin, event.tool).observe(event.ms / 1000)
            case transcript.ReverseEnded():
                self._reverse_ended(event)
            case transcript.RunFrame():
                self._frames.labels(plugin).inc()
            case transcript.ToolExecuted():
                self._tools.labels(plugin, str(event.ok).lower()).inc()
            case transcript.CancelEnded():
                self._cancels.labels(plugin, event.outcome).inc()
            case transcript.Spawned():
                self._starts.labels(plugin).inc()
            case transcript.Exited():
                self._exits.labels(plugin, str(event.fault).lower()).inc()
            case transcript.StateChanged():
                self._state_changed(event)
            case transcript.Noise():
                self._noise.labels(plugin, event.kind).inc()
            case _:
                pass

    def _state_changed(self, event: transcript.StateChanged) -> None:
        owner = (event.user_id, event.plugin)
        before = self._states.get(owner)
        if before is not None:
            self._state.labels(event.plugin, before).dec()
        self._states[owner] = event.state
        self._state.labels(event.plugin, event.state).inc()

    def _reverse_ended(self, event: transcript.ReverseEnded) -> None:
        method, symbol = labels.method(event.method), labels.symbol(event.symbol)
        self._reverse.labels(event.plugin, method, event.verdict, event.step, symbol).inc()
        self._reverse_seconds.labels(method).observe(event.ms / 1000)
        if event.tokens:
            self._tokens.labels(event.plugin).inc(event.tokens)


class MetricsServer:
    """The endpoint ``/metrics`` in a thread of its own, so that it answers when the loop is stuck.

    A context manager. Port 0 lets the system choose; `url` says what it chose.
    """

    def __init__(self, metrics: Metrics, port: int = 0, host: str = "127.0.0.1") -> None:
        self._metrics = metrics
        self._port = port
        self._host = host
        self._running: tuple[WSGIServer, threading.Thread] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        start = _library().start_http_server
        running = start(self._port, self._host, registry=self._metrics.registry)
        self._running = cast("tuple[WSGIServer, threading.Thread]", running)
        self.url = f"http://{self._host}:{self._running[0].server_port}/metrics"
        return self

    def __exit__(self, *fault: object) -> None:
        if self._running is not None:
            server, thread = self._running
            self._running = None
            server.shutdown()
            server.server_close()
            thread.join()


def serve_metrics(metrics: Metrics, *, port: int = 0, host: str = "127.0.0.1") -> MetricsServer:
    """Serve what `metrics` counts for as long as the returned context manager is entered."""
    return MetricsServer(metrics, port, host)
