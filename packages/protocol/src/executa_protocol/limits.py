"""Every size, count and time-out of the protocol, with the reason for its number.

Sizes are bytes, times are seconds. This module knows nothing of what enforces
a limit; a setting that may be changed names its constant here as the default.
"""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# --- Lines (R-10, R-11, R-12) -------------------------------------------------

MAX_LINE: Final = 16 * MIB
"""Hard cap of one line, without its LF, both ways: base64 of 8 MiB must fit (R-11)."""

MIN_LINE_CAP: Final = 4 * KIB
"""The smallest cap that may be configured: a handshake and an error answer must fit."""

HEAD_BYTES: Final = 2048
"""How far into an unreadable line its id and method are looked for (R-11)."""

SAMPLE_BYTES: Final = 120
"""How much of a bad line a diagnostic shows: enough to recognise it, one terminal row or two."""

DIAGNOSTIC_CHARS: Final = 500
"""A diagnostic's words: what the other side sent stands in them, and may be as long as a line."""

MAX_DEPTH: Final = 128
"""Deepest nesting of arrays and objects in a frame; 64 always works (R-14)."""

MAX_INLINE_RESULT: Final = 4 * MIB
"""A larger invoke result is refused as RESULT_TOO_LARGE; file transport is the way out (R-11)."""

SPILL_THRESHOLD: Final = 512 * KIB
"""A response above this goes by file when the host offered file transport (R-12)."""

MAX_FILE_TRANSPORT: Final = 64 * MIB
"""Largest response file that a host reads (R-12)."""

READ_CHUNK: Final = 64 * KIB
"""One read: a pipe holds no more, and 128 KiB or more costs a map and unmap for each read."""

PIPE_BYTES: Final = 128 * KIB
"""Bytes that the host asks the system to hold in a plugin's stdin, and in its stdout.

Twice the usual: frames of 100 kB then need a third fewer wake-ups. More would use up what a
user without privileges is granted for all pipes together (64 MiB) with some hundred plugins.
"""

POLL_READS: Final = 16
"""Reads of one poll at most: a pipe at its largest holds 1 MiB, and a writer may keep up."""

WRITE_QUEUE: Final = 2 * MAX_LINE
"""Most bytes that wait for a peer that does not read: one frame at the cap and as much again."""

WRITE_HIGH_WATER: Final = 1 * MIB
"""Above this many waiting bytes a plugin stops reading requests until its answers are taken."""

WRITE_LOW_WATER: Final = 256 * KIB
"""Below this many waiting bytes a paused plugin reads on."""

# --- Lifecycle (seed lifecycle, Five phases) -----------

INITIALIZE_TIMEOUT: Final = 5.0
"""Silence for this long after `initialize` means protocol 1.1 (seed lifecycle, R-20)."""

DESCRIBE_TIMEOUT: Final = 5.0
"""Seed lifecycle, phase 3."""

DESCRIBE_TIMEOUT_ONEFILE: Final = 60.0
"""First launch of a one-file binary: it unpacks itself before it answers (seed lifecycle)."""

INVOKE_TIMEOUT: Final = 60.0
"""Per tool unless its manifest entry says otherwise (seed lifecycle, phase 4)."""

MAX_TOOL_TIMEOUT: Final = 86_400.0
"""The longest time-out a manifest may ask for: one day, as for the field's jobs."""

HEALTH_TIMEOUT: Final = 3.0
"""A health probe that takes longer is missed (R-24)."""

STOP_GRACE: Final = 5.0
"""Each rung of the stop ladder: stdin closed, then SIGTERM, then SIGKILL (seed lifecycle)."""

KILL_WAIT: Final = 5.0
"""How long a host waits for the kernel to reap after SIGKILL before it reports and goes on."""

RESTART_BASE: Final = 1.0
"""First restart delay; the following ones double (seed lifecycle, R-25)."""

RESTART_ATTEMPTS: Final = 3
"""Restarts in a row before a plugin is faulted (seed lifecycle, R-25)."""

