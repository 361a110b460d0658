"""From threads to the loop: what threads post, the loop runs, one wake-up for many.

Waking a loop writes to a pipe. When many threads finish at once, one write is enough.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


class Mailbox:
    """Calls that threads want made on the loop, in the order they were posted."""

    __slots__ = ("_calls", "_loop", "_woken")

    def __init__(self, loop: "asyncio.AbstractEventLoop") -> None:
        self._loop = loop
        self._calls: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._woken = False

    def post(self, fn: Callable[..., None], *args: Any) -> bool:
        """Have ``fn(*args)`` called on the loop. `fn` must not raise.

        False when the loop has closed: nobody is left to answer to.
        """
        self._calls.append((fn, args))
        # Appended before looking: if the flag is still up, `_deliver` has yet to count.
        if not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                return False
        return True

    def _deliver(self) -> None:
        self._woken = False
        for _ in range(len(self._calls)):
            fn, args = self._calls.popleft()
            fn(*args)
