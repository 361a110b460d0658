"""Suite `api`: durable actions over HTTP, beside a server that answers at once."""

from typing import Final

from benchmarks.drivers.contender import Task
from benchmarks.drivers.pool import Ask, Pool, Wanted
from benchmarks.model import Report
from benchmarks.rounds import figure, ratio
from benchmarks.scale import Scale

FLOOR: Final = "aiohttp echo"
WORKS: Final = {"result": "run to its result", "read": "read", "submit": "accepted"}
"""What is only accepted comes last: it runs when it is nobody's turn, and would be in the way."""


async def run(scale: Scale) -> Report:
    """Actions submitted, run to their result and read over HTTP, at 1 and 64 clients."""
    report = Report("api")
    async with Pool(report, scale) as pool:
        await pool.open(Wanted("executa", "api"), Wanted(FLOOR, FLOOR))
        for kind, words in WORKS.items():
            for clients in (1, 64):
                condition = f"an action {words}, {clients} client{'s' * (clients > 1)}"
                asks = [Ask("executa", Task(kind), clients), Ask(FLOOR, Task("echo"), clients)]
                series = await pool.rounds(condition, asks)
                ours, floor = (series.values(ask.name, "rate_per_s") for ask in asks)
                title = f"{condition}: requests a second over the echo's"
                ratio(report, f"rate_over_floor_{kind}_{clients}", title, ours, floor)
                used = series.values("executa", "cpu_server_us")
                title = f"{condition}: CPU of the server and its plugin for one"
                figure(report, f"cpu_{kind}_{clients}", title, used, unit="µs")
    return report
