"""The invokes of one process: which run in it, and who waits until there are fewer."""

import asyncio
from collections.abc import Callable

from executa_host.invocation import ActiveInvoke


class Occupancy:
    """What one process has taken and not ended.

    `accepted` counts its invokes, `invokes` are those that reverse calls may belong to, by
    id. `last_used` is when the last one ended, on the host's monotonic clock.
    """

    __slots__ = ("_changed", "_over", "_waiting", "accepted", "invokes", "last_used")

    def __init__(self, now: float) -> None:
        self.accepted = 0
        self.invokes: dict[str, ActiveInvoke] = {}
        self.last_used = now
        self._changed = asyncio.Event()
        self._over = False
        self._waiting = False  # somebody does

    @property
    def waits_for_nested(self) -> bool:
        """Whether an invoke waits for a nested one, which explains silence (R-24, R-36)."""
        return any(invoke.nested for invoke in self.invokes.values())

    def one_less(self, now: float) -> None:
        """An invoke is over, or one that is nested in it, or a call that lingered."""
        self.last_used = now
        if self._waiting:
            self._changed.set()

    def look_again(self) -> None:
        """Something else has changed for those who wait."""
        self._changed.set()

    def end(self) -> None:
        """The process has gone: nobody has to wait any more."""
        self._over = True
        self._changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds` is true, or until the process has gone."""
        while not (self._over or holds()):
            self._changed.clear()
            self._waiting = True
            await self._changed.wait()
