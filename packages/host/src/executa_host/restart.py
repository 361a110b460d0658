"""When a plugin that ended is started again: a pure policy (R-25).

Knows exits and the time, and no process. `delay` draws its jitter from the random
number that it is given.
"""

import signal
from typing import Final

from executa_protocol.limits import RESTART_ATTEMPTS, RESTART_BASE, RESTART_RESET

JITTER: Final = 0.1
"""A delay is this much longer or shorter at most, so that plugins that fell together part."""


def is_fault(code: int, *, asked: bool, in_flight: bool) -> bool:
    """Whether an exit counts against the plugin.

    `asked` says that the host stopped it, `in_flight` that a call was waiting for it.
    """
    return not asked and (code != 0 or in_flight)


def describe_exit(code: int) -> str:
    """An exit code in words: "exited with code 3", "was killed by SIGKILL"."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}"


class RestartPolicy:
    """Counts the faults in a row of one plugin."""

    def __init__(self) -> None:
        self.faults = 0

    def fault(self, ran_for: float, random: float) -> float | None:
        """Note a fault after `ran_for` seconds; the seconds to wait, or None when it is the last.

        A run of `RESTART_RESET` seconds clears what was before it; a mere handshake does
        not. `random` is from 0 to 1.
        """
        if ran_for >= RESTART_RESET:
            self.faults = 0
        self.faults += 1
        if self.faults > RESTART_ATTEMPTS:
            return None
        delay = RESTART_BASE * 2 ** (self.faults - 1)
        return delay * (1 + JITTER * (2 * random - 1))

    def reset(self) -> None:
        """Someone restarted it by hand."""
        self.faults = 0
