"""Suite `plugins`: what an invoke costs when a host runs many plugins, up to two hundred."""

from typing import Final

from benchmarks.drivers.contender import Task
from benchmarks.drivers.pool import Ask, Pool, Wanted
from benchmarks.model import Report
from benchmarks.rounds import Series, ratio
from benchmarks.scale import Scale

MOST: Final = 200
BETWEEN: Final = 20
EACH: Final = 64


async def run(scale: Scale) -> Report:
    """An invoke with 1, 20 and 200 plugins, 64 in flight for each, and 200 with one for each.

    Each plugin has 64 callers of its own. With callers that go from plugin to plugin the number
    in flight for each varies, and an answer of one plugin is followed by a call to another.
    """
    report = Report("plugins")
    most = scale.part(MOST, least=2)
    between = max(2, most // (MOST // BETWEEN))
    task = Task("inline", each=EACH)
    async with Pool(report, scale) as pool:
        wanted = [
            Wanted(_name(count), "executa", {"plugins": count})
            for count in sorted({1, between, most})
        ]
        await pool.open(*wanted)
        asks = [
            Ask(_name(1), task, EACH),
            Ask(_name(between), task, between * EACH),
            Ask(_name(most), task, most * EACH),
            Ask(_single(most), Task("inline"), most, of=_name(most)),
            Ask(_roaming(most), Task("inline", each=0), most * EACH, of=_name(most)),
        ]
        several = list({ask.name: ask for ask in asks}.values())
        series = await pool.rounds("an invoke of 200 B", several)
    note = "" if most == MOST else f"{most} plugins"
    one = _cost(series, asks[0].name)
    keys = ("cost_of_200", "cost_of_200_single", "cost_of_200_roaming")
    for key, ask in zip(keys, asks[2:], strict=True):
        title = f"CPU of one invoke, {ask.name} over {asks[0].name}"
        ratio(report, key, title, _cost(series, ask.name), one, note=note)
    return report


def _name(count: int) -> str:
    return f"executa, {count} x {EACH}"


def _single(count: int) -> str:
    return f"executa, {count} x 1"


def _roaming(count: int) -> str:
    return f"executa, {count} x {EACH}, callers go round"


def _cost(series: Series, name: str) -> list[float] | None:
    here, there = series.values(name, "cpu_client_us"), series.values(name, "cpu_server_us")
    if here is None or there is None:
        return None
    return [ours + theirs for ours, theirs in zip(here, there, strict=True)]
