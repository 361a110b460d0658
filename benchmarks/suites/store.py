"""Suite `store`: durable actions a second, over other durable work on SQLite, and the disk."""

from typing import Final

from msgspec.structs import replace

from benchmarks.drivers.contender import Task
from benchmarks.drivers.pool import Ask, Pool, Wanted
from benchmarks.model import Report
from benchmarks.rounds import ratio
from benchmarks.scale import Scale

CALLERS: Final = (1, 64, 512)
SETTINGS: Final = ("FULL", "NORMAL")
WORKS: Final = {
    "accept": "accepted actions",
    "lifecycle": "full lifecycles",
    "event": "events",
}
DISK: Final = "fdatasync of a page"


async def run(scale: Scale) -> Report:
    """Accepted actions, full lifecycles and events a second at 1, 64 and 512 callers."""
    report = Report("store")
    # Half as long as others: what is written is checked at the end, row by row.
    scale = replace(scale, seconds=scale.seconds / 2)
    async with Pool(report, scale) as pool:
        warm = scale.warm_up > 0
        await pool.open(
            *(
                Wanted(_ours(setting), "action store", {"synchronous": setting, "warm": warm})
                for setting in SETTINGS
            ),
            Wanted(DISK, DISK),
            Wanted("a2a-sdk", "a2a-sdk"),
            Wanted("dbos", "dbos"),
        )
        for kind, words in WORKS.items():
            for callers in CALLERS:
                condition = f"{words}, {callers} callers" if callers > 1 else f"{words}, 1 caller"
                asks = [Ask(_ours(setting), Task(kind), callers) for setting in SETTINGS]
                if callers == 1 and kind == "accept":
                    asks.append(Ask(DISK, Task("fdatasync")))
                if kind == "lifecycle" and callers <= 64:
                    asks += [Ask(peer, Task(kind), callers) for peer in ("a2a-sdk", "dbos")]
                series = await pool.rounds(condition, asks)
                if kind == "lifecycle" and callers == 64:
                    ours = series.values(_ours("FULL"), "rate_per_s")
                    for peer, key in (("a2a-sdk", "a2a"), ("dbos", "dbos")):
                        theirs = series.values(peer, "rate_per_s")
                        title = f"{condition}, FULL: ours a second over {peer}'s"
                        ratio(report, f"over_{key}", title, ours, theirs)
                    relaxed = series.values(_ours("NORMAL"), "rate_per_s")
                    title = f"{condition}: what FULL leaves of NORMAL's rate"
                    ratio(report, "full_over_normal", title, ours, relaxed)
        asks = [Ask(_ours(setting), Task("check")) for setting in SETTINGS]
        await pool.once("everything that was written, checked", asks)
    return report


def _ours(setting: str) -> str:
    return f"executa, {setting}"
