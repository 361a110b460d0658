"""Which call an answer belongs to: ids in flight, without futures or clocks (R-13).

`InFlight` gives out ids and takes answers' ids back. An answer that belongs to no
call is a value that says why, never an exception.
"""

from enum import Enum
from typing import Final, Generic, TypeVar

from executa_protocol.envelope import Id
from executa_protocol.readings import TOLERANT, Reader

E = TypeVar("E")

_MOST_DIGITS: Final = 20
"""More than a counter ever reaches; a longer one may not even be turned into an int."""


class Stray(Enum):
    """Why an answer belongs to no call in flight."""

    FINISHED = "late or duplicate"
    UNKNOWN = "unknown"


class InFlight(Generic[E]):
    """The calls that wait for an answer, by id, in the order they were made.

    Ids count up from `first`. With a `prefix` they are strings such as ``"p1"``: that
    keeps the two directions of one connection apart in a trace.
    """

    __slots__ = ("_entries", "_first", "_last", "_prefix")

    def __init__(self, prefix: str = "", first: int = 1) -> None:
        self._prefix = prefix
        self._first = first
        self._last = first - 1
        self._entries: dict[int, E] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> dict[int, E]:
        """The calls in flight by number. Owned by this object: look, do not touch."""
        return self._entries

    def add(self, entry: E) -> int:
        """Register a call and return its number."""
        self._last = number = self._last + 1
        self._entries[number] = entry
        return number

    def wire_id(self, number: int) -> int | str:
        """The id of call `number` as it stands on the wire."""
        return f"{self._prefix}{number}" if self._prefix else number

    def put_back(self, number: int, entry: E) -> None:
        """Go on waiting for a call that was taken: what came is not its whole answer yet."""
        self._entries[number] = entry

    def discard(self, number: int) -> E | None:
        """Forget a call, because it timed out or was given up."""
        return self._entries.pop(number, None)

    def take(self, identity: Id, reader: Reader = TOLERANT) -> E | Stray:
        """Hand over the call that `identity` answers, or say why there is none.

        Raises `StrictRefusal` through `reader` if the id's JSON type is wrong; the
        call then stays in flight.
        """
        if type(identity) is int and not self._prefix:
            number: int | None = identity
        else:
            number = self._number(identity, reader)
        if number is None:
            return Stray.UNKNOWN
        entry = self._entries.pop(number, None)
        if entry is not None:
            return entry
        return Stray.FINISHED if self._first <= number <= self._last else Stray.UNKNOWN

    def _number(self, identity: Id, reader: Reader) -> int | None:
        """The call's number behind an id of any type; None if it cannot be one of ours."""
        if self._prefix:
            if isinstance(identity, str) and identity.startswith(self._prefix):
                return _canonical_number(identity[len(self._prefix) :])
            return None
        number: int | None = None
        if isinstance(identity, str):
            number = _canonical_number(identity)
        elif isinstance(identity, float) and identity.is_integer():
            number = int(identity)
        if number in self._entries:
            reader.tolerate("WIRE-007", f"the answer to id {number} came back as {identity!r}")
        return number

    def clear(self) -> list[E]:
        """Take every call, because none will be answered."""
        entries = list(self._entries.values())
        self._entries.clear()
        return entries


def _canonical_number(digits: str) -> int | None:
    """The number that `digits` is the one spelling of."""
    if len(digits) > _MOST_DIGITS:
        return None
    try:
        number = int(digits)
    except ValueError:
        return None
    return number if number >= 0 and str(number) == digits else None
