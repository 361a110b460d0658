"""What a run is at, for people who wait: suites say it, and whoever runs them shows it."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_SHOWN: Final[ContextVar[Callable[[str], None] | None]] = ContextVar("progress", default=None)


def tell(what: str) -> None:
    """Say what is measured now; without anybody who shows it, nothing happens."""
    show = _SHOWN.get()
    if show is not None:
        show(what)


@contextmanager
def shown_by(show: Callable[[str], None]) -> Generator[None]:
    """Have `show` get what is told in this context."""
    token = _SHOWN.set(show)
    try:
        yield
    finally:
        _SHOWN.reset(token)
