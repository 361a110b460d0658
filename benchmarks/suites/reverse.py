"""Suite `reverse`: invokes whose tool calls the host back, over MCP's sampling callback."""

from benchmarks.drivers.contender import Task
from benchmarks.drivers.pool import Ask, Pool, Wanted
from benchmarks.model import Report
from benchmarks.rounds import figure, ratio
from benchmarks.scale import Scale

DIRECT = "executa"


async def run(scale: Scale) -> Report:
    """An invoke with one and with eight sampling calls, 1 and 64 in flight."""
    report = Report("reverse")
    async with Pool(report, scale) as pool:
        await pool.open(
            Wanted(DIRECT, "executa", {"peer": "reverse", "nexus": "direct"}),
            Wanted("mcp", "mcp"),
        )
        for count in (1, 8):
            task = Task("sample", size=64, count=count)
            for in_flight in (1, 64):
                condition = f"{count} sampling, {in_flight} in flight"
                asks = [Ask(name, task, in_flight) for name in (DIRECT, "mcp")]
                series = await pool.rounds(condition, asks)
                ours, theirs = (series.values(name, "rate_per_s") for name in (DIRECT, "mcp"))
                key = "rate_over_mcp" if (count, in_flight) == (1, 64) else ""
                key = key or f"rate_over_mcp_{count}_{in_flight}"
                title = f"{condition}: our invokes a second over mcp's"
                ratio(report, key, title, ours, theirs)
                if in_flight == 64:
                    host = series.values(DIRECT, "cpu_client_us")
                    title = f"{condition}: CPU of the host for one invoke"
                    figure(report, f"cpu_host_{count}", title, host, unit="µs")
    return report
