"""A host under load for a while: many plugins, kills, time-outs and cancels, nothing lost.

Every answer is checked. It ends well if no call is unanswered, no answer wrong, and tasks,
descriptors and processes are back to what they were; otherwise the exit code says so. The
seed fixes what each worker asks and who is killed; how calls interleave is the machine's.
"""

import asyncio
import gc
import os
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop
from rich.console import Console

from benchmarks.soak_load import Load
from executa_host import Host, PluginSpec
from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.grants import Plan
from executa_protocol import transcript
from executa_protocol.transcript import AnyEvent

PLUGIN: Final = Path(__file__).with_name("soak_plugin.py")
SEED: Final = 20260714
WORKERS: Final = 2
KILLS_PER_SECOND: Final = 1.0
SETTLE: Final = 5.0
"""Seconds that what ends by itself (a reaped process, a closed stream) is waited for."""

_MIB: Final = 1024 * 1024


class Watch:
    """Follows the host: everything that begins must end."""

    def __init__(self) -> None:
        self.open: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()

    def __call__(self, event: AnyEvent) -> None:
        match event:
            case transcript.InvokeStarted():
                self.open["invokes"] += 1
                self.seen["nested invokes" if event.parent else "invokes"] += 1
            case transcript.InvokeEnded():
                self.open["invokes"] -= 1
            case transcript.ReverseStarted():
                self.open["reverse calls"] += 1
            case transcript.ReverseEnded():
                if event.call:
                    self.open["reverse calls"] -= 1
                self.seen[f"reverse {event.verdict}"] += 1
            case transcript.Spawned():
                self.seen["starts"] += 1
            case transcript.Exited():
                self.seen["faults"] += event.fault
            case transcript.RunFrame():
                self.seen["frames"] += 1
            case transcript.Noise():
                self.seen[f"noise {event.kind}"] += 1
            case _:
                pass


async def soak(
    plugins: int = 50,
    seconds: float = 60.0,
    *,
    seed: int = SEED,
    workers: int = WORKERS,
    kills_per_second: float = KILLS_PER_SECOND,
) -> dict[str, Any]:
    """Load a host with so many plugins for so long, and say how it went; ``ok`` if all did."""
    await _warm_up()
    before = _resources()
    started = time.monotonic()
    watch, memory = Watch(), Memory()
    # The plan's ten runs at a time would be refused to most of them, rightly.
    nexus = NexusStub(StubConfig(plans={"": Plan(concurrent_runs=100_000)}))
    names = [f"soak{number:03d}" for number in range(plugins)]
    async with Host(nexus, trace=watch) as host:
        for number, name in enumerate(names):
            host.add(_spec(name, cancels=number % 2 == 0))
        sampling = asyncio.ensure_future(memory.sample())
        try:
            await asyncio.gather(*(host.start(name) for name in names))
            load = Load(host, names, seed)
            await load.run(seconds, workers, kills_per_second)
        finally:
            sampling.cancel()
            await asyncio.wait((sampling,))
    left_at_nexus = {
        "open invokes": nexus.open_invokes,
        "in flight": nexus.in_flight,
        "tool results awaited": nexus.pending_count,
    }
    await nexus.aclose()
    after = await _settled(before)
    tally = load.tally
    leaks = [f"{what}: {before[what]} before, {after[what]} after" for what in before
             if after[what] > before[what]]  # fmt: skip
    leaks += [f"{count} {what} left at nexus" for what, count in left_at_nexus.items() if count]
    unanswered = tally.unanswered + [
        f"{count} {what} began and did not end" for what, count in watch.open.items() if count
    ]
    return {
        "ok": not (tally.wrong or unanswered or leaks),
        "seed": seed,
        "plugins": plugins,
        "seconds": round(time.monotonic() - started, 1),
        "outcomes": dict(sorted(tally.counts.items())),
        "seen": dict(sorted(watch.seen.items())),
        "unanswered": len(unanswered),
        "wrong": len(tally.wrong),
        "leaks": leaks,
        "examples": [*tally.wrong[:5], *unanswered[:5]],
        "resources": {"before": before, "after": after},
        "peak_memory_mib": memory.peaks(),
    }


def run_soak(
    plugins: int = 50, seconds: float = 60.0, *, seed: int = SEED, json: bool = False
) -> int:
    """Run the soak and print how it went; with `json` as one object on standard output.

    Gives the exit code: 0 if nothing was unanswered, wrong or left behind.
    """
    console = Console(stderr=json)
    with console.status(f"soak: {plugins} plugins for {seconds:g} s, seed {seed}"):
        result = uvloop.run(soak(plugins, seconds, seed=seed))
    if json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    else:
        for name, value in result.items():
            console.print(f"{name:<16} {value}", highlight=False, markup=False)
    return 0 if result["ok"] else 1


class Memory:
    """The most memory that the host, and that it and its plugins together, held."""

    def __init__(self) -> None:
        self._host = 0
        self._all = 0

    async def sample(self) -> None:
        """Look every second until cancelled."""
        while True:
            own = _resident(os.getpid())
            self._host = max(self._host, own)
            self._all = max(self._all, own + sum(_resident(pid) for pid in _children()))
            await asyncio.sleep(1.0)

    def peaks(self) -> dict[str, float]:
        """Mebibytes. The kernel's own peak counts for the host."""
        unit = 1 if sys.platform == "darwin" else 1024
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return {
            "host": round(max(self._host, most) / _MIB, 1),
            "host_and_plugins": round(self._all / _MIB, 1),
        }


def _spec(name: str, *, cancels: bool) -> PluginSpec:
    command = (sys.executable, "-S", str(PLUGIN), *(("--cancels",) if cancels else ()))
    return PluginSpec(name=name, command=command)


async def _warm_up() -> None:
    """Whatever is opened once for good is opened before anything is counted."""
    nexus = NexusStub()
    async with Host(nexus) as host:
        host.add(_spec("warm", cancels=False))
        await host.invoke("warm", "overreach", {"key": "k"})
    await nexus.aclose()


def _resources() -> dict[str, int]:
    gc.collect()
    return {
        "tasks": len(asyncio.all_tasks()),
        "descriptors": sum(1 for _ in Path("/dev/fd").iterdir()),
        "children": len(_children()),
    }


async def _settled(before: dict[str, int]) -> dict[str, int]:
    until = time.monotonic() + SETTLE
    after = _resources()
    while any(after[what] > before[what] for what in before) and time.monotonic() < until:
        await asyncio.sleep(0.05)
        after = _resources()
    return after


def _children() -> list[int]:
    """Direct children; none where there is no /proc."""
    task = Path("/proc/self/task")
    found: list[int] = []
    for thread in task.iterdir() if task.is_dir() else ():
        try:
            found += map(int, (thread / "children").read_text().split())
        except OSError:
            continue  # a thread that ended, or a kernel without this file
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0
