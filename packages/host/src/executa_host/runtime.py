"""What all parts of one host share: its clock, its followers, its settings, its limits."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Final

from executa_host.background import Background
from executa_host.bounds import Bounds
from executa_host.clock import Clock, SystemClock
from executa_host.followers import Followers
from executa_host.patience import Patience
from executa_host.transcripts.recorder import Recorder
from executa_protocol.aio.turns import Turns
from executa_protocol.limits import STARTS_AT_ONCE
from executa_protocol.transcript import AnyEvent

LOCAL_USER: Final = "local"
"""Whose plugins run when nobody says otherwise (R-23)."""


class Runtime:
    """One host's surroundings.

    `starts` bounds how many plugins start at the same time. `hidden` are names of
    environment variables that no plugin gets (R-27). `idle_after` are the seconds after
    which an idle process is stopped, None for never. `jitter` gives numbers from 0 to 1.
    `recorder` writes down everything, if there is one.
    """

    def __init__(
        self,
        *,
        strict: bool = False,
        clock: Clock | None = None,
        patience: Patience | None = None,
        hidden: tuple[str, ...] = (),
        idle_after: float | None = None,
        starts_at_once: int = STARTS_AT_ONCE,
        jitter: Callable[[], float] = random.random,
        recorder: Recorder | None = None,
    ) -> None:
        self.strict = strict
        self.clock: Clock = clock or SystemClock()
        self.patience = patience or Patience()
        self.hidden = hidden
        self.idle_after = idle_after
        self.starts = asyncio.Semaphore(starts_at_once)
        self.jitter = jitter
        self.followers = Followers()
        self.recorder = recorder
        if recorder is not None:
            self.followers.follow(recorder.take)
        self.bounds = Bounds()
        self.turns = Turns()
        """How much is read of all plugins before what they said is worked on."""
        self.background = Background(self.bounds)

    def shown_user(self, user_id: str) -> str:
        """How events name a user: the local one goes without a name."""
        return "" if user_id == LOCAL_USER else user_id

    def emit(self, event: AnyEvent) -> None:
        """Give an event to whoever follows."""
        self.followers.emit(event)


def ms_between(start: float, end: float) -> float:
    """Milliseconds between two instants of a monotonic clock."""
    return round((end - start) * 1e6) / 1000  # rounding to an int costs a third


def ms_since(start: float) -> float:
    """Milliseconds since a `time.monotonic` instant."""
    return ms_between(start, time.monotonic())
