"""A host with a plugin that a stranger wrote, for the tests of this folder."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

from executa_host import Host, PluginSpec
from executa_nexus_stub import NexusStub
from executa_protocol.transcript import AnyEvent
from tests.support.leaks import LeakCheck

SUPPORT = Path(__file__).parents[1] / "support"
RAW_PLUGIN = SUPPORT / "raw_plugin.py"
RUDE_PLUGIN = SUPPORT / "rude_plugin.py"

E = TypeVar("E")
T = TypeVar("T")


def raw_command(*options: str) -> tuple[str, ...]:
    """The command of the raw plugin with `options`."""
    return (sys.executable, str(RAW_PLUGIN), *options)


def rude_command(*options: str) -> tuple[str, ...]:
    """The command of the raw plugin with worse manners."""
    return (sys.executable, str(RUDE_PLUGIN), *options)


async def soon(work: Awaitable[T]) -> T:
    """What `work` gives, within bounds: a clock that stands still must not hang a test."""
    async with asyncio.timeout(20):
        return await work


class Rig:
    """A host, its nexus, and everything that it traced. `options` are the host's."""

    def __init__(self, nexus: NexusStub, *, strict: bool = False, **options: Any) -> None:
        self.nexus = nexus
        self.events: list[AnyEvent] = []
        self._waiting: list[tuple[Callable[[AnyEvent], bool], asyncio.Event]] = []
        self.host = Host(nexus, strict=strict, trace=self._take, **options)

    def add(self, *options: str, name: str = "raw", **spec: Any) -> None:
        """Make a raw plugin known."""
        self.host.add(PluginSpec(name=name, command=raw_command(*options), **spec))

    def add_rude(self, *options: str, name: str = "raw", **spec: Any) -> None:
        """Make a rude plugin known."""
        self.host.add(PluginSpec(name=name, command=rude_command(*options), **spec))

    async def reverse(
        self, method: str, params: Mapping[str, Any], *, stamp: bool = True, plugin: str = "raw"
    ) -> dict[str, Any]:
        """Let the plugin make a reverse call, and give what the host answered."""
        arguments = {"method": method, "params": params, "stamp": stamp}
        outcome = await self.host.invoke(plugin, "reverse", arguments)
        return outcome.data

    async def calls(
        self, *calls: tuple[str, Mapping[str, Any]], parallel: bool = False, plugin: str = "raw"
    ) -> list[dict[str, Any]]:
        """Let the plugin make several reverse calls in one invoke, and give the answers."""
        listed = [{"method": method, "params": params} for method, params in calls]
        outcome = await self.host.invoke(plugin, "calls", {"calls": listed, "parallel": parallel})
        return outcome.data

    def seen(self, kind: type[E]) -> list[E]:
        """The traced events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, holds: Callable[[AnyEvent], bool]) -> None:
        """Wait, within bounds, for an event of which `holds` is true."""
        if any(map(holds, self.events)):
            return
        came = asyncio.Event()
        self._waiting.append((holds, came))
        async with asyncio.timeout(20):
            await came.wait()

    def _take(self, event: AnyEvent) -> None:
        self.events.append(event)
        for holds, came in self._waiting:
            if holds(event):
                came.set()


MakeRig = Callable[..., Rig]
"""Makes a rig with options of the host's, and of the nexus as `nexus`."""


@pytest.fixture
async def make_rig(leak_check: LeakCheck) -> AsyncIterator[MakeRig]:
    """Rigs of any kind, taken down in the end."""
    made: list[Rig] = []

    def make(nexus: NexusStub | None = None, **options: Any) -> Rig:
        made.append(Rig(nexus or NexusStub(), **options))
        return made[-1]

    yield make
    for rig in made:
        await rig.host.close()
        await rig.nexus.aclose()
        leak_check.watch(rig.nexus, "nexus")


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    """A tolerant host over the stub."""
    return make_rig()


@pytest.fixture
def strict_rig(make_rig: MakeRig) -> Rig:
    """A strict host over the stub."""
    return make_rig(strict=True)
