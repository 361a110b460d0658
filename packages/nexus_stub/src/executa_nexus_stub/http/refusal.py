"""Refusals as HTTP answers, for whatever goes wrong in a handler.

Owns the one body that every error has. The full story goes to the log; the answer holds
no traceback and no header of the request.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from executa_protocol import codec
from executa_protocol.nexus import NexusError

_LOG: Final = logging.getLogger("executa_nexus_stub.http")
_BAD_GATEWAY: Final = 502

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def error_body(code: int | None, symbol: str, message: str) -> bytes:
    """The body of a refusal."""
    return codec.encode({"error": {"code": code, "errorCode": symbol, "message": message}})


def refusal(fault: NexusError) -> web.Response:
    """The answer that a `NexusError` is; one that reached nobody reads as a bad gateway."""
    headers: dict[str, str] = {}
    if fault.retry_after is not None:
        headers["Retry-After"] = f"{fault.retry_after:g}"
    return web.Response(
        status=fault.status or _BAD_GATEWAY,
        body=error_body(fault.code, fault.symbol, str(fault)),
        content_type="application/json",
        headers=headers,
    )


@web.middleware
async def refusals(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every failure of a handler in the one form."""
    try:
        return await handler(request)
    except NexusError as fault:
        return refusal(fault)
    except web.HTTPException as fault:
        symbol = fault.reason.lower().replace(" ", "_")
        answer = web.Response(
            status=fault.status,
            body=error_body(None, symbol, fault.reason),
            content_type="application/json",
        )
        if "Allow" in fault.headers:
            answer.headers["Allow"] = fault.headers["Allow"]
        return answer
    except Exception:  # noqa: BLE001 - whatever it is, the client gets an answer
        _LOG.exception("%s %s failed", request.method, request.path)
        body = error_body(-32603, "INTERNAL_ERROR", "the stub failed; its log says how")
        return web.Response(status=500, body=body, content_type="application/json")
