"""What durable work refuses, and how a caller is told.

::

    ActionsError              code, message, path, retryable, data
    ├── Invalid               the request is wrong: it says where (HTTP 400)
    ├── Forbidden             the caller may not (403)
    ├── NotFound              not there, or not this caller's to see (404)
    ├── Conflict              the record is in another state than the request needs (409)
    ├── Gone                  it was there, and is no longer (410)
    └── Unavailable           not now; always worth a retry (503)

Knows nothing of HTTP; the numbers say which status an HTTP interface would give. No
message here carries a resume token, a callback secret or the content of an input.
"""

from enum import StrEnum
from typing import Any, ClassVar

from executa_protocol.actions import ActionError
from executa_protocol.errors import ExecutaError


class Code(StrEnum):
    """The symbols of refusals. Those that end an action stand in its result too."""

    # Invalid
    INVALID_REQUEST = "INVALID_REQUEST"
    INVALID_INPUT = "INVALID_INPUT"
    UNKNOWN_CAPABILITY = "UNKNOWN_CAPABILITY"
    MODE_NOT_OFFERED = "MODE_NOT_OFFERED"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    CURSOR_INVALID = "CURSOR_INVALID"
    CURSOR_AHEAD = "CURSOR_AHEAD"
    CALLBACK_REFUSED = "CALLBACK_REFUSED"
    # Forbidden
    FORBIDDEN = "FORBIDDEN"
    DELEGATION_REFUSED = "DELEGATION_REFUSED"
    APPROVAL_NOT_YOURS = "APPROVAL_NOT_YOURS"
    # NotFound
    UNKNOWN_ACTION = "UNKNOWN_ACTION"
    UNKNOWN_SESSION = "UNKNOWN_SESSION"
    RESUME_UNKNOWN = "RESUME_UNKNOWN"
    # Conflict
    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"
    NOT_PENDING_APPROVAL = "NOT_PENDING_APPROVAL"
    ALREADY_DECIDED = "ALREADY_DECIDED"
    CONTENT_CHANGED = "CONTENT_CHANGED"
    NOT_DEAD_LETTERED = "NOT_DEAD_LETTERED"
    SESSION_ENDED = "SESSION_ENDED"
    ILLEGAL_MOVE = "ILLEGAL_MOVE"
    RESUME_CONFLICT = "RESUME_CONFLICT"
    # Gone
    REMOVED = "REMOVED"
    CURSOR_GONE = "CURSOR_GONE"
    RESUME_SPENT = "RESUME_SPENT"
    RESUME_REVOKED = "RESUME_REVOKED"
    # Unavailable
    CAPABILITY_UNAVAILABLE = "CAPABILITY_UNAVAILABLE"
    QUEUE_FULL = "QUEUE_FULL"
    DRAINING = "DRAINING"


class ActionsError(ExecutaError):
    """Base of all refusals. `path` names the faulty member, such as ``$.input.text``.

    `retryable` says whether the same request may succeed later.
    """

    status: ClassVar[int] = 500

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        path: str = "",
        retryable: bool = False,
        data: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path
        self.retryable = retryable
        self.data: dict[str, Any] = data or {}

    def as_error(self) -> ActionError:
        """The same as the structured error that results carry."""
        error = ActionError(str(self.code), self.message, self.retryable, self.path)
        if self.data:
            error = ActionError(error.code, error.message, error.retryable, error.path, self.data)
        return error


class Invalid(ActionsError):
    """The request is wrong; sending it again changes nothing."""

    status = 400


class Forbidden(ActionsError):
    """The caller's key does not allow it."""

    status = 403


class NotFound(ActionsError):
    """Not there, or not to be seen by this caller: nobody is told which."""

    status = 404


class Conflict(ActionsError):
    """The record is in a state that the request does not fit."""

    status = 409


class Gone(ActionsError):
    """It was there: removed by retention, spent or revoked."""

    status = 410


class Unavailable(ActionsError):
    """Not now. Always `retryable`."""

    status = 503

    def __init__(self, code: Code, message: str, *, data: dict[str, Any] | None = None) -> None:
        super().__init__(code, message, retryable=True, data=data)
