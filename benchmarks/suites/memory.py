"""Suite `memory`: what an idle plugin holds, after its first call."""

from benchmarks import machine
from benchmarks.model import Report
from benchmarks.rounds import CHECKED, Sample, Trial, alternate, ratio
from benchmarks.scale import Scale
from benchmarks.spoken import PROGRAMS, Program, speak, started


async def run(scale: Scale) -> Report:
    """Resident memory of an idle plugin, over a bare json loop's and over MCP servers'."""
    report = Report("memory")
    trials = [_trial(program, scale) for program in PROGRAMS]
    series = await alternate("idle after one call", trials, min(scale.rounds, 5), report)
    ours = series.values("executa", "resident_mib")
    for peer, key in (("bare json loop", "bare"), ("mcp", "mcp"), ("fastmcp", "fastmcp")):
        theirs = series.values(peer, "resident_mib")
        ratio(report, f"over_{key}", f"resident memory: ours over {peer}'s", ours, theirs)
    return report


def _trial(program: Program, scale: Scale) -> Trial:
    async def take() -> Sample:
        program.check(scale)
        with started(program) as process:
            speak(program, process)
            return {
                "resident_mib": machine.resident(process.pid),
                "private_mib": machine.private(process.pid),
                "peak_mib": machine.peak_resident(process.pid),
                CHECKED: 1,
            }

    return Trial(program.name, take)
