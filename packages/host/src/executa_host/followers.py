"""Who follows a host, and how events get to all of them.

Emitting costs nothing but a look at an empty tuple while nobody follows.
"""

import logging
from collections.abc import Callable

from executa_protocol.transcript import AnyEvent, Trace

_log = logging.getLogger(__name__)


class Followers:
    """Callbacks that get every event, in the order in which things happened.

    A callback must not block. One that raises is told of in the log, and goes on following:
    what it does with events changes nothing for plugins or for other followers.
    """

    __slots__ = ("_failed", "_following", "_last", "callbacks")

    def __init__(self) -> None:
        self.callbacks: tuple[Trace, ...] = ()
        """Those that follow now; look at it before making an event that may be unwanted."""
        self._following: dict[int, Trace] = {}
        self._last = 0
        self._failed: set[Trace] = set()

    def follow(self, callback: Trace) -> Callable[[], None]:
        """Give every event from now on to `callback`; what is returned ends that."""
        self._last += 1
        number = self._last
        self._following[number] = callback
        self.callbacks = tuple(self._following.values())

        def unfollow() -> None:
            self._following.pop(number, None)
            self.callbacks = tuple(self._following.values())

        return unfollow

    def emit(self, event: AnyEvent) -> None:
        """Give an event to everybody."""
        for callback in self.callbacks:
            try:
                callback(event)
            except Exception:  # noqa: BLE001 - see the class; the log hears of it once
                if callback not in self._failed:
                    self._failed.add(callback)
                    _log.exception("a follower of the host failed")
