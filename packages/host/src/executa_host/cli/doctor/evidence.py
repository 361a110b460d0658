"""What a host saw of a plugin, kept to be looked through after each step."""

import re
from collections.abc import Iterator
from typing import Final, TypeVar

from executa_protocol import transcript
from executa_protocol.transcript import AnyEvent, Event

E = TypeVar("E", bound=Event)

_TOLERATED: Final = re.compile(r"([A-Z]+-\d+): (.*)", re.DOTALL)


class Evidence:
    """The events of a host. `mark` begins a new step; the questions are about that step."""

    def __init__(self) -> None:
        self._events: list[AnyEvent] = []
        self._from = 0

    def take(self, event: AnyEvent) -> None:
        """A follower of the host."""
        self._events.append(event)

    def mark(self) -> None:
        """From here on."""
        self._from = len(self._events)

    def of(self, kind: type[E]) -> list[E]:
        """The step's events of a kind."""
        return [event for event in self._events[self._from :] if isinstance(event, kind)]

    def noise(self, *kinds: str) -> list[transcript.Noise]:
        """The step's diagnostics of these kinds."""
        return [each for each in self.of(transcript.Noise) if each.kind in kinds]

    def departures(self) -> Iterator[tuple[str, str]]:
        """What was tolerated: the requirement's id, and what was found."""
        for each in self.noise("tolerated"):
            found = _TOLERATED.fullmatch(each.message)
            if found is not None:
                yield found[1], found[2]

    @property
    def heard(self) -> bool:
        """Whether it has answered `initialize`."""
        return bool(self.of(transcript.Negotiated)) and not self.unanswered

    @property
    def unanswered(self) -> bool:
        """Whether its answer to `initialize` did not come in time."""
        return any("no answer to initialize" in each.message for each in self.noise("fallback"))

    @property
    def exit_code(self) -> int | None:
        """How the last process ended by itself; None if none did."""
        ended = [each.code for each in self.of(transcript.Exited) if not each.rung]
        return ended[-1] if ended else None

    @property
    def served(self) -> list[transcript.ReverseEnded]:
        """The reverse calls that were answered."""
        return self.of(transcript.ReverseEnded)