RESTART_RESET: Final = 60.0
"""A run this long clears the count of restarts (R-25)."""

CANCEL_GRACE: Final = 5.0
"""How long a late answer to a cancelled invoke still counts (R-45)."""

SWEEP_INTERVAL: Final = 0.05
"""Deadlines are checked together, at most this late and never early."""

# --- One host and its plugins ----------------------------------------------------

STARTS_AT_ONCE: Final = 16
"""Plugins that a host starts at the same time: more of them only time each other out."""

OPEN_REVERSE_CALLS: Final = 4096
"""Reverse calls of one process that may be open; one more is answered TOO_MANY_CALLS."""

DRAIN_TIMEOUT: Final = 60.0
"""How long a reload waits for running invokes: as long as a tool may take by default."""

CLEANUP_TIMEOUT: Final = 10.0
"""How long tidying up at nexus may take in the background before it is given up."""

STDERR_LINES: Final = 200
"""Lines of stderr that are kept for whoever asks what the plugin said last."""

STDERR_LINE_CHARS: Final = 2000
"""Characters of one kept line; a longer one is cut."""

STDERR_PER_SECOND: Final = 200
"""Lines of stderr a second that followers get of one process; the rest is counted."""

NOISE_PER_SECOND: Final = 50
"""Diagnostics a second that followers get of one process; the rest is counted."""

# --- Tokens (seed lifecycle, Per-invoke context; R-39) --------------------------

TOKEN_TTL: Final = 600.0
"""Life of a sampling or storage token."""

TOKEN_RENEW_BEFORE: Final = 30.0
"""A token of a long invoke is renewed this long before it expires (R-39)."""

TOKEN_LEEWAY: Final = 10.0
"""Clock difference that a verifier forgives."""

INVOKE_ID_DIGITS: Final = 32
"""An invoke id is this many hexadecimal digits (R-13)."""

# --- Budgets of one root invoke (R-35) ------------------------------------------

SAMPLING_MAX_TOKENS: Final = 8192
"""Tokens of one sampling call (seed lifecycle, v2 handshake)."""

SAMPLING_MAX_CALLS: Final = 8
"""Sampling calls of one root invoke (seed lifecycle, v2 handshake)."""

INVOKE_MAX_TOKENS: Final = 32_000
"""Tokens of one root invoke in all (R-35)."""

STORAGE_MAX_CALLS: Final = 200
"""Storage and file calls of one root invoke (R-35)."""

SAMPLING_MAX_MESSAGES: Final = 64
"""Messages in one sampling call."""

SAMPLING_TIMEOUT: Final = 90.0
"""A sampling call that takes longer has failed, on both sides."""

RESPONSE_SCHEMA_BYTES: Final = 32 * KIB
"""Largest JSON Schema of a response format, encoded."""

RESPONSE_SCHEMA_DEPTH: Final = 8
"""Deepest nesting of a response format's JSON Schema."""

RESPONSE_SCHEMA_NODES: Final = 512
"""Most values (objects, arrays and scalars) in a response format's JSON Schema."""

# --- Agent sessions (seed agent-sessions) --------------------------

AGENT_MAX_FRAMES: Final = 4096
"""Frames of one run; one more is AGENT_RUN_TOO_LARGE (seed agent-sessions)."""

AGENT_CACHE_SIZE: Final = 4096
"""Agent sessions a host keeps; the least recently used one goes (seed agent-sessions, R-30)."""

AGENT_LABEL_CHARS: Final = 120
"""Longest trace label of an agent session."""

AGENT_SYSTEM_PROMPT_CHARS: Final = 4000
"""Longest system prompt of an agent session."""

AGENT_TTL_DEFAULT: Final = 600
"""Seconds an agent session lives when `create` does not say."""

AGENT_TTL_MAX: Final = 7200
"""Longest life that `create` may ask for."""

AGENT_RECURSION_DEFAULT: Final = 8
"""Model turns of one run when it does not say."""

AGENT_RECURSION_MAX: Final = 32
"""Most model turns a run may ask for."""

