"""Suite `waiting`: many invokes of one plugin that all wait for a slow reverse call."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from benchmarks import machine
from benchmarks.model import Report, WrongAnswer
from benchmarks.rounds import CHECKED, Sample, Trial, alternate, ratio
from benchmarks.scale import Scale
from executa_host import Host, PluginSpec
from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.faults import FaultConfig, FaultRule

PEER: Final = Path(__file__).parents[1] / "peers" / "waiting_plugin.py"
AT_ONCE: Final = 1_000
PAUSE: Final = 0.05
"""Seconds that nexus takes for one storage call."""

TOOLS: Final = {"wait_task": "executa, async tool", "wait_thread": "executa, thread tool"}


async def run(scale: Scale) -> Report:
    """1,000 invokes at once, each waiting 50 ms for a reverse call, in the time of a few."""
    report = Report("waiting")
    at_once = scale.part(4 * AT_ONCE) if scale.size < 0.25 else AT_ONCE
    condition = f"{at_once:,} at once, {PAUSE * 1000:.0f} ms each"
    async with _host() as (host, pid):
        trials: list[Trial] = []
        for tool, name in TOOLS.items():
            wave = _Wave(host, pid, tool, at_once)
            trials.append(Trial(name, wave.take, wave.take))
        series = await alternate(condition, trials, scale.rounds, report)
    for tool, name in TOOLS.items():
        walls = series.values(name, "wall_ms")
        title = f"{name}: time of all over the time of one"
        pauses = [PAUSE * 1000] * len(walls or ())
        ratio(report, f"time_of_all_{tool}", title, walls, pauses)
        sizes = series.values(name, "resident_plugin_mib")
        first = [sizes[0]] * len(sizes) if sizes else None
        title = f"{name}: the plugin's memory over the first round's"
        ratio(report, f"growth_{tool}", title, sizes, first)
    return report


class _Wave:
    """All invokes of one tool at once, again and again."""

    def __init__(self, host: Host, pid: int, tool: str, at_once: int) -> None:
        self._host = host
        self._pid = pid
        self._tool = tool
        self._at_once = at_once
        self._done = 0

    async def take(self) -> Sample:
        """Begin them all, wait for all, and look at every answer."""
        count, start = self._at_once, self._done
        self._done += count
        there, here = machine.cpu(self._pid), time.process_time()
        begun = time.perf_counter()
        numbers = range(start, start + count)
        calls = [
            self._host.invoke("waiting", self._tool, {"number": number}, timeout=120)
            for number in numbers
        ]
        for number, outcome in zip(numbers, await asyncio.gather(*calls), strict=True):
            if outcome.data != number:
                msg = f"{self._tool}: {number} came back as {outcome.data!r:.40}"
                raise WrongAnswer(msg)
        wall = time.perf_counter() - begun
        return {
            "wall_ms": wall * 1e3,
            "rate_per_s": count / wall,
            "cpu_client_us": (time.process_time() - here) / count * 1e6,
            "cpu_server_us": (machine.cpu(self._pid) - there) / count * 1e6,
            "resident_plugin_mib": machine.resident(self._pid),
            CHECKED: count,
        }


@asynccontextmanager
async def _host() -> AsyncGenerator[tuple[Host, int]]:
    slow = FaultRule(kind="latency", endpoint="storage", seconds=PAUSE)
    nexus = NexusStub(StubConfig(faults=FaultConfig(rules=(slow,), seed=1)))
    async with Host(nexus, closes_nexus=True) as host:
        host.add(PluginSpec(name="waiting", command=(sys.executable, str(PEER))))
        await host.start("waiting")
        yield host, host.pid("waiting") or 0
