"""Suite `waiting`: many invokes of one plugin that all wait for a slow reverse call."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from benchmarks.harness import Report, Row, Scale, Spread, WrongAnswer, child_cpu, ratio
from executa_host import Host, PluginSpec
from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.faults import FaultConfig, FaultRule

PEER: Final = Path(__file__).parent / "peers" / "waiting_plugin.py"
AT_ONCE: Final = 1_000
PAUSE: Final = 0.05
"""Seconds that nexus takes for one storage call."""

ROUNDS: Final = 8


async def run(scale: Scale) -> Report:
    """1,000 invokes at once, each waiting 50 ms for a reverse call, in the time of a few."""
    report = Report("waiting", [], [], 0)
    for tool in ("wait_task", "wait_thread"):
        walls: list[float] = []
        sizes: list[float] = []
        cpu: list[float] = []
        async with _host() as (host, pid):
            for number in range(min(scale.rounds, ROUNDS) + 1):
                used = child_cpu(pid)
                begun = time.perf_counter()
                await _all_at_once(host, tool, number * AT_ONCE)
                if number:  # the first round is the warm-up
                    walls.append(time.perf_counter() - begun)
                    cpu.append((child_cpu(pid) - used) / AT_ONCE * 1e6)
                    sizes.append(_resident(pid))
        report.checked += (len(walls) + 1) * AT_ONCE
        condition = f"{AT_ONCE:,} at once, {PAUSE * 1000:.0f} ms each"
        nothing = Spread(0.0, 0.0, 0.0)
        report.rows.append(
            Row(
                condition=condition,
                contender=tool,
                calls_a_second=Spread.of([AT_ONCE / wall for wall in walls]),
                p50_us=Spread.of([wall / AT_ONCE * 1e6 for wall in walls]),
                p99_us=nothing,
                cpu_here_us=nothing,
                cpu_there_us=Spread.of(cpu),
            )
        )
        pauses = [PAUSE] * len(walls)
        report.ratios.append(ratio(tool, "time of all over the time of one", walls, pauses))
        first = [sizes[0]] * len(sizes)
        report.ratios.append(ratio(tool, "plugin's memory over the first round's", sizes, first))
    return report


@asynccontextmanager
async def _host() -> AsyncGenerator[tuple[Host, int]]:
    slow = FaultRule(kind="latency", endpoint="storage", seconds=PAUSE)
    nexus = NexusStub(StubConfig(faults=FaultConfig(rules=(slow,), seed=1)))
    async with Host(nexus) as host:
        host.add(PluginSpec(name="waiting", command=(sys.executable, str(PEER))))
        await host.start("waiting")
        yield host, host.pid("waiting") or 0
    await nexus.aclose()


async def _all_at_once(host: Host, tool: str, start: int) -> None:
    numbers = range(start, start + AT_ONCE)
    calls = [host.invoke("waiting", tool, {"number": number}, timeout=120) for number in numbers]
    for number, outcome in zip(numbers, await asyncio.gather(*calls), strict=True):
        if outcome.data != number:
            raise WrongAnswer(f"{tool}: {number} came back as {outcome.data!r:.40}")


def _resident(pid: int) -> float:
    """Resident memory in MiB; 1 where the system does not tell, so that ratios stay ratios."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 1.0
    return pages * 4096 / 2**20
