"""A clock that stands still until a test moves it."""

import time


class Clock:
    """Epoch seconds, starting now or at `start`. Storage lives and deadlines go by it."""

    def __init__(self, start: float | None = None) -> None:
        self.now = time.time() if start is None else start

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass. Raises ValueError if it would run backwards."""
        if seconds < 0:
            msg = "a clock does not run backwards"
            raise ValueError(msg)
        self.now += seconds
