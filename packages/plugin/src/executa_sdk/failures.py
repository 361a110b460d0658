"""What went wrong in a tool, as the answer that the host gets.

The one place where exceptions become wire errors. The full story goes to stderr; the wire
gets the kind and the message of the fault, without a traceback and without credentials.
"""

import sys
from typing import Final

from executa_protocol.codec import encode
from executa_protocol.codes import ErrorObject, wire_error
from executa_protocol.errors import CallCancelled, NotEncodable, RpcError
from executa_sdk.errors import ToolError
from executa_sdk.invocation import Invocation
from executa_sdk.log import tell

_LONGEST: Final = 500
"""Characters of a fault's message that go over the wire."""


_SHORTEST_SECRET: Final = 4
"""Credentials with fewer characters are no secrets, and would black out half of a text."""


def answer_to(fault: BaseException, call: Invocation) -> bytes | ErrorObject:
    """An encoded result for a failure in the tool's domain, an error for all others."""
    if isinstance(fault, ToolError):
        return _failed(fault, call)
    if call.cancelled and _is_cancel(fault):
        return cancelled(call)
    _tell(call, fault)
    message = f"tool {call.tool.name!r} failed: {type(fault).__name__}: {fault}"
    text = _without_secrets(message, call)[:_LONGEST]
    return wire_error("INTERNAL_ERROR", text, cause=_cause(fault))


def _is_cancel(fault: BaseException) -> bool:
    asyncio = sys.modules.get("asyncio")  # where it is not loaded, nobody has raised its exceptions
    return isinstance(fault, CallCancelled) or (
        asyncio is not None and isinstance(fault, asyncio.CancelledError)
    )


def cancelled(call: Invocation) -> ErrorObject:
    """The answer that acknowledges a cancel (R-45)."""
    tail = f": {call.reason}" if call.reason else ""
    return wire_error("INVOKE_CANCELLED", f"the call was cancelled{tail}")


def _cause(fault: BaseException) -> dict[str, object] | None:
    """What the host itself had answered, when that is what the tool failed of."""
    if not isinstance(fault, RpcError):
        return None
    cause: dict[str, object] = {"code": fault.code}
    if fault.symbol:
        cause["errorCode"] = fault.symbol
    return cause


def _failed(fault: ToolError, call: Invocation) -> bytes | ErrorObject:
    members: dict[str, object] = {"success": False, "error": fault.message}
    if fault.data is not None:
        members["data"] = fault.data
    members["duration_ms"] = round(call.elapsed_ms(), 3)
    try:
        return encode(members)
    except NotEncodable as other:
        return answer_to(other, call)


def _tell(call: Invocation, fault: BaseException) -> None:
    import traceback  # noqa: PLC0415 - faults are rare

    story = "".join(traceback.format_exception(fault))
    text = f"tool {call.tool.name!r} failed (invoke {call.invoke_id})\n{story.rstrip()}"
    tell(_without_secrets(text, call))


def _without_secrets(text: str, call: Invocation) -> str:
    context = call.params.context
    for value in (context.credentials or {}).values() if context else ():
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "***")
    return text
