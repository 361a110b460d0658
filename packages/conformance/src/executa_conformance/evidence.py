"""What crossed, line by line: kept for the report, as exactly as a page can show it."""

import time
from typing import Final, Literal

from executa_conformance.model import Event

SHOWN_BYTES: Final = 4096
"""More of one line is not kept: what is wrong with a frame of megabytes is in its head."""

KEPT_EVENTS: Final = 400
"""More of one check is not kept; the first and the last tell what happened."""


class Evidence:
    """The lines of one check."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._events: list[Event] = []
        self._dropped = 0

    def add(self, way: Literal[">", "<", "2", "*"], line: bytes | str, note: str = "") -> None:
        """Keep a line, without its LF."""
        data = line.encode() if isinstance(line, str) else line.removesuffix(b"\n")
        shown = data[:SHOWN_BYTES].decode(errors="backslashreplace")
        size = len(data) if len(data) > SHOWN_BYTES else 0
        at = round(time.monotonic() - self._began, 4)
        if len(self._events) >= KEPT_EVENTS:
            del self._events[KEPT_EVENTS // 2]
            self._dropped += 1
        self._events.append(Event(at, way, shown, size, note))

    def tell(self, text: str) -> None:
        """Keep what the kit did or saw."""
        self.add("*", text)

    def events(self) -> list[Event]:
        """The lines so far, in order."""
        if not self._dropped:
            return list(self._events)
        middle = KEPT_EVENTS // 2
        gap = Event(self._events[middle].at, "*", f"{self._dropped} lines are not shown")
        return [*self._events[:middle], gap, *self._events[middle:]]