AGENT_RUN_MAX_TOKENS: Final = 65_536
"""Most output tokens a run may ask for."""

AGENT_MAX_ATTACHMENTS: Final = 6
"""Attachments of one run."""

AGENT_CREATE_TIMEOUT: Final = 30.0
AGENT_RUN_TIMEOUT: Final = 300.0
AGENT_OTHER_TIMEOUT: Final = 60.0
"""Time-outs of the three kinds of agent calls, as the field's SDK has them."""

NESTED_MAX_DEPTH: Final = 8
"""How deep invokes may nest through host-executed tools (R-36)."""

NESTED_MAX_CALLS: Final = 64
"""Nested invokes under one root (R-36)."""

# --- Storage and files -----------------------------------------------------------

STORAGE_KEY_CHARS: Final = 1024
"""Longest key or path."""

STORAGE_SEGMENT_CHARS: Final = 128
"""Longest part of a key between two slashes."""

STORAGE_VALUE_BYTES: Final = 256 * KIB
"""Largest value, encoded."""

STORAGE_VALUE_ADVISORY: Final = 64 * KIB
"""Above this a value is better kept as a file; the SDK warns."""

STORAGE_TTL_MAX: Final = 31_536_000
"""Longest life of a key: a year."""

STORAGE_MAX_TAGS: Final = 32
"""Tags of one key."""

STORAGE_LIST_MAX: Final = 1000
STORAGE_LIST_DEFAULT: Final = 100
"""Rows of one page of a listing."""

STORAGE_TIMEOUT: Final = 30.0
"""A storage call that takes longer has failed."""

FILES_TIMEOUT: Final = 60.0
"""A files call that takes longer has failed."""

FILE_MAX_BYTES: Final = 256 * MIB
"""Largest stored file."""

FILE_CONTENT_TYPE_CHARS: Final = 120
"""Longest content type."""

FILE_URL_TTL_MAX: Final = 3600
FILE_URL_TTL_DEFAULT: Final = 300
"""Life of a download URL."""

# --- Progress ----------------------------------------------------------------------

PROGRESS_PER_SECOND: Final = 50
"""Progress events of one invoke a second; the rest is dropped."""

PROGRESS_MAX_BYTES: Final = 8 * KIB
"""Largest progress event, encoded."""

# --- Durable work (seed actions-and-sessions) --------------------------

QUERY_MAX: Final = 1000
QUERY_DEFAULT: Final = 100
"""Records of one query (seed actions-and-sessions, R-48)."""

WAIT_MAX: Final = 30.0
"""Longest bounded wait (seed actions-and-sessions, R-48)."""

IDEMPOTENCY_KEY_CHARS: Final = 256
"""Longest idempotency key."""

RESUME_WINDOW: Final = 60.0
"""How long a client that lost the answer may repeat the same resume request (R-50)."""

# --- Nexus over HTTP -------------------------------------------------------------------

NEXUS_CONNECT_TIMEOUT: Final = 10.0
"""A connection to nexus that takes longer to open is given up; nothing was sent then."""

NEXUS_INVOKE_TIMEOUT: Final = 15.0
"""Opening, renewing and closing an invoke: on the way of every call, so it fails early."""

NEXUS_SAMPLING_TIMEOUT: Final = 300.0
"""The longest that a client may ask a completion to take; the host's own limit is shorter."""

NEXUS_STORAGE_TIMEOUT: Final = 15.0
"""A storage call at nexus, as the field's hosts have it; shorter than the plugin's own limit."""

NEXUS_ATTEMPTS: Final = 3
"""How often a call is tried where trying again is safe."""

NEXUS_BACKOFF: Final = 0.1
"""The pause before the second attempt; it doubles, with jitter."""

NEXUS_RETRY_AFTER_MAX: Final = 5.0
"""A longer pause that nexus asks for is the caller's to wait: a plugin waits behind this one."""

NEXUS_KEEP_ALIVE: Final = 4.0
"""An idle connection is closed after this: common servers close theirs after 5 s, and a
request that crosses with the close cannot be told from one that was served."""
