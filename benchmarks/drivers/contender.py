"""What a contender is to a driver: something that is opened and then asked to do a task."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import Any, Final, Protocol

from msgspec import Struct

Call = Callable[[int], Awaitable[None]]
"""One operation with its number; raises `WrongAnswer` if the answer is not right."""

Options = dict[str, Any]


class Task(Struct, frozen=True):
    """What one operation does. `kind` is for instance ``echo``, of `size` bytes.

    `count` is how many there are of what one operation repeats: sampling calls of an
    invoke, frames of a run. Where there are several servers, `each` is how many callers, that
    begin one after the other, keep to one of them; 0 has every caller go from one to the next.
    """

    kind: str = "echo"
    size: int = 200
    count: int = 1
    each: int = 1


class Opened(Protocol):
    """A contender that is ready. `servers` are the processes at its other side."""

    @property
    def servers(self) -> Sequence[int]: ...

    def call(self, task: Task) -> Call:
        """The operation of a task. Raises `UsageError` for a kind it does not know."""
        ...


Open = Callable[[Options], AbstractAsyncContextManager[Opened]]
"""How a contender is opened; what it reads of the options is its own."""


def text(number: int, size: int) -> str:
    """The text of operation `number`, of `size` ASCII characters; no two look the same."""
    return f"{number:08d}{_filler(size - 8)}"


@lru_cache(maxsize=64)  # what a driver does for each operation is counted as its client's
def _filler(size: int) -> str:
    return (_WORDS * (size // len(_WORDS) + 1))[: max(size, 0)]


_WORDS: Final = "lorem ipsum dolor sit amet "
