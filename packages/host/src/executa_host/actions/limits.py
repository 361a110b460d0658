"""Every size, count and time-out of durable work on this host, with the reason for its number.

What the protocol itself limits (queries, waits, keys, the resume window) is in
`executa_protocol.limits`. Times are milliseconds here, as in the records.
"""

from typing import Final

from executa_protocol.limits import KIB, MIB

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

# --- What a submission may hold -----------------------------------------------------

NAME_CHARS: Final = 256
"""Longest principal, tenant, capability, transaction id or attempt id."""

INPUT_BYTES: Final = 4 * MIB
"""Largest input: as much as a result may have inline (R-11), far below the line cap."""

CONTEXT_BYTES: Final = 256 * KIB
"""All context members together: they are read with every listing."""

NOTE_CHARS: Final = 2_000
"""Longest note of a decision, reason of a cancellation, or label of a session."""

URL_CHARS: Final = 2_048
"""Longest callback URL; more does not fit everybody's logs."""

DELEGATION_LINKS: Final = 16
"""Longest delegation chain: every link is checked."""

EXPIRY_MAX: Final = 365 * DAY
"""Latest expiry of an action or an approval; retention is far shorter."""

OPEN_ACTIONS: Final = 100_000
"""Actions that may be open at a time, each an entry in memory. More are QUEUE_FULL."""

# --- Running --------------------------------------------------------------------------

RUNNING_IN_ALL: Final = 64
RUNNING_PER_PLUGIN: Final = 16
RUNNING_PER_TENANT: Final = 32
"""Actions that run at a time; a plugin's own threads are fewer than 16."""

CHUNKS_WAITING: Final = 10_000
"""Chunks of one action that wait for the disk; beyond it progress and previews are dropped."""

CHUNKS_AT_ONCE: Final = 256
"""Chunks of one action in one transaction; the rest waits for the next one."""

# --- The store --------------------------------------------------------------------------

BATCH_OPERATIONS: Final = 256
"""Operations of one commit: more make the first of them wait longer than they save."""

BATCH_BYTES: Final = 8 * MIB
"""Payload of one commit; the operation that crosses it is the batch's last."""

ROWS_PER_STATEMENT: Final = 64
"""Rows of one set-based statement. SQLite binds at most 32,766 values; ours have up to 24 a row."""

READERS: Final = 2
"""Connections that read beside the writer."""

WAL_PAGES: Final = 4_096
"""Pages in the write-ahead log that start a checkpoint: 16 MiB, so that hot pages meet there."""

BUSY_MS: Final = 5_000
"""How long to wait for a lock that a stranger holds, a shell on the file for instance."""

# --- Sessions (R-50) -----------------------------------------------------------------------

RESUME_TOKEN_BYTES: Final = 32
"""256 bits (R-50)."""

RESUME_TOKEN_TTL: Final = 30 * DAY
"""An unused resume token is void after this; its party attaches anew."""

SETTLE_AFTER: Final = 60 * SECOND
"""A closed session without open actions is settled after this: the resume window (R-50)."""

# --- Retention ---------------------------------------------------------------------------

RETAIN_AGE: Final = 30 * DAY
RETAIN_COUNT: Final = 1_000_000
"""Ended actions are removed when they are older than this, or more than this."""

KEY_OUTLIVES: Final = 7 * DAY
"""An idempotency key outlives its action's retention by this (R-43)."""

MARKER_AGE: Final = 365 * DAY
"""How long it can be told that an id was removed and is not just unknown."""

PRUNE_STEP: Final = 500
"""Actions removed in one transaction: others write in between."""

HOUSEKEEPING_EVERY: Final = MINUTE
"""How often retention, settling and forgotten keys are looked at."""

# --- Callbacks ------------------------------------------------------------------------------

CALLBACK_TIMEOUT: Final = 10 * SECOND
CALLBACK_ATTEMPTS: Final = 14
CALLBACK_BASE: Final = 2 * SECOND
CALLBACK_MAX: Final = 6 * HOUR
"""Attempts to deliver: 2 s apart, doubling up to 6 h, about a day in all."""

CALLBACKS_AT_ONCE: Final = 8
"""Deliveries under way at a time."""
