"""The rows of every error code that the seeds' chapters use.

Owns the numbers' meaning: symbol as the wire spells it, chapter, whether trying
again helps, and one sentence of advice to whoever made the call. Rows of the
field's chapters beyond the seeds are in `code_extensions`; looking rows up and
turning them into errors is the business of `codes`.
"""

from typing import Final, Literal

from msgspec import Struct

Chapter = Literal[
    "json-rpc",
    "sampling",
    "app-session",
    "storage",
    "agent",
    "credentials",
    "image",
    "video",
    "audio",
    "upload",
    "embeddings",
    "web",
]
"""Which part of the protocol a code belongs to."""

Disposition = Literal["retry", "terminal", "fix"]
"""What helps: the same call again, nothing within this invoke, or a change by the author."""


class Row(Struct, frozen=True):
    """One error code.

    `number` is `error.code`, `symbol` is `error.data.errorCode` exactly as sent,
    `advice` one plain sentence, `source` a seed heading, a ruling id, or
    ``field`` for what only neighbours of the seeds document.
    """

    number: int
    symbol: str
    chapter: Chapter
    disposition: Disposition
    advice: str
    source: str

    @property
    def name(self) -> str:
        """The symbol made unique over all chapters, such as ``SAMPLING_NOT_GRANTED``."""
        if self.chapter in ("json-rpc", "agent"):
            return self.symbol.upper()
        return f"{self.chapter.replace('-', '_').upper()}_{self.symbol.upper()}"


JSON_RPC: Final = (
    Row(-32700, "PARSE_ERROR", "json-rpc", "fix",
        "Send one JSON object a line, in valid UTF-8, without NaN or Infinity.", "R-10"),
    Row(-32600, "INVALID_REQUEST", "json-rpc", "fix",
        "Send a request object with a method that is a string and an id.", "R-10"),
    Row(-32600, "frame_too_large", "json-rpc", "fix",
        "Send a smaller frame, or put the content into a file or several calls.", "R-11"),
    Row(-32600, "DUPLICATE_REQUEST_ID", "json-rpc", "fix",
        "Use an id that no unanswered request of yours has.", "R-13"),
    Row(-32601, "METHOD_NOT_FOUND", "json-rpc", "fix",
        "Check the spelling of the method or tool, and that this side offers it.",
        "seed lifecycle, Fallback to v1"),
    Row(-32601, "UNMAPPED_METHOD", "json-rpc", "fix",
        "Do without this method: the host knows it but does not serve it.", "R-04"),
    Row(-32601, "REVERSE_RPC_DISABLED", "json-rpc", "fix",
        "Answer initialize with protocol 2.0 to make reverse calls.",
        "seed lifecycle, Fallback to v1"),
    Row(-32602, "INVALID_PARAMS", "json-rpc", "fix",
        "Correct the member that the message names.", "field"),
    Row(-32602, "MISSING_INVOKE_CONTEXT", "json-rpc", "fix",
        "Put the invoke's id into params.context.invoke_id.", "R-23"),
    Row(-32602, "UNKNOWN_INVOKE_CONTEXT", "json-rpc", "terminal",
        "Make reverse calls only while their invoke is running.", "R-23"),
    Row(-32602, "AGENT_RUN_RECURSION", "json-rpc", "terminal",
        "Run another agent session: one of this call's ancestors is running this one.", "R-36"),
    Row(-32603, "INTERNAL_ERROR", "json-rpc", "retry",
        "Look into the log of the side that answered.", "field"),
    Row(-32603, "NO_SESSION_CONTEXT", "json-rpc", "terminal",
        "Make this call from within an invoke.", "field"),
    Row(-32603, "FILE_TRANSPORT_FAILED", "json-rpc", "fix",
        "Write the response file into TMPDIR, complete and with the same id, before its pointer.",
        "R-12"),
    Row(-32603, "RESULT_TOO_LARGE", "json-rpc", "fix",
        "Return less than 4 MiB, or let the response go by file transport.", "R-11"),
    Row(-32000, "INVOKE_CANCELLED", "json-rpc", "terminal",
        "Nothing to do: the caller asked for the end of this call.", "R-45"),
    Row(-32000, "INVOKE_TIMEOUT", "json-rpc", "retry",
        "Finish sooner, or ask for a longer timeout in the tool's manifest entry.", "R-24"),
    Row(-32000, "PLUGIN_GONE", "json-rpc", "retry",
        "Call again if the tool allows it: the plugin's process ended before it answered.",
        "R-25"),
    Row(-32000, "PLUGIN_FAULTED", "json-rpc", "terminal",
        "Restart the plugin by hand after looking into its stderr.", "R-25"),
    Row(-32000, "TOO_MANY_CALLS", "json-rpc", "retry",
        "Wait for answers before making more calls.", "R-04"),
    Row(-32000, "HOST_STOPPING", "json-rpc", "retry",
        "Call again when the host is back.", "R-26"),
)  # fmt: skip

