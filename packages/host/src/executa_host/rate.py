"""So many a second and no more: a bucket that counts what it turns away."""

from collections.abc import Callable


class RateLimit:
    """Lets `rate` things through at once, and as many more with every second that passes.

    `monotonic` tells the time in seconds. `dropped` counts those turned away since
    `take_dropped` was last asked.
    """

    __slots__ = ("_at", "_left", "_monotonic", "_rate", "dropped")

    def __init__(self, rate: float, monotonic: Callable[[], float]) -> None:
        self._rate = rate
        self._monotonic = monotonic
        self._left = rate
        self._at = monotonic()
        self.dropped = 0

    def allow(self) -> bool:
        """Whether one more may pass now."""
        now = self._monotonic()
        self._left = min(self._rate, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            self.dropped += 1
            return False
        self._left -= 1
        return True

    def take_dropped(self) -> int:
        """How many were turned away since this was last asked."""
        count, self.dropped = self.dropped, 0
        return count
