"""When a process has been idle for too long: one timer each, set again when it was used."""

from collections.abc import Callable

from executa_host.clock import Clock, Timer


class IdleTimer:
    """Calls `stop` once `idle_for` says that many seconds have passed without use.

    `idle_for` gives the seconds since the last use, 0 while it is in use.
    """

    def __init__(
        self,
        clock: Clock,
        after: float,
        idle_for: Callable[[], float],
        stop: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._after = after
        self._idle_for = idle_for
        self._stop = stop
        self._timer: Timer | None = clock.call_later(after, self._look)

    def cancel(self) -> None:
        """It no longer matters."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        left = self._after - self._idle_for()
        if left > 0:
            self._timer = self._clock.call_later(left, self._look)
        else:
            self._timer = None
            self._stop()
