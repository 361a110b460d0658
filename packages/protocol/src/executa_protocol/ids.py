"""Ids of durable work: ``act_`` or ``ses_`` and a time-ordered id of 26 characters (R-40).

The 26 characters are a ULID: 48 bits of milliseconds and 80 bits of randomness in
Crockford's base 32, so that ids sort as they were made. Clock and randomness are
given; this module keeps nothing but the last id.
"""

import os
import time
from collections.abc import Callable
from typing import Final

ACTION_PREFIX: Final = "act_"
SESSION_PREFIX: Final = "ses_"
ID_CHARS: Final = 26

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_CHARACTERS: Final = frozenset(_ALPHABET)
_PAIRS: Final = tuple(high + low for high in _ALPHABET for low in _ALPHABET)
_SHIFTS: Final = tuple(range(5 * (ID_CHARS - 2), -1, -10))
_RANDOM_BYTES: Final = 10
_RANDOM_BITS: Final = 8 * _RANDOM_BYTES
_ALL_BITS: Final = 128


class IdSource:
    """Makes ids that rise, also within one millisecond and when the clock goes back.

    `clock` gives epoch seconds, `randomness` that many random bytes. Ids of one source
    sort in the order they were made, for some 2^80 ids a millisecond. Not for several
    threads at once.
    """

    __slots__ = ("_clock", "_last", "_randomness")

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        randomness: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._clock = clock
        self._randomness = randomness
        self._last = -1

    def action_id(self) -> str:
        """A new ``act_`` id."""
        return ACTION_PREFIX + self._next()

    def session_id(self) -> str:
        """A new ``ses_`` id."""
        return SESSION_PREFIX + self._next()

    def _next(self) -> str:
        milliseconds = max(int(self._clock() * 1000), 0)
        if milliseconds > self._last >> _RANDOM_BITS:
            drawn = int.from_bytes(self._randomness(_RANDOM_BYTES), "big")
            self._last = milliseconds << _RANDOM_BITS | drawn
        else:
            # The next number of a full millisecond is the first of the next one.
            self._last += 1
        return _encode(self._last)


def is_action_id(text: str) -> bool:
    """Whether `text` has the form of an action's id."""
    return text.startswith(ACTION_PREFIX) and _is_ulid(text[len(ACTION_PREFIX) :])


def is_session_id(text: str) -> bool:
    """Whether `text` has the form of a durable session's id."""
    return text.startswith(SESSION_PREFIX) and _is_ulid(text[len(SESSION_PREFIX) :])


def made_at(identity: str) -> float:
    """The epoch seconds, to the millisecond, that a well-formed id was made at."""
    number = 0
    for character in identity[-ID_CHARS:][:10]:
        number = number << 5 | _ALPHABET.index(character)
    return number / 1000


def _encode(number: int) -> str:
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])


def _is_ulid(text: str) -> bool:
    # 26 characters hold 130 bits, of which the two highest are never set.
    return len(text) == ID_CHARS and _CHARACTERS.issuperset(text) and text[0] <= "7"
