"""`emit_progress`: how far a call is, from anywhere in it.

Best effort: an event that belongs to no invoke, or cannot be sent, is dropped, because
progress must never break the work that it reports on.
"""

from collections.abc import Mapping
from typing import Any, Final, TextIO

from executa_protocol.errors import ExecutaError
from executa_protocol.methods.progress import METHOD as METHOD_EXECUTA_PROGRESS
from executa_sdk.binding import CURRENT, get_current_invoke_id
from executa_sdk.clients.frames import WriteFrame, write_to_stdout

__all__ = ["METHOD_EXECUTA_PROGRESS", "PROGRESS_TYPES", "emit_progress"]

PROGRESS_TYPES: Final = ("progress", "tool_update")


def emit_progress(
    type_: str = "progress",
    data: Mapping[str, Any] | None = None,
    *,
    invoke_id: str | None = None,
    stdout: TextIO | None = None,
    write_frame: WriteFrame | None = None,
) -> bool:
    """Send one event of the bound invoke, or of `invoke_id`; False if it was dropped.

    Goes through the running `Plugin`'s connection inside one of its calls, else through
    `write_frame`, else as a line to `stdout` (standard output by default). Another `type_`
    than the two of `PROGRESS_TYPES` becomes ``progress``. Never raises.
    """
    resolved = invoke_id or get_current_invoke_id()
    if not resolved:
        return False
    kind = type_ if type_ in PROGRESS_TYPES else "progress"
    params = {"type": kind, "data": dict(data or {}), "context": {"invoke_id": resolved}}
    running: Any = getattr(CURRENT.get(), "connection", None)
    frame = {"jsonrpc": "2.0", "method": METHOD_EXECUTA_PROGRESS, "params": params}
    try:
        if write_frame is not None:
            write_frame(frame)
        elif running is not None and stdout is None:
            running.progress(params)
        else:
            write_to_stdout(frame, stdout=stdout)
    except (ExecutaError, OSError, ValueError, TypeError, RuntimeError):
        return False
    return True
