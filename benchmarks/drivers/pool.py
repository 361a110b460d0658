"""Several drivers at once, those that cannot be opened noted in the report."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.drivers.contender import Options, Task
from benchmarks.drivers.parent import Driver, driver
from benchmarks.drivers.registry import REGISTRY
from benchmarks.model import LEFT_OUT, Absent, Report, Row, WrongAnswer
from benchmarks.rounds import Series, Trial, alternate, missing
from benchmarks.scale import Scale

_ONCE: Final[dict[str, Any]] = {"rounds": 1, "seconds": 0.0, "warm_up": 0.0}


class Wanted(Struct, frozen=True):
    """A contender to open: `name` in tables, `contender` in the registry."""

    name: str
    contender: str
    options: Options = {}
    core: int = -1
    servers_core: int = -1


class Ask(Struct, frozen=True):
    """A task with so many calls in flight, for the opened contender `of` (by default `name`)."""

    name: str
    task: Task
    in_flight: int = 1
    of: str = ""


class Pool:
    """Opened drivers by the name they have in tables.

    ::

        async with Pool(report, scale) as pool:
            await pool.open(Wanted("mcp", "mcp"))
            series = await pool.rounds("64 in flight", [Ask("mcp", Task(), 64)])
    """

    def __init__(self, report: Report, scale: Scale) -> None:
        self._report = report
        self._scale = scale
        self._stack = AsyncExitStack()
        self.drivers: dict[str, Driver] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def open(self, *wanted: Wanted) -> None:
        """Open contenders one after the other."""
        for one in wanted:
            if not self._scale.peers and REGISTRY[one.contender].needs:
                missing(self._report, one.name, LEFT_OUT)
                continue
            opening = driver(
                one.contender, one.options, core=one.core, servers_core=one.servers_core
            )
            try:
                self.drivers[one.name] = await self._stack.enter_async_context(opening)
            except Absent as absence:
                missing(self._report, one.name, str(absence))
            except WrongAnswer as fault:
                self._report.rows.append(Row("opening", one.name, void=str(fault)))

    async def rounds(self, condition: str, asks: Sequence[Ask]) -> Series:
        """Alternating rounds of what is asked of contenders that are there."""
        return await self._rounds(condition, asks, self._scale)

    async def once(self, condition: str, asks: Sequence[Ask]) -> Series:
        """As `rounds`, each asked once: for what is no matter of time."""
        return await self._rounds(condition, asks, replace(self._scale, **_ONCE))

    async def _rounds(self, condition: str, asks: Sequence[Ask], scale: Scale) -> Series:
        trials: list[Trial] = []
        for ask in asks:
            found = self.drivers.get(ask.of or ask.name)
            if found is not None:
                take = found.taking(ask.task, ask.in_flight, scale.seconds)
                warm_up = found.taking(ask.task, ask.in_flight, scale.seconds * scale.warm_up)
                trials.append(Trial(ask.name, take, warm_up if scale.warm_up else None))
        return await alternate(condition, trials, scale.rounds, self._report)
