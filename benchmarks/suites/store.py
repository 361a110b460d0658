"""Suite `store`: durable actions a second, over other durable work on SQLite, and the disk."""

from typing import Final

from msgspec.structs import replace

from benchmarks.drivers.contender import Task
from benchmarks.drivers.pool import Ask, Pool, Wanted
from benchmarks.model import Report
from benchmarks.rounds import Series, ratio
from benchmarks.scale import Scale

CALLERS: Final = (1, 64, 512)
SETTINGS: Final = ("FULL", "NORMAL")
WORKS: Final = {
    "accept": "accepted actions",
    "lifecycle": "full lifecycles",
    "event": "events",
}
PEERS: Final = {"a2a-sdk": "a2a", "dbos": "dbos"}
WAL: Final = ", WAL"
"""Beside its name: a peer on a file with a write-ahead log, which it does not ask for itself."""

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
            *(Wanted(peer, peer) for peer in PEERS),
            *(Wanted(peer + WAL, peer, {"journal": "wal"}) for peer in PEERS),
        )
        for kind, words in WORKS.items():
            for callers in CALLERS:
                condition = f"{words}, {callers} callers" if callers > 1 else f"{words}, 1 caller"
                asks = [Ask(_ours(setting), Task(kind), callers) for setting in SETTINGS]
                if callers == 1 and kind == "accept":
                    asks.append(Ask(DISK, Task("fdatasync")))
                if kind == "lifecycle" and callers <= 64:
                    asks += [Ask(peer, Task(kind), callers) for peer in PEERS]
                    asks += [Ask(peer + WAL, Task(kind), callers) for peer in PEERS]
                series = await pool.rounds(condition, asks)
                if kind == "lifecycle" and callers == 64:
                    _compare(series, condition, report)
        asks = [Ask(_ours(setting), Task("check")) for setting in SETTINGS]
        await pool.once("everything that was written, checked", asks)
    return report


def _ours(setting: str) -> str:
    return f"executa, {setting}"


def _compare(series: Series, condition: str, report: Report) -> None:
    """Ours over the peers', in rates, which the disk has a part in, and in CPU time."""
    ours, used = (series.values(_ours("FULL"), name) for name in ("rate_per_s", "cpu_client_us"))
    for peer, key in PEERS.items():
        for name, suffix in ((peer, ""), (peer + WAL, "_wal")):
            theirs = series.values(name, "rate_per_s")
            title = f"{condition}, FULL: ours a second over {name}'s"
            ratio(report, f"over_{key}{suffix}", title, ours, theirs)
        title = f"{condition}, FULL: CPU of one of {peer + WAL}'s over ours"
        ratio(report, f"cpu_of_{key}", title, series.values(peer + WAL, "cpu_client_us"), used)
    relaxed = series.values(_ours("NORMAL"), "rate_per_s")
    title = f"{condition}: what FULL leaves of NORMAL's rate"
    ratio(report, "full_over_normal", title, ours, relaxed)
