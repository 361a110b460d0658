"""What `executa serve` takes from its file: address, TLS, store, settings of the engine."""

import json
import signal
import socket
import sys
from pathlib import Path

import pytest

from executa_host.actions.records import Context, Mode, Observability
from executa_host.client import Client
from tests.api.served import Served, executa

pytestmark = pytest.mark.slow


def _add(served: Served, text: str) -> None:
    served.config.write_text(served.config.read_text() + text)


async def test_it_listens_and_stores_where_the_file_says(tmp_path: Path) -> None:
    served = Served(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    _add(served, f'[serve]\nport = {port}\ngrace = 1\n[actions]\nstore = "work/durable.db"\n')
    served.start(port=None, store=False)
    with served:
        assert served.url == f"http://127.0.0.1:{port}"
        assert (tmp_path / "work" / "durable.db").is_file()


async def test_the_engine_has_the_settings_of_the_file(tmp_path: Path) -> None:
    served = Served(tmp_path)
    _add(
        served,
        """
        [actions]
        expires_after = 60
        [actions.capabilities."raw.*"]
        effect = "read"
        timeout = 7
        modes = ["async"]
        approvers = ["grace"]
        approval = true
        """,
    )
    served.start()
    with served:
        async with Client(served.url, served.key()) as client:
            contract = await client.capability("raw.echo")
            assert contract is not None
            assert (contract.effect, contract.modes) == ("read", ("async",))
            assert (contract.timeout_ms, contract.approvers) == (7000, ("grace",))
            submitted = await client.submit("raw.echo", {"value": {"n": 1}})
            action = submitted.action
            assert action.expires_at_ms - action.accepted_at_ms == 60_000


async def test_with_a_certificate_it_speaks_https_alone(tmp_path: Path) -> None:
    pytest.importorskip("cryptography", reason="a certificate takes this library to make")
    from tests.api.certificates import make_certificate  # noqa: PLC0415 - see above

    certificate, _ = make_certificate(tmp_path)
    served = Served(tmp_path)
    _add(served, '[serve]\ntls_certificate = "cert.pem"\ntls_key = "key.pem"\n')
    served.start()
    with served:
        assert served.url.startswith("https://127.0.0.1:")
        trusted = {**served.environment(), "SSL_CERT_FILE": str(certificate)}
        done = executa("actions", "list", "--json", env=trusted)
        assert json.loads(done.stdout)["records"] == []
        unknown = executa("actions", "list", "--json", env=served.environment())
        assert unknown.returncode == 3
        assert "certificate" in unknown.stdout.lower()
        plain = {**trusted, "EXECUTA_API_URL": served.url.replace("https", "http")}
        assert executa("actions", "list", "--json", env=plain).returncode == 3


TRACED = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from executa_host.cli import main

provider = TracerProvider()
out = open({path!r}, "w", buffering=1)
line = lambda span: span.to_json(indent=None) + "\\n"
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out, formatter=line)))
trace.set_tracer_provider(provider)
main(sys.argv[1:])
"""


async def test_an_actions_trace_context_is_the_parent_of_its_spans(tmp_path: Path) -> None:
    served = Served(tmp_path)
    exported = tmp_path / "spans.jsonl"
    served.program = (sys.executable, "-c", TRACED.format(path=str(exported)))
    trace_id, span_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    context = Context(observability=Observability(traceparent=f"00-{trace_id}-{span_id}-01"))
    with served:
        async with Client(served.url, served.key()) as client:
            await client.submit("raw.echo", {"value": {}}, mode=Mode.SYNC, context=context)
        served.signal(signal.SIGTERM)
        assert served.ended() == 0
    (span,) = map(json.loads, exported.read_text().splitlines())
    assert span["name"] == "invoke raw.echo"
    assert span["context"]["trace_id"] == f"0x{trace_id}"
    assert span["parent_id"] == f"0x{span_id}"


def test_a_fault_in_the_file_is_told_with_its_path(tmp_path: Path) -> None:
    served = Served(tmp_path)
    _add(served, "[actions.slots]\nin_all = 0\n[serve]\nport = -1\n")
    done = executa("serve", "--config", str(served.config))
    assert done.returncode == 2
    told = " ".join(done.stderr.split())
    assert "actions.slots.in_all: expected an integer from 1" in told
    assert "serve.port: expected an integer from 0" in told


def test_a_certificate_that_cannot_be_used_is_told_before_anything_is_opened(
    tmp_path: Path,
) -> None:
    served = Served(tmp_path)
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("nonsense")
    _add(served, '[serve]\ntls_certificate = "cert.pem"\ntls_key = "key.pem"\n')
    done = executa("serve", "--config", str(served.config), "--store", str(served.store))
    assert done.returncode == 2
    assert "cert.pem" in done.stderr
    assert not served.store.exists()


def test_what_is_left_in_a_hurry_is_closed(tmp_path: Path) -> None:
    served = Served(tmp_path)
    _add(served, "[serve]\ngrace = 0\n")
    served.start()
    with served:
        served.signal(signal.SIGTERM)
        assert served.ended() == 0
