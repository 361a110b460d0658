"""Suite `coldstart`: from the start of a process to its first result."""

import time
from typing import Final

from benchmarks import machine
from benchmarks.model import Report
from benchmarks.rounds import CHECKED, Sample, Trial, alternate, ratio
from benchmarks.scale import Scale
from benchmarks.spoken import PROGRAMS, Program, speak, started

ROUNDS: Final = 15
"""Starts of each in a full run: one start is short, and its time varies."""


async def run(scale: Scale) -> Report:
    """Start, handshake and one call, over a bare json loop and over MCP servers."""
    report = Report("coldstart")
    trials = [_trial(program, scale) for program in PROGRAMS]
    rounds = ROUNDS if scale.rounds > 3 else scale.rounds
    series = await alternate("spawn to first result", trials, rounds, report)
    ours = series.values("executa", "first_result_ms")
    for peer, key in (("bare json loop", "bare"), ("mcp", "mcp"), ("fastmcp", "fastmcp")):
        theirs = series.values(peer, "first_result_ms")
        ratio(report, f"over_{key}", f"spawn to first result: ours over {peer}'s", ours, theirs)
        used, used_there = (series.values(name, "cpu_ms") for name in ("executa", peer))
        ratio(report, f"cpu_over_{key}", f"the same in CPU time, over {peer}'s", used, used_there)
    return report


def _trial(program: Program, scale: Scale) -> Trial:
    async def take() -> Sample:
        program.check(scale)
        begun = time.perf_counter()
        with started(program) as process:
            speak(program, process)
            took, used = time.perf_counter() - begun, machine.cpu(process.pid)
            return {"first_result_ms": took * 1e3, "cpu_ms": used * 1e3, CHECKED: 1}

    return Trial(program.name, take, take)
