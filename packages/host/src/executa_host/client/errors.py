"""What the API refused, as exceptions.

::

    ApiError                  code, message, path, retryable, data, status
    ├── Invalid               400, 405, 413, 415: the request is wrong
    ├── Unauthenticated       401: no key, or none that is valid
    ├── Forbidden             403: the key does not allow it
    ├── NotFound              404: not there, or not this key's to see
    ├── Conflict              409: the record is in another state than the request needs
    ├── Gone                  410: it was there
    ├── Unavailable           408, 429, 503: not now
    └── ServerFailed          anything else
    Unreachable               no answer came

Codes are those of `executa_host.actions.faults` and `executa_host.api.refusal`. No exception
holds a key or a token.
"""

from typing import Any

import msgspec
from msgspec import Struct

from executa_protocol.actions import ActionError
from executa_protocol.errors import CallFailed, ExecutaError


class ApiError(ExecutaError):
    """The API answered with an error. `code` is a symbol, `status` that of HTTP.

    `path` names the faulty member, such as ``$.input.text``. `retryable`: the same request
    may succeed later.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        path: str = "",
        retryable: bool = False,
        data: dict[str, Any] | None = None,
    ) -> None:
        said = not path or message.startswith(path)
        super().__init__(message if said else f"{path}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.path = path
        self.retryable = retryable
        self.data: dict[str, Any] = data or {}


class Invalid(ApiError):
    """The request is wrong; sending it again changes nothing."""


class Unauthenticated(ApiError):
    """No key, or one that is unknown, expired or revoked."""


class Forbidden(ApiError):
    """The key does not allow it."""


class NotFound(ApiError):
    """Not there, or not to be seen with this key: nobody is told which."""


class Conflict(ApiError):
    """The record is in a state that the request does not fit."""


class Gone(ApiError):
    """It was there: removed by retention, spent or revoked."""


class Unavailable(ApiError):
    """Not now."""


class ServerFailed(ApiError):
    """The host failed, or something between here and there answered in its place."""


class Unreachable(CallFailed):
    """No answer came. `written` False: nothing of the request was sent."""


_KINDS: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    408: Unavailable,
    409: Conflict,
    410: Gone,
    413: Invalid,
    415: Invalid,
    429: Unavailable,
    503: Unavailable,
}


class _Body(Struct, frozen=True):
    code: str
    message: str
    path: str = ""
    retryable: bool = False
    data: dict[str, Any] = {}


class _Answer(Struct, frozen=True):
    error: _Body


_DECODER = msgspec.json.Decoder(_Answer)
_BODY = msgspec.json.Decoder(_Body)


def api_error(status: int, body: bytes) -> ApiError:
    """The exception for a refusal; a body of somebody else's is not shown."""
    kind = _KINDS.get(status, ServerFailed)
    try:
        told = _DECODER.decode(body).error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return kind(status, f"HTTP_{status}", f"answered with HTTP status {status}")
    return _made(kind, status, told)


def stream_error(data: bytes) -> ApiError:
    """The exception for the event ``error`` of a stream."""
    try:
        told = _BODY.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ServerFailed(200, "BAD_STREAM", "the stream ended with an unreadable error")
    kinds = {"UNAUTHENTICATED": Unauthenticated, "CURSOR_GONE": Gone, "REMOVED": Gone}
    kind = kinds.get(told.code, Unavailable if told.retryable else ServerFailed)
    return _made(kind, 200, told)


def error_of(told: ActionError) -> ApiError:
    """The exception for an error inside an answer, such as that of a replay."""
    body = _Body(told.code, told.message, told.path, told.retryable)
    kinds = {"FORBIDDEN": Forbidden, "CURSOR_GONE": Gone, "REMOVED": Gone}
    return _made(kinds.get(told.code, Invalid), 200, body)


def _made(kind: type[ApiError], status: int, told: _Body) -> ApiError:
    return kind(
        status,
        told.code,
        told.message,
        path=told.path,
        retryable=told.retryable,
        data=told.data,
    )
