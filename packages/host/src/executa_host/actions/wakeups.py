"""Bells that ring when a log has grown. They carry no data (R-51).

Who follows clears its bell, reads the store after its cursor, and only then waits, so
that nothing can fall between its last read and its waiting.
"""

import asyncio
import contextlib
from collections.abc import Generator, Iterable


class Wakeups:
    """Bells by the id of an action or a session."""

    def __init__(self) -> None:
        self._bells: dict[str, set[asyncio.Event]] = {}

    @property
    def pending_count(self) -> int:
        """How many follow; for the leak check."""
        return sum(map(len, self._bells.values()))

    @contextlib.contextmanager
    def watch(self, subject: str) -> Generator[asyncio.Event]:
        """A bell of one's own for `subject`."""
        bell = asyncio.Event()
        bells = self._bells.setdefault(subject, set())
        bells.add(bell)
        try:
            yield bell
        finally:
            bells.discard(bell)
            if not bells:
                self._bells.pop(subject, None)

    def ring(self, subjects: Iterable[str]) -> None:
        """The logs of `subjects` have grown."""
        if self._bells:
            for subject in subjects:
                for bell in self._bells.get(subject, ()):
                    bell.set()

    def ring_all(self) -> None:
        """Something happened that all followers must see: the engine stops."""
        for bells in self._bells.values():
            for bell in bells:
                bell.set()
