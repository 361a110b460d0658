"""A host of which everything that it lets out is scanned for secrets."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import generate_latest

from executa_host import Host, PluginSpec
from executa_host.nexus.http import HttpNexus
from executa_host.observe.logs import EventLog
from executa_host.observe.metrics import Metrics
from executa_host.observe.spans import Spans
from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.faults import FaultConfig, FaultRule
from executa_nexus_stub.grants import PluginGrant, User
from executa_nexus_stub.http.server import NexusServer
from executa_protocol.nexus import Nexus
from executa_protocol.transcript import AnyEvent
from tests.host.conftest import raw_command
from tests.host.secret_scanner import Scanner

KEY = "host-key-7f3a9c51"
FROM_NEXUS = "credential-of-nexus-b81d"
FROM_SPEC = "credential-of-the-spec-40ce"
OF_ANOTHER = "credential-of-another-plugin-9e21"
UNDECLARED = "credential-that-nobody-declared-11aa"

CREDENTIALS = [
    {"name": "CLOUD_KEY", "description": "x"},
    {"name": "LOCAL_KEY", "description": "x"},
]


class Watched:
    """A host of which everything is scanned, and the folder that its files are in."""

    def __init__(self, nexus: Nexus, scanner: Scanner, folder: Path) -> None:
        self.scanner = scanner
        self.folder = folder
        self.metrics = Metrics()
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self._consumers = [
            scanner.event,
            EventLog(content=True),
            self.metrics,
            Spans(self.provider),
        ]
        self.host = Host(nexus, trace=self._take)

    def _take(self, event: AnyEvent) -> None:
        for consumer in self._consumers:
            consumer(event)

    def add(self, name: str, *options: str, **spec: Any) -> None:
        """Make a raw plugin known that declares two credentials."""
        manifest = json.dumps({"name": name, "credentials": CREDENTIALS})
        command = raw_command("--manifest", manifest, *options)
        spec = {"credentials": {"LOCAL_KEY": FROM_SPEC, "UNDECLARED": UNDECLARED}, **spec}
        self.host.add(PluginSpec(name=name, command=command, **spec))

    async def invoke(
        self, plugin: str, tool: str, arguments: dict[str, Any] | None = None, **options: Any
    ) -> Any:
        """Invoke, and scan whatever comes of it."""
        invoking = self.host.invoke(plugin, tool, arguments, **options)
        (outcome,) = await asyncio.gather(invoking, return_exceptions=True)
        self.scanner.outcome(outcome)
        self.scanner.files(self.folder)
        return outcome

    def finish(self) -> None:
        """Scan what stayed."""
        self.scanner.look("the metrics", generate_latest(self.metrics.registry).decode())
        for span in self.exporter.get_finished_spans():
            self.scanner.look("a span", span.to_json())
        self.scanner.look("the host's repr", repr(self.host))
        self.scanner.files(self.folder)
        self.provider.shutdown()


def stub_config(*rules: FaultRule) -> StubConfig:
    user = User(
        credentials={"CLOUD_KEY": FROM_NEXUS},
        plugins={"raw": PluginGrant(), "other": PluginGrant(credentials={"LOCAL_KEY": OF_ANOTHER})},
    )
    return StubConfig(
        users={"local": user},
        host_key_env="STUB_HOST_KEY",
        faults=FaultConfig(rules=rules, seed=7),
    )


async def no_pause(seconds: float) -> None:
    del seconds


@contextlib.asynccontextmanager
async def nexus_by(kind: str, stub: NexusStub) -> AsyncGenerator[Nexus]:
    if kind == "direct":
        yield stub
        return
    async with NexusServer(stub) as server:
        nexus = HttpNexus(server.url, key=KEY, pause=no_pause)
        yield nexus
        await nexus.aclose()


@contextlib.asynccontextmanager
async def watched_host(
    kind: str, scanner: Scanner, folder: Path, *rules: FaultRule
) -> AsyncGenerator[Watched]:
    stub = NexusStub(stub_config(*rules))
    scanner.watch(stub)
    async with nexus_by(kind, stub) as nexus:
        scanner.look("nexus's repr", repr(nexus))
        watched = Watched(nexus, scanner, folder)
        async with watched.host:
            yield watched
        watched.finish()
    await stub.aclose()
