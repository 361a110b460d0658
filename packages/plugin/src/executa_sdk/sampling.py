"""The sampling chapter under the field's names; `clients.sampling` is what they mean."""

from typing import Final

from executa_protocol import codes
from executa_protocol.errors import SamplingError
from executa_protocol.handshake import V1, V2
from executa_protocol.limits import SPILL_THRESHOLD
from executa_sdk.clients.frames import write_to_stdout
from executa_sdk.clients.sampling import SamplingClient

__all__ = [
    "MAX_STDIO_MESSAGE_BYTES",
    "METHOD_INITIALIZE",
    "METHOD_SAMPLING_CREATE_MESSAGE",
    "METHOD_SHUTDOWN",
    "PROTOCOL_VERSION_V1",
    "PROTOCOL_VERSION_V2",
    "SAMPLING_ERR_INVALID_REQUEST",
    "SAMPLING_ERR_MAX_CALLS_EXCEEDED",
    "SAMPLING_ERR_MAX_TOKENS_EXCEEDED",
    "SAMPLING_ERR_NOT_GRANTED",
    "SAMPLING_ERR_NOT_NEGOTIATED",
    "SAMPLING_ERR_PROVIDER_ERROR",
    "SAMPLING_ERR_QUOTA_EXCEEDED",
    "SAMPLING_ERR_TIMEOUT",
    "SAMPLING_ERR_UNSUPPORTED_RESPONSE_FORMAT",
    "SAMPLING_ERR_USER_DENIED",
    "SamplingClient",
    "SamplingError",
]

PROTOCOL_VERSION_V1: Final = V1
PROTOCOL_VERSION_V2: Final = V2
MAX_STDIO_MESSAGE_BYTES: Final = SPILL_THRESHOLD

METHOD_INITIALIZE: Final = "initialize"
METHOD_SHUTDOWN: Final = "shutdown"
METHOD_SAMPLING_CREATE_MESSAGE: Final = "sampling/createMessage"

SAMPLING_ERR_NOT_GRANTED: Final = codes.SAMPLING_NOT_GRANTED
SAMPLING_ERR_QUOTA_EXCEEDED: Final = codes.SAMPLING_QUOTA_EXCEEDED
SAMPLING_ERR_PROVIDER_ERROR: Final = codes.SAMPLING_PROVIDER_ERROR
SAMPLING_ERR_INVALID_REQUEST: Final = codes.SAMPLING_INVALID_REQUEST
SAMPLING_ERR_TIMEOUT: Final = codes.SAMPLING_TIMEOUT
SAMPLING_ERR_MAX_CALLS_EXCEEDED: Final = codes.SAMPLING_MAX_CALLS_EXCEEDED
SAMPLING_ERR_MAX_TOKENS_EXCEEDED: Final = codes.SAMPLING_MAX_TOKENS_EXCEEDED
SAMPLING_ERR_NOT_NEGOTIATED: Final = codes.SAMPLING_NOT_NEGOTIATED
SAMPLING_ERR_USER_DENIED: Final = codes.SAMPLING_USER_DENIED
SAMPLING_ERR_UNSUPPORTED_RESPONSE_FORMAT: Final = codes.SAMPLING_UNSUPPORTED_RESPONSE_FORMAT

_write_frame = write_to_stdout  # plugins of the field import it under this name
