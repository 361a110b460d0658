"""The one exception tree of the project.

::

    ExecutaError
    ├── LocalError                 misuse on this side; nothing was sent
    │   ├── UsageError
    │   ├── NotEncodable           a value that JSON cannot hold
    │   ├── FrameTooLarge          over the line cap
    │   └── WriteQueueFull         the peer does not read
    ├── PeerViolation              the other side broke the protocol
    │   ├── DecodeFailure          content that is not what the wire says
    │   └── StrictRefusal          a tolerated spelling, met in strict mode
    ├── CallFailed                 no answer will come
    │   ├── ConnectionLost
    │   ├── CallTimeout
    │   └── CallCancelled
    └── RpcError                   the other side answered with an error
        ├── SamplingError
        │   └── AgentError         so that `except SamplingError` covers both
        ├── StorageError           storage and files
        ├── ImageError
        ├── UploadError
        └── EmbeddingsError

Codes, their symbols and advice are rows of `codes`; `rpc_error` picks the class
of a code. No exception here carries a token or a credential.
"""

from typing import Any


class ExecutaError(Exception):
    """Base of every error that this project raises on purpose."""


# --- This side ------------------------------------------------------------------


class LocalError(ExecutaError):
    """Misuse on this side. Nothing was written to the peer."""


class UsageError(LocalError):
    """An API was called in a way or at a time that it does not allow."""


class NotEncodable(LocalError):
    """A value cannot be a JSON frame: wrong type, NaN, Infinity or a raw newline (R-14)."""


class FrameTooLarge(LocalError):
    """A frame of `size` bytes is over the cap of `limit` bytes; not a byte was written (R-11)."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the frame has {size:,} bytes and the line cap is {limit:,}; "
            "send less, or a file where the protocol has file transport"
        )
        self.size = size
        self.limit = limit


class WriteQueueFull(LocalError):
    """The peer does not read: `queued` bytes wait already and the cap is `limit`."""

    def __init__(self, queued: int, limit: int) -> None:
        super().__init__(
            f"the other side does not read: {queued:,} bytes wait and the cap is {limit:,}"
        )
        self.queued = queued
        self.limit = limit


# --- The other side ---------------------------------------------------------------


class PeerViolation(ExecutaError):
    """The other side broke the protocol."""


class DecodeFailure(PeerViolation):
    """Content is not what the wire says. The message names the path, such as ``tools[0].name``."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class StrictRefusal(PeerViolation):
    """A spelling that tolerant mode accepts, refused by its `requirement` id (R-03)."""

    def __init__(self, requirement: str, message: str) -> None:
        super().__init__(f"{requirement}: {message}")
        self.requirement = requirement


# --- Calls without an answer --------------------------------------------------------


class CallFailed(ExecutaError):
    """No answer will come. `written` says whether any of the request reached the pipe (R-25)."""

    def __init__(self, message: str, *, written: bool | None = None) -> None:
        super().__init__(message)
        self.written = written


class ConnectionLost(CallFailed):
    """The connection ended before the answer came."""


class CallTimeout(CallFailed, TimeoutError):
    """The call's deadline passed; the connection goes on (R-24)."""


class CallCancelled(CallFailed):
    """The call was cancelled by whoever made it, or with what it belonged to."""


# --- Errors on the wire ---------------------------------------------------------------


class RpcError(ExecutaError):
    """An error answer: `code`, `message` and `data` as the wire has them.

    `symbol` is ``data.errorCode`` (or its older spellings), empty when absent.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"[{code}] {message}")
        self.code = code
        self.message = message
        self.data: dict[str, Any] = data if isinstance(data, dict) else _wrapped(data)

    @property
    def symbol(self) -> str:
        """The code's name as the sender gave it, such as ``AGENT_UNKNOWN_SESSION``."""
        for key in ("errorCode", "errorName", "error_name"):
            value = self.data.get(key)
            if isinstance(value, str):
                return value
        return ""


def _wrapped(data: Any) -> dict[str, Any]:
    return {} if data is None else {"value": data}


class SamplingError(RpcError):
    """Sampling failed or was refused."""


class AgentError(SamplingError):
    """An agent call failed or was refused (seed agent-sessions, Error codes)."""


class StorageError(RpcError):
    """A storage or files call failed or was refused."""


class ImageError(RpcError):
    """An image call failed or was refused."""


class UploadError(RpcError):
    """A host upload failed or was refused."""


class EmbeddingsError(RpcError):
    """An embeddings call failed or was refused."""
