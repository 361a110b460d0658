"""Logs and metrics made of trace events: what each event becomes, and what is left out."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest
from msgspec import Raw

from executa_host.observe import labels
from executa_host.observe.logs import EventLog, Style, log_to, stop_logging
from executa_host.observe.metrics import Metrics, serve_metrics
from executa_host.observe.spans import Spans
from executa_protocol import transcript
from executa_protocol.errors import UsageError
from executa_protocol.transcript import AnyEvent

AT = 1_700_000_000.25


def _ended(outcome: str = "ok", **members: Any) -> transcript.InvokeEnded:
    return transcript.InvokeEnded(
        at=AT, plugin="notebook", invoke_id="i", tool="recall", outcome=outcome, ms=12.5, **members
    )


def _answered(verdict: Any = "served", **members: Any) -> transcript.ReverseEnded:
    members = {"method": "sampling/createMessage", "call": 1, "invoke_id": "i", **members}
    return transcript.ReverseEnded(at=AT, plugin="notebook", verdict=verdict, ms=3.0, **members)


# --- Logs ---------------------------------------------------------------------------------------


class Log:
    """What was logged, as lines."""

    def __init__(self, style: Style, level: int) -> None:
        self.stream = io.StringIO()
        self.handler = log_to(self.stream, style=style, level=level)

    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines()]


@pytest.fixture
def log(request: pytest.FixtureRequest) -> Iterator[Log]:
    """The host's log, JSON from INFO on unless the test says otherwise."""
    style, level = getattr(request, "param", ("json", logging.INFO))
    made = Log(style, level)
    yield made
    stop_logging(made.handler)


def test_an_event_is_one_json_line(log: Log) -> None:
    EventLog()(_ended(tokens=7))
    assert log.records() == [
        {
            "at": "2023-11-14T22:13:20.250Z",
            "level": "info",
            "event": "invoke_end",
            "plugin": "notebook",
            "invoke_id": "i",
            "tool": "recall",
            "outcome": "ok",
            "ms": 12.5,
            "tokens": 7,
        }
    ]


