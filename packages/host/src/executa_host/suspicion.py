"""Whether a plugin that let a call time out still answers at all (R-24).

Knows one live plugin. What follows from the finding is for its supervisor to do.
"""

from collections.abc import Callable
from enum import Enum, auto

from executa_host import phases
from executa_host.connection import Connection
from executa_protocol.errors import CallTimeout, ConnectionLost, PeerViolation, WriteQueueFull


class Finding(Enum):
    """What probing found."""

    ANSWERS = auto()
    SILENT = auto()  # and nothing explains it
    GONE = auto()  # it has ended meanwhile, which is another story


async def find_out(connection: Connection, within: float, on_miss: Callable[[], None]) -> Finding:
    """Probe until it is clear; each answer has `within` seconds.

    A plugin of one thread cannot answer while its tool waits for an agent run that calls a
    tool. So as long as an invoke waits for a nested one, a missed probe is told to `on_miss`
    and proves nothing.
    """
    while True:
        try:
            await phases.health(connection.peer, connection.reader, within)
        except (CallTimeout, WriteQueueFull):
            on_miss()
        except ConnectionLost:
            return Finding.GONE
        except PeerViolation:  # nonsense, but an answer
            return Finding.ANSWERS
        else:
            return Finding.ANSWERS
        if not connection.occupancy.waits_for_nested:
            return Finding.SILENT
        await connection.occupancy.until(lambda: not connection.occupancy.waits_for_nested)
