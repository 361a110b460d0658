"""Suite `roundtrip`: an invoke there and back, beside pipes with as many bytes, and peers."""

from typing import Final

from benchmarks import machine
from benchmarks.drivers.contender import Task
from benchmarks.drivers.pool import Ask, Pool, Wanted
from benchmarks.model import Report
from benchmarks.rounds import Series, figure, ratio
from benchmarks.scale import Scale

ANNA: Final = "anna-app-runtime-local"
ANNA_UVLOOP: Final = f"{ANNA}, uvloop"
"""The same pool under uvloop, which suits it better than the loop it is published with."""

TOOLS: Final = ("inline", "async", "thread")
SIZES: Final = ((100, "100 B"), (10_000, "10 kB"), (100_000, "100 kB"), (1_048_576, "1 MiB"))
SIZES_IN_FLIGHT: Final = 8
"""With 1 MiB each no peer's queue is full."""

MANY: Final = 10_000
PINNED: Final = ", one core"
APART: Final = ", a core each"


async def run(scale: Scale) -> Report:
    """An invoke there and back: 1, 64 and 1,024 in flight, 100 B to 1 MiB, pinned and not."""
    report = Report("roundtrip")
    async with Pool(report, scale) as pool:
        await pool.open(
            *(Wanted(_ours(tool), "executa", {"peer": tool}) for tool in TOOLS),
            *(Wanted(name, name) for name in ("uvloop pipe", "blocking pipe")),
            *(Wanted(name, name) for name in (ANNA, ANNA_UVLOOP, "mcp", "fastmcp")),
        )
        await _one(pool, report)
        await _sixty_four(pool, report)
        await _thousand(pool)
        await _sizes(pool)
        await _many(pool, scale, report)
    await _apart(scale, report)
    await _pinned(scale, report)
    return report


async def _one(pool: Pool, report: Report) -> None:
    asks = [Ask(_ours("inline"), Task("inline")), *_echoes("uvloop pipe", "blocking pipe", 1)]
    asks += [Ask(name, Task("inline")) for name in (ANNA, ANNA_UVLOOP)]
    asks += _echoes("mcp", "fastmcp", 1)
    series = await pool.rounds("1 in flight", asks)
    ours = series.values(_ours("inline"), "p50_us")
    for floor, key in (("uvloop pipe", "uvloop"), ("blocking pipe", "blocking")):
        theirs = series.values(floor, "p50_us")
        title = f"1 in flight: our p50 over that of the {floor}"
        ratio(report, f"p50_over_{key}_floor", title, ours, theirs)


async def _sixty_four(pool: Pool, report: Report) -> None:
    asks = [Ask(_ours(tool), Task(tool), 64) for tool in TOOLS]
    asks += [*_echoes("uvloop pipe", "mcp", 64), *_echoes("fastmcp", "", 64)]
    asks += [Ask(name, Task("inline"), 64) for name in (ANNA, ANNA_UVLOOP)]
    series = await pool.rounds("64 in flight", asks)
    ours = series.values(_ours("inline"), "rate_per_s")
    for peer in ("mcp", "fastmcp", ANNA, ANNA_UVLOOP):
        title = f"64 in flight: our calls a second over {peer}'s"
        theirs = series.values(peer, "rate_per_s")
        ratio(report, f"rate_over_{peer}", title, ours, theirs)
    host = series.values(_ours("inline"), "cpu_client_us")
    figure(report, "cpu_host", "64 in flight: CPU of the host for one invoke", host, unit="µs")
    for tool in TOOLS:
        plugin = series.values(_ours(tool), "cpu_server_us")
        title = f"64 in flight: CPU of the plugin for one invoke, {tool} tool"
        figure(report, f"cpu_plugin_{tool}", title, plugin, unit="µs")


async def _thousand(pool: Pool) -> None:
    asks = [Ask(_ours("inline"), Task("inline"), 1_024), *_echoes("uvloop pipe", "mcp", 1_024)]
    asks.append(Ask(ANNA, Task("inline"), 1_024))
    await pool.rounds("1,024 in flight", asks)


