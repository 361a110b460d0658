"""What went wrong in a tool, as the answer that the host gets.

The one place where exceptions become wire errors. The full story goes to stderr; the wire
gets the kind and the message of the fault, without a traceback and without credentials.
"""

import asyncio
import sys
from typing import Final

from executa_protocol.codec import encode
from executa_protocol.codes import ErrorObject, wire_error
from executa_protocol.errors import CallCancelled, NotEncodable, RpcError
from executa_sdk.errors import ToolError
from executa_sdk.invocation import Invocation

_LONGEST: Final = 500
"""Characters of a fault's message that go over the wire."""


def answer_to(fault: BaseException, call: Invocation) -> bytes | ErrorObject:
    """An encoded result for a failure in the tool's domain, an error for all others."""
    if isinstance(fault, ToolError):
        return _failed(fault, call)
    if call.cancelled and isinstance(fault, CallCancelled | asyncio.CancelledError):
        return cancelled(call)
    _tell(call, fault)
    cause = None
    if isinstance(fault, RpcError):
        cause = (
            {"code": fault.code, "errorCode": fault.symbol}
            if fault.symbol
            else {"code": fault.code}
        )
    message = f"tool {call.tool.name!r} failed: {type(fault).__name__}: {fault}"
    return wire_error("INTERNAL_ERROR", _without_secrets(message, call)[:_LONGEST], cause=cause)


def cancelled(call: Invocation) -> ErrorObject:
    """The answer that acknowledges a cancel (R-45)."""
    tail = f": {call.reason}" if call.reason else ""
    return wire_error("INVOKE_CANCELLED", f"the call was cancelled{tail}")


def success(value: object, call: Invocation) -> bytes:
    """The encoded result of a tool that returned. Raises `NotEncodable`."""
    if hasattr(value, "__await__"):
        if hasattr(value, "close"):
            value.close()  # type: ignore[attr-defined]
        msg = "the tool returned a coroutine; declare it with async def"
        raise NotEncodable(msg)
    try:
        data = encode(value)
    except NotEncodable as fault:
        msg = f"the tool's result is {fault}"
        raise NotEncodable(msg) from None
    return b'{"success":true,"data":%b,"duration_ms":%.3f}' % (data, call.elapsed_ms)


def _failed(fault: ToolError, call: Invocation) -> bytes | ErrorObject:
    members: dict[str, object] = {"success": False, "error": fault.message}
    if fault.data is not None:
        members["data"] = fault.data
    members["duration_ms"] = round(call.elapsed_ms, 3)
    try:
        return encode(members)
    except NotEncodable as other:
        return answer_to(other, call)


def _tell(call: Invocation, fault: BaseException) -> None:
    import traceback  # noqa: PLC0415 - faults are rare

    story = "".join(traceback.format_exception(fault))
    text = f"executa: tool {call.tool.name!r} failed (invoke {call.invoke_id})\n{story}"
    sys.stderr.write(_without_secrets(text, call))
    sys.stderr.flush()


def _without_secrets(text: str, call: Invocation) -> str:
    context = call.params.context
    for value in (context.credentials or {}).values() if context else ():
        if value:
            text = text.replace(value, "***")
    return text