@pytest.mark.parametrize("log", [("keys", logging.INFO)], indirect=True)
def test_or_a_line_of_keys_and_values(log: Log) -> None:
    EventLog()(transcript.Stderr(at=AT, plugin="x", line='a "b"\x1b[31m\u2028c'))
    EventLog()(transcript.Described(at=AT, plugin="x", version="1", tools=("a", "b")))
    line, described = log.lines()
    assert described.endswith("plugin=x version=1 tools=a,b")
    head, _, said = line.partition(" line=")
    assert head == "at=2023-11-14T22:13:20.250Z level=info event=stderr plugin=x"
    assert said == r'"a \"b\"\u001b[31m\u2028c"'


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (_ended(), "info"),
        (_ended("tool_failed"), "warning"),
        (_answered(), "info"),
        (_answered("refused", step="grant"), "warning"),
        (_answered("failed"), "warning"),
        (transcript.Exited(at=AT, code=0, fault=False), "info"),
        (transcript.Exited(at=AT, code=-9, fault=True), "warning"),
        (transcript.StateChanged(at=AT, state="ready"), "info"),
        (transcript.StateChanged(at=AT, state="restarting"), "warning"),
        (transcript.StateChanged(at=AT, state="faulted"), "error"),
        (transcript.Noise(at=AT, kind="unreadable", message="m"), "warning"),
        (transcript.Noise(at=AT, kind="tolerated", message="m"), "info"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_went_wrong_is_a_warning(log: Log, event: AnyEvent, level: str) -> None:
    EventLog()(event)
    assert [record["level"] for record in log.records()] == [level]


@pytest.mark.parametrize("log", [("json", logging.DEBUG)], indirect=True)
def test_what_plugins_and_models_say_is_left_out_unless_it_is_asked_for(log: Log) -> None:
    said: list[AnyEvent] = [
        transcript.RunFrame(at=AT, invoke_id="i", run_id="r", frame=Raw(b'{"text":"private"}')),
        transcript.Progress(at=AT, invoke_id="i", params=Raw(b'"private"')),
        transcript.Frame(at=AT, direction="in", line=Raw(b'{"a":"private"}')),
        transcript.Noise(at=AT, kind="unreadable", message="m", sample="private"),
    ]
    for event in said:
        EventLog()(event)
    assert "private" not in log.stream.getvalue()
    assert len(log.records()) == 4
    for event in said:
        EventLog(content=True)(event)
    assert log.stream.getvalue().count("private") == 4
    assert log.records()[4]["frame"] == {"text": "private"}


def test_other_records_of_the_host_are_lines_of_the_same_form(log: Log) -> None:
    try:
        int("no")
    except ValueError:
        logging.getLogger("executa_host.host").exception("serving %s failed", "x")
    (record,) = log.records()
    assert record["message"] == "serving x failed"
    assert record["logger"] == "executa_host.host"
    assert "ValueError: invalid literal" in record["traceback"]
    assert len(log.lines()) == 1


def test_an_event_below_the_level_is_no_line(log: Log) -> None:
    EventLog()(transcript.InvokeStarted(at=AT, invoke_id="i", tool="t"))
    assert log.lines() == []


# --- Metrics ------------------------------------------------------------------------------------


def _value(metrics: Metrics, name: str, **wanted: str) -> float | None:
    return metrics.registry.get_sample_value(name, wanted)


def test_invokes_are_counted_timed_and_seen_in_flight() -> None:
    metrics = Metrics()
    started = transcript.InvokeStarted(at=AT, plugin="notebook", invoke_id="i", tool="recall")
    for _ in range(3):
        metrics(started)
    metrics(_ended())
    metrics(_ended("INVOKE_TIMEOUT"))
    where = {"plugin": "notebook", "tool": "recall"}
    assert _value(metrics, "executa_invokes_total", outcome="ok", **where) == 1
    assert _value(metrics, "executa_invokes_total", outcome="INVOKE_TIMEOUT", **where) == 1
    assert _value(metrics, "executa_invokes_in_flight", plugin="notebook") == 1
    assert _value(metrics, "executa_invoke_seconds_sum", **where) == 0.025
    assert _value(metrics, "executa_invoke_seconds_bucket", le="0.025", **where) == 2


def test_reverse_calls_are_counted_by_what_became_of_them() -> None:
    metrics = Metrics()
    metrics(_answered(tokens=40))
    metrics(_answered("refused", step="grant", code=-32001, symbol="NOT_GRANTED"))
    where = {"plugin": "notebook", "method": "sampling/createMessage"}
    served = {"verdict": "served", "step": "", "symbol": ""}
    refused = {"verdict": "refused", "step": "grant", "symbol": "NOT_GRANTED"}
    assert _value(metrics, "executa_reverse_calls_total", **where, **served) == 1
    assert _value(metrics, "executa_reverse_calls_total", **where, **refused) == 1
    assert _value(metrics, "executa_tokens_total", plugin="notebook") == 40


def test_processes_are_counted_by_state_over_all_users() -> None:
    metrics = Metrics()

    def count(state: str) -> float | None:
        return _value(metrics, "executa_plugins", plugin="x", state=state)

    for user in ("", "ada"):
        for state in ("starting", "ready"):
            metrics(transcript.StateChanged(at=AT, plugin="x", user_id=user, state=state))
    assert (count("starting"), count("ready")) == (0, 2)
    metrics(transcript.StateChanged(at=AT, plugin="x", user_id="ada", state="restarting"))
    assert (count("ready"), count("restarting")) == (1, 1)
    metrics(transcript.Spawned(at=AT, plugin="x", pid=1))
    metrics(transcript.Exited(at=AT, plugin="x", code=1, fault=True))
    metrics(transcript.Noise(at=AT, plugin="x", kind="unreadable", message="m"))
    metrics(transcript.CancelEnded(at=AT, plugin="x", invoke_id="i", outcome="confirmed"))
    assert _value(metrics, "executa_plugin_starts_total", plugin="x") == 1
    assert _value(metrics, "executa_plugin_exits_total", plugin="x", fault="true") == 1
    assert _value(metrics, "executa_noise_total", plugin="x", kind="unreadable") == 1
    assert _value(metrics, "executa_cancellations_total", plugin="x", outcome="confirmed") == 1


def test_a_plugin_cannot_make_metrics_grow() -> None:
    metrics = Metrics()
    for number in range(500):
        metrics(_ended(f"SYMBOL_{number}"))
        metrics(_answered("refused", method=f"made/up_{number}", symbol=f"S{number}"))
    samples = [sample for family in metrics.registry.collect() for sample in family.samples]
    assert len(samples) < 100
    assert (
        labels.outcome("SYMBOL_1") == labels.method("made/up_1") == labels.symbol("S1") == "other"
    )


def test_the_endpoint_answers_prometheus() -> None:
    metrics = Metrics()
    metrics(_ended())
    with serve_metrics(metrics) as server:
        assert server.url.startswith("http://127.0.0.1:")
        with urlopen(server.url, timeout=5) as answer:  # noqa: S310 - our own address
            text = answer.read().decode()
    assert 'executa_invokes_total{outcome="ok",plugin="notebook",tool="recall"} 1.0' in text


# --- Extras that are not there ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "extra"), [("prometheus_client", "metrics"), ("opentelemetry", "otel")]
)
def test_an_extra_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=rf"install executa-host\[{extra}\]"):
        (Metrics if extra == "metrics" else Spans)()


def test_nothing_of_the_extras_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, executa_host, executa_host.observe.metrics, executa_host.observe.spans,"
        " executa_host.observe.logs, executa_host.nexus.http;"
        "print([name for name in sys.modules if name.startswith(('prometheus', 'opentelem'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