async def _sizes(pool: Pool) -> None:
    for size, name in SIZES:
        asks = [
            Ask(_ours("inline"), Task("inline", size), SIZES_IN_FLIGHT),
            Ask("uvloop pipe", Task("echo", size), SIZES_IN_FLIGHT),
            Ask(ANNA, Task("inline", size), SIZES_IN_FLIGHT),
            Ask("mcp", Task("echo", size), SIZES_IN_FLIGHT),
        ]
        await pool.rounds(f"{name}, {SIZES_IN_FLIGHT} in flight", asks)


async def _many(pool: Pool, scale: Scale, report: Report) -> None:
    count = MANY if scale.size > 0.1 else 100
    names = "executa, 64 in flight", f"executa, {count:,} in flight"
    asks = [Ask(names[0], Task("inline"), 64, _ours("inline"))]
    asks.append(Ask(names[1], Task("inline"), count, _ours("inline")))
    series = await pool.rounds("many in flight", asks)
    title = f"CPU of one invoke at {MANY:,} in flight over 64"
    note = "" if count == MANY else f"{count:,} in flight"
    ratio(
        report, "cost_of_many", title, _cost(series, names[1]), _cost(series, names[0]), note=note
    )


async def _apart(scale: Scale, report: Report) -> None:
    """Client and server on a core of their own: both contenders wake the other core.

    Left alone, the system may put one contender's two processes on one core and the
    other's on two, and a ratio would compare that.
    """
    cores = machine.usable_cores()
    if len(cores) < 2:
        return
    async with Pool(report, scale) as pool:
        names = ("executa", "uvloop pipe")
        apart = [Wanted(name + APART, name, {}, cores[0], cores[1]) for name in names]
        await pool.open(*apart)
        tasks = (Task("inline"), Task())
        asks = [Ask(one.name, task) for one, task in zip(apart, tasks, strict=True)]
        series = await pool.rounds(f"1 in flight{APART}", asks)
        ours, theirs = (series.values(one.name, "p50_us") for one in apart)
        title = "1 in flight, a core each: our p50 over that of the uvloop pipe"
        ratio(report, "p50_over_uvloop_floor_apart", title, ours, theirs)


async def _pinned(scale: Scale, report: Report) -> None:
    """Everything of a contender on one core: nobody is woken on another one."""
    cores = machine.usable_cores()
    if not cores:
        return
    async with Pool(report, scale) as pool:
        names = ("executa", "uvloop pipe", ANNA, ANNA_UVLOOP, "mcp")
        await pool.open(*(Wanted(name + PINNED, name, core=cores[-1]) for name in names))
        tasks = dict.fromkeys(("executa", ANNA, ANNA_UVLOOP), Task("inline"))
        for in_flight in (1, 64):
            asks = [Ask(name + PINNED, tasks.get(name, Task()), in_flight) for name in names]
            series = await pool.rounds(f"{in_flight} in flight{PINNED}", asks)
            measure = "p50_us" if in_flight == 1 else "rate_per_s"
            ours = series.values("executa" + PINNED, measure)
            if in_flight == 1:
                theirs = series.values("uvloop pipe" + PINNED, measure)
                title = "1 in flight, one core: our p50 over that of the uvloop pipe"
                ratio(report, "p50_over_uvloop_floor_pinned", title, ours, theirs)
                continue
            for peer in (ANNA, ANNA_UVLOOP, "mcp"):
                title = f"64 in flight, one core: our calls a second over {peer}'s"
                theirs = series.values(peer + PINNED, measure)
                ratio(report, f"rate_over_{peer}_pinned", title, ours, theirs)


def _echoes(first: str, second: str, in_flight: int) -> list[Ask]:
    return [Ask(name, Task("echo"), in_flight) for name in (first, second) if name]


def _ours(tool: str) -> str:
    return f"executa, {tool} tool"


def _cost(series: Series, name: str) -> list[float] | None:
    here, there = series.values(name, "cpu_client_us"), series.values(name, "cpu_server_us")
    if here is None or there is None:
        return None
    return [ours + theirs for ours, theirs in zip(here, there, strict=True)]
