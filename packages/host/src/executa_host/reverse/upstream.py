"""Calls to nexus: bounded in time, and their failures as the plugin sees them.

By chapter, and without a secret: what goes out is nexus's own word for what went wrong.
"""

from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from executa_host.bounds import Bounds
from executa_host.reverse.call import Failed
from executa_protocol.codes import ErrorObject, find, wire_error
from executa_protocol.nexus import NexusError

T = TypeVar("T")

_UPSTREAM: Final = {
    "sampling": "SAMPLING_PROVIDER_ERROR",
    "agent": "AGENT_NEXUS_ERROR",
    "storage": "STORAGE_UPSTREAM_ERROR",
}
_SILENT: Final = {
    "sampling": "SAMPLING_TIMEOUT",
    "agent": "AGENT_NEXUS_ERROR",
    "storage": "STORAGE_TIMEOUT",
}
_BUSY: Final = {"sampling": "SAMPLING_QUOTA_EXCEEDED", "storage": "STORAGE_RATE_LIMITED"}
_STATUS: Final = {
    401: "APP_SESSION_TOKEN_EXPIRED",
    410: "APP_SESSION_EXPIRED",
    412: "STORAGE_PRECONDITION_FAILED",
    413: "STORAGE_VALUE_TOO_LARGE",
}


async def ask(bounds: Bounds, work: Coroutine[Any, Any, T], chapter: str, within: float) -> T:
    """Ask nexus, for `within` seconds at most. Raises `Failed` by the chapter's own code."""
    try:
        return await bounds.run(work, within)
    except TimeoutError as fault:
        raise silent(fault, chapter, within) from None


def silent(fault: TimeoutError, chapter: str, within: float) -> Failed:
    """Nexus took too long. It is our bound, or that of a client of nexus, which says how long."""
    row = _SILENT.get(chapter, "INTERNAL_ERROR")
    return Failed(wire_error(row, str(fault) or f"no answer from nexus within {within:g} s"))


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
        name = _UPSTREAM.get(chapter, "INTERNAL_ERROR")
    return wire_error(name, str(fault), status=fault.status or None, retry_after=fault.retry_after)
