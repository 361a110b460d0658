"""The agent chapter under the field's names; `clients.agent` is what they mean.

The numbers are the seed's (seed agent-sessions, Error codes). The field's SDK gave six of
them other names; each such name here has the number of the seed's code that means the
same, so that a plugin's branches stay right.
"""

from typing import Final

from executa_protocol import codes
from executa_protocol.errors import AgentError
from executa_sdk.clients.agent import AgentSession, AgentSessionClient

__all__ = [
    "AGENT_ERR_FIXED_REQUIRES_CLIENT_ID",
    "AGENT_ERR_INVALID_REQUEST",
    "AGENT_ERR_INVALID_SUBMODE",
    "AGENT_ERR_INVALID_UUID",
    "AGENT_ERR_NEXUS_ERROR",
    "AGENT_ERR_NOT_GRANTED",
    "AGENT_ERR_PROVIDER_ERROR",
    "AGENT_ERR_QUOTA_EXCEEDED",
    "AGENT_ERR_RATE_LIMITED",
    "AGENT_ERR_RUN_TOO_LARGE",
    "AGENT_ERR_SESSION_NOT_FOUND",
    "AGENT_ERR_SUBMODE_MISMATCH",
    "AGENT_ERR_TOOL_NOT_GRANTED",
    "AGENT_ERR_UNKNOWN_SESSION",
    "METHOD_AGENT_COMPLETE",
    "METHOD_AGENT_SESSION_CANCEL",
    "METHOD_AGENT_SESSION_CREATE",
    "METHOD_AGENT_SESSION_DELETE",
    "METHOD_AGENT_SESSION_HISTORY",
    "METHOD_AGENT_SESSION_LIST",
    "METHOD_AGENT_SESSION_REFRESH",
    "METHOD_AGENT_SESSION_RUN",
    "AgentError",
    "AgentSession",
    "AgentSessionClient",
]

METHOD_AGENT_SESSION_CREATE: Final = "agent/session.create"
METHOD_AGENT_SESSION_RUN: Final = "agent/session.run"
METHOD_AGENT_SESSION_CANCEL: Final = "agent/session.cancel"
METHOD_AGENT_SESSION_HISTORY: Final = "agent/session.history"
METHOD_AGENT_SESSION_DELETE: Final = "agent/session.delete"
METHOD_AGENT_SESSION_LIST: Final = "agent/session.list"
METHOD_AGENT_SESSION_REFRESH: Final = "agent/session.refresh"
METHOD_AGENT_COMPLETE: Final = "agent/complete"

AGENT_ERR_NOT_GRANTED: Final = codes.AGENT_NOT_GRANTED
AGENT_ERR_INVALID_SUBMODE: Final = codes.AGENT_INVALID_SUBMODE
AGENT_ERR_FIXED_REQUIRES_CLIENT_ID: Final = codes.AGENT_FIXED_REQUIRES_CLIENT_ID
AGENT_ERR_UNKNOWN_SESSION: Final = codes.AGENT_UNKNOWN_SESSION
AGENT_ERR_INVALID_UUID: Final = codes.AGENT_INVALID_UUID
AGENT_ERR_NEXUS_ERROR: Final = codes.AGENT_NEXUS_ERROR
AGENT_ERR_RUN_TOO_LARGE: Final = codes.AGENT_RUN_TOO_LARGE
AGENT_ERR_TOOL_NOT_GRANTED: Final = codes.AGENT_TOOL_NOT_GRANTED

# The field's names for what the seed calls otherwise.
AGENT_ERR_SESSION_NOT_FOUND: Final = codes.AGENT_UNKNOWN_SESSION
AGENT_ERR_SUBMODE_MISMATCH: Final = codes.AGENT_INVALID_SUBMODE
AGENT_ERR_PROVIDER_ERROR: Final = codes.AGENT_NEXUS_ERROR
AGENT_ERR_INVALID_REQUEST: Final = codes.INVALID_PARAMS
AGENT_ERR_QUOTA_EXCEEDED: Final = codes.SAMPLING_MAX_TOKENS_EXCEEDED
AGENT_ERR_RATE_LIMITED: Final = codes.SAMPLING_MAX_CALLS_EXCEEDED
