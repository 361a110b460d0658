"""Every size and time of the API's own, with the reason for its number.

Sizes are bytes, times are seconds. Limits of queries and waits are the protocol's (R-48), those
of names and notes those of durable work (`actions.limits`).
"""

from typing import Final

from executa_host.actions.limits import INPUT_BYTES
from executa_protocol.limits import KIB, MIB

SUBMIT_BYTES: Final = INPUT_BYTES + MIB
"""Largest submission: the largest input, and room for what stands beside it."""

BODY_BYTES: Final = 64 * KIB
"""Largest body of everything else: names, reasons and notes."""

BODY_SECONDS: Final = 30.0
"""How long a body may take to arrive; a slower client would hold its memory for free."""

IDLE_SECONDS: Final = 75.0
"""An idle connection is closed after this: longer than the common client keeps one."""

HEARTBEAT: Final = 15.0
"""A stream that is silent for so long shows a sign of life; proxies give up after 30 or 60."""

STALL_SECONDS: Final = 60.0
"""A follower that takes nothing for so long is cut off; it can come back to where it was."""

STREAM_FLUSH: Final = 64 * KIB
"""Events are written together up to this size: what the transport takes without waiting."""

RETRY_MS: Final = 1_000
"""When a follower that was told to come back should do so."""

RETRY_AFTER: Final = 1
"""Seconds in `Retry-After` of an answer that says not now."""

STOP_SECONDS: Final = 5.0
"""How long handlers that still run get when the server closes."""

DRAIN_SECONDS: Final = 30.0
"""How long running work gets to end when the host is asked to stop."""

TOKEN_CHARS: Final = 512
"""Longest resume token or cursor that is looked at."""

ATTEMPT_CHARS: Final = 128
"""Longest id of a resume attempt."""
