"""Failures of nexus as the plugin sees them: by chapter, and without a secret."""

from typing import Final

from executa_protocol.codes import ErrorObject, find, wire_error
from executa_protocol.nexus import NexusError

_UPSTREAM: Final = {
    "sampling": "SAMPLING_PROVIDER_ERROR",
    "agent": "AGENT_NEXUS_ERROR",
    "storage": "STORAGE_UPSTREAM_ERROR",
}
_BUSY: Final = {"sampling": "SAMPLING_QUOTA_EXCEEDED", "storage": "STORAGE_RATE_LIMITED"}
_STATUS: Final = {
    401: "APP_SESSION_TOKEN_EXPIRED",
    410: "APP_SESSION_EXPIRED",
    412: "STORAGE_PRECONDITION_FAILED",
    413: "STORAGE_VALUE_TOO_LARGE",
}


def upstream_error(chapter: str, fault: NexusError) -> ErrorObject:
    """The answer to a call that nexus refused or failed.

    A code that nexus named is passed on if the table has it; else the HTTP status
    decides, and last the chapter's own upstream code.
    """
    if fault.code is not None:
        row = find(fault.code, fault.symbol)
        if row is not None:
            return wire_error(row, str(fault), retry_after=fault.retry_after)
    name = _STATUS.get(fault.status) or (_BUSY.get(chapter) if fault.status == 429 else None)
    name = name or _UPSTREAM.get(chapter, "INTERNAL_ERROR")
    if name.startswith("STORAGE_") and chapter != "storage":
        name = _UPSTREAM[chapter]
    return wire_error(name, str(fault), status=fault.status or None, retry_after=fault.retry_after)
