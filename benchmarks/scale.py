"""How much is measured: full, quick, or next to nothing for tests."""

from typing import Final, Self

from msgspec import Struct

SEED: Final = 20260714
"""Of everything that is drawn at random, so that two runs measure the same work."""


class Scale(Struct, frozen=True):
    """`rounds` in which each contender is measured for about `seconds`.

    `warm_up` is the share of `seconds` that each is run for before, uncounted. `size`
    is the part of a suite's full extent (plugins, frames) that is used. Without `peers` only
    our own code and the floors are measured.
    """

    rounds: int = 7
    seconds: float = 0.5
    warm_up: float = 0.5
    size: float = 1.0
    peers: bool = True

    @classmethod
    def quick(cls) -> Self:
        """Enough to see that it works and about where the figures lie."""
        return cls(rounds=3, seconds=0.1, warm_up=0.5, size=0.25)

    @classmethod
    def tiny(cls) -> Self:
        """For tests: every path is taken, and no figure means anything."""
        return cls(rounds=1, seconds=0.005, warm_up=0.0, size=0.01, peers=False)

    def part(self, full: int, least: int = 1) -> int:
        """This scale's part of a full extent."""
        return max(least, round(full * self.size))
