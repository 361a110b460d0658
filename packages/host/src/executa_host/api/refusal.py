"""Refusals as HTTP answers: the one body that every error has.

Owns the codes of what the API itself refuses, and how a fault of whatever kind is told. The
full story of an unexpected one goes to the log; an answer holds no traceback, no header of
the request and no content of its body.
"""

import logging
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, Final

import msgspec
from aiohttp import web
from msgspec import Struct, structs

from executa_host.actions.faults import ActionsError, Code
from executa_host.api.limits import RETRY_AFTER
from executa_host.keys import KeysUnreadable
from executa_protocol.errors import ExecutaError

_LOG: Final = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

NO_STORE: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
"""On every answer: some hold resume tokens, and all of them are somebody's."""


class ApiCode(StrEnum):
    """Symbols of refusals beside those of durable work (`actions.faults`)."""

    UNAUTHENTICATED = "UNAUTHENTICATED"
    UNKNOWN_ROUTE = "UNKNOWN_ROUTE"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    BODY_TOO_LARGE = "BODY_TOO_LARGE"
    BODY_TOO_SLOW = "BODY_TOO_SLOW"
    UNSUPPORTED_MEDIA_TYPE = "UNSUPPORTED_MEDIA_TYPE"
    UNKNOWN_PLUGIN = "UNKNOWN_PLUGIN"
    PLUGIN_NOT_STARTED = "PLUGIN_NOT_STARTED"
    KEYS_UNREADABLE = "KEYS_UNREADABLE"
    CLOSING = "CLOSING"
    BAD_HTTP = "BAD_HTTP"
    INTERNAL = "INTERNAL"


class ErrorBody(Struct, frozen=True):
    """Why a request was refused.

    `path` names the faulty member of the body, such as ``$.input.text``, or parameter, such
    as ``query.limit``. `retryable`: the same request may succeed later.
    """

    code: str
    message: str
    path: str = ""
    retryable: bool = False
    data: dict[str, Any] = {}


class ErrorAnswer(Struct, frozen=True):
    """The body of every refusal."""

    error: ErrorBody


class Refusal(ExecutaError):
    """The API refuses a request by itself, with this status."""

    def __init__(
        self,
        status: int,
        code: ApiCode | Code,
        message: str,
        *,
        path: str = "",
        retryable: bool = False,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.body = ErrorBody(str(code), message, path, retryable)


def invalid(message: str, path: str = "", code: Code = Code.INVALID_REQUEST) -> Refusal:
    """A request that is wrong (400)."""
    return Refusal(400, code, message, path=path)


def body_of(fault: ActionsError) -> ErrorBody:
    """What durable work refused, as the body says it."""
    return ErrorBody(str(fault.code), fault.message, fault.path, fault.retryable, fault.data)


def answer(
    value: object, *, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """A JSON answer."""
    return web.Response(
        status=status,
        body=msgspec.json.encode(value),  # raw members may hold line ends
        content_type="application/json",
        headers={**NO_STORE, **(headers or {})},
    )


def refused(
    status: int, body: ErrorBody, headers: dict[str, str] | None = None, **beside: Any
) -> web.Response:
    """The answer that a refusal is. `beside` are members that stand next to ``error``."""
    given = dict(headers or {})
    if body.retryable and status in (429, 503):
        given.setdefault("Retry-After", str(RETRY_AFTER))
    return answer({**beside, "error": body}, status=status, headers=given)


@web.middleware
async def refusals(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every failure of a handler in the one form."""
    try:
        return await handler(request)
    except ActionsError as fault:
        body = body_of(fault)
        if request.method == "GET" and body.path.startswith("$."):
            body = structs.replace(body, path=f"query.{body.path[2:]}")  # it came in the URL
        return refused(fault.status, body)
    except Refusal as fault:
        response = refused(fault.status, fault.body, fault.headers)
        if fault.status in (408, 413):
            response.force_close()  # what is left of the body is not read
        return response
    except KeysUnreadable as fault:
        _LOG.error("no key can be checked: %s", fault)
        body = ErrorBody(ApiCode.KEYS_UNREADABLE, "no key can be checked now", retryable=True)
        return refused(503, body)
    except web.HTTPException as fault:
        return _http(fault)
    except Exception:  # noqa: BLE001 - whatever it is, the client gets an answer
        _LOG.exception("%s %s failed", request.method, request.path)
        body = ErrorBody(ApiCode.INTERNAL, "the host failed; its log says how")
        return refused(500, body)


def _http(fault: web.HTTPException) -> web.Response:
    """What aiohttp itself refuses: a route or a method that is not there, mostly."""
    headers = {"Allow": fault.headers["Allow"]} if "Allow" in fault.headers else {}
    codes = {
        404: (ApiCode.UNKNOWN_ROUTE, "there is nothing at this path; see /v1/openapi.json"),
        405: (ApiCode.METHOD_NOT_ALLOWED, "this path is not for that method"),
        413: (ApiCode.BODY_TOO_LARGE, "the body is too large"),
    }
    code, message = codes.get(fault.status, (ApiCode.BAD_HTTP, fault.reason))
    return refused(fault.status, ErrorBody(code, message), headers)