SAMPLING: Final = (
    Row(-32001, "NOT_GRANTED", "sampling", "terminal",
        "Ask the user to enable sampling for this plugin.", "R-22"),
    Row(-32002, "QUOTA_EXCEEDED", "sampling", "terminal",
        "Wait until the user's quota renews.", "field"),
    Row(-32003, "PROVIDER_ERROR", "sampling", "retry",
        "Try again after a pause: the model's provider failed.", "field"),
    Row(-32004, "INVALID_REQUEST", "sampling", "fix",
        "Correct the member that the message names.", "field"),
    Row(-32005, "TIMEOUT", "sampling", "retry",
        "Ask for fewer tokens or try again.", "field"),
    Row(-32006, "MAX_CALLS_EXCEEDED", "sampling", "terminal",
        "Make fewer sampling calls in one invoke.", "R-35"),
    Row(-32007, "MAX_TOKENS_EXCEEDED", "sampling", "terminal",
        "Ask for fewer tokens in one call and in the whole invoke.", "R-35"),
    Row(-32008, "not_negotiated", "sampling", "fix",
        "Name sampling in the answer to initialize and llm.sample in host_capabilities.",
        "seed lifecycle, Manifest declarations vs. runtime capabilities"),
    Row(-32009, "USER_DENIED", "sampling", "terminal",
        "Respect the user's answer and go on without sampling.", "field"),
    Row(-32010, "UNSUPPORTED_RESPONSE_FORMAT", "sampling", "fix",
        "Choose another model or set onUnsupported to json_object or text.", "field"),
)  # fmt: skip

APP_SESSION: Final = (
    Row(-32011, "REVOKED", "app-session", "fix",
        "Create a new agent session: this one was revoked.", "field"),
    Row(-32017, "EXPIRED", "app-session", "fix",
        "Create a new agent session: this one has expired.", "field"),
    Row(-32018, "TOKEN_EXPIRED", "app-session", "retry",
        "Try again: the host renews the token.", "field"),
)  # fmt: skip

STORAGE: Final = (
    Row(-32021, "not_granted", "storage", "fix",
        "Declare aps.kv or aps.files in host_capabilities and have the user grant storage.",
        "seed lifecycle, Manifest declarations vs. runtime capabilities"),
    Row(-32021, "forbidden_scope", "storage", "fix",
        "Use a scope that the storage token allows: user or tool, app only from within an app.",
        "R-29"),
    Row(-32022, "NOT_FOUND", "storage", "fix",
        "Check the path: nothing is stored there.", "field"),
    Row(-32023, "PRECONDITION_FAILED", "storage", "fix",
        "Read the value again and repeat the change with its new etag.", "field"),
    Row(-32024, "QUOTA_EXCEEDED", "storage", "terminal",
        "Delete what is no longer needed or have the user raise the quota.", "field"),
    Row(-32025, "VALUE_TOO_LARGE", "storage", "fix",
        "Store at most 256 KiB under a key, and larger content as a file.", "field"),
    Row(-32026, "RATE_LIMITED", "storage", "terminal",
        "Make fewer storage calls in one invoke.", "R-35"),
    Row(-32027, "INVALID_PATH", "storage", "fix",
        "Use a relative path without empty, dot or over-long segments or invisible characters.",
        "field"),
    Row(-32028, "INVALID_REQUEST", "storage", "fix",
        "Correct the member that the message names.", "field"),
    Row(-32029, "UPSTREAM_ERROR", "storage", "retry",
        "Try again after a pause: the storage service failed.", "field"),
    Row(-32029, "pending_upload", "storage", "retry",
        "Finish the PUT to the upload URL first, then complete the upload.", "field"),
    Row(-32030, "TIMEOUT", "storage", "retry",
        "Try again: the storage service did not answer in time.", "field"),
)  # fmt: skip

_AGENT_CODES: Final = "seed agent-sessions, Error codes"

AGENT: Final = (
    Row(-32041, "AGENT_NOT_GRANTED", "agent", "fix",
        "Declare llm.sample and llm.agent.auto in host_capabilities and have the user grant it.",
        _AGENT_CODES),
    Row(-32042, "AGENT_INVALID_SUBMODE", "agent", "fix",
        'Send agent_submode "auto" with kind "agent".', _AGENT_CODES),
    Row(-32043, "AGENT_FIXED_REQUIRES_CLIENT_ID", "agent", "fix",
        'Send fixed_client_id with kind "fixed".', _AGENT_CODES),
    Row(-32044, "AGENT_UNKNOWN_SESSION", "agent", "fix",
        "Create a new agent session: the host no longer holds this one.", _AGENT_CODES),
    Row(-32045, "AGENT_INVALID_UUID", "agent", "fix",
        "Use only uuids that this plugin created for this user.", _AGENT_CODES),
    Row(-32046, "AGENT_NEXUS_ERROR", "agent", "retry",
        "Try again after a pause: nexus failed.", _AGENT_CODES),
    Row(-32047, "AGENT_RUN_TOO_LARGE", "agent", "terminal",
        "Shrink the run: fewer tokens, fewer tools or a smaller task.", _AGENT_CODES),
    Row(-32048, "AGENT_TOOL_NOT_GRANTED", "agent", "fix",
        "Use only tools that are in granted_tools.", _AGENT_CODES),
)  # fmt: skip

SEED_ROWS: Final = (*JSON_RPC, *SAMPLING, *APP_SESSION, *STORAGE, *AGENT)
"""Every row of the chapters that this project serves."""
