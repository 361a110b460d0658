"""Suite `agent`: whole runs of agent sessions, 4,096 frames each, beside a pipe's bytes."""

from typing import Final

from benchmarks.contenders.direct_nexus import prepared_frames
from benchmarks.drivers.contender import Task
from benchmarks.drivers.pool import Ask, Pool, Wanted
from benchmarks.model import Report
from benchmarks.rounds import figure, ratio
from benchmarks.scale import Scale

FRAMES: Final = 4_096


async def run(scale: Scale) -> Report:
    """An invoke with an agent session and a run of 4,096 frames, 1 and 8 in flight."""
    report = Report("agent")
    frames = FRAMES if scale.size > 0.1 else 64
    size = sum(map(len, prepared_frames(frames))) + frames
    async with Pool(report, scale) as pool:
        options = {"peer": "reverse", "nexus": "direct"}
        await pool.open(Wanted("executa", "executa", options), Wanted("uvloop pipe", "uvloop pipe"))
        for in_flight in (1, 8):
            condition = f"runs of {frames:,} frames, {in_flight} in flight"
            asks = [
                Ask("executa", Task("agent", count=frames), in_flight),
                Ask("uvloop pipe", Task("echo", size), in_flight),
            ]
            series = await pool.rounds(condition, asks)
            ours, floor = (series.values(ask.name, "rate_per_s") for ask in asks)
            title = f"{condition}: our runs a second over the uvloop pipe's as many bytes"
            ratio(report, f"rate_over_floor_{in_flight}", title, ours, floor)
            for measure, side in (("cpu_client_us", "host"), ("cpu_server_us", "plugin")):
                used = series.values("executa", measure)
                each = [value / frames for value in used] if used else None
                title = f"{condition}: CPU of the {side} for one frame"
                figure(report, f"cpu_{side}_frame_{in_flight}", title, each, unit="µs")
    return report
