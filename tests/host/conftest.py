"""A host with a plugin that a stranger wrote, for the tests of this folder."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

from executa_host import Host, PluginSpec
from executa_nexus_stub import NexusStub
from executa_protocol.transcript import AnyEvent
from tests.support.leaks import LeakCheck

RAW_PLUGIN = Path(__file__).parents[1] / "support" / "raw_plugin.py"

E = TypeVar("E")


def raw_command(*options: str) -> tuple[str, ...]:
    """The command of the raw plugin with `options`."""
    return (sys.executable, str(RAW_PLUGIN), *options)


class Rig:
    """A host, its nexus, and everything that it traced."""

    def __init__(self, nexus: NexusStub, *, strict: bool = False) -> None:
        self.nexus = nexus
        self.events: list[AnyEvent] = []
        self._waiting: list[tuple[Callable[[AnyEvent], bool], asyncio.Event]] = []
        self.host = Host(nexus, strict=strict, trace=self._take)

    def add(self, *options: str, name: str = "raw", **spec: Any) -> None:
        """Make a raw plugin known."""
        self.host.add(PluginSpec(name=name, command=raw_command(*options), **spec))

    async def reverse(
        self, method: str, params: Mapping[str, Any], *, stamp: bool = True, plugin: str = "raw"
    ) -> dict[str, Any]:
        """Let the plugin make a reverse call, and give what the host answered."""
        arguments = {"method": method, "params": params, "stamp": stamp}
        outcome = await self.host.invoke(plugin, "reverse", arguments)
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


@pytest.fixture
async def rig(leak_check: LeakCheck) -> AsyncIterator[Rig]:
    """A tolerant host over the stub."""
    nexus = NexusStub()
    rig = Rig(nexus)
    async with rig.host:
        yield rig
    await nexus.aclose()
    leak_check.watch(nexus, "nexus")


@pytest.fixture
async def strict_rig(leak_check: LeakCheck) -> AsyncIterator[Rig]:
    """A strict host over the stub."""
    nexus = NexusStub()
    rig = Rig(nexus, strict=True)
    async with rig.host:
        yield rig
    await nexus.aclose()
    leak_check.watch(nexus, "nexus")
