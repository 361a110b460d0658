"""How the stub says no: one `NexusError` for each row of the code table, with its HTTP status.

Owns the mapping from rows to statuses (*observed*: 401, 403, 404, 409, 410, 412, 413,
422, 429). Messages name what was wrong and never a token, a credential or another
user's data. This module knows no endpoint.
"""

from typing import Final

from executa_protocol.code_table import Row
from executa_protocol.codes import by_symbol
from executa_protocol.errors import DecodeFailure
from executa_protocol.methods.reading import InvalidParams
from executa_protocol.nexus import NexusError

_STATUS: Final = {
    "SAMPLING_NOT_GRANTED": 403,
    "SAMPLING_QUOTA_EXCEEDED": 429,
    "SAMPLING_PROVIDER_ERROR": 502,
    "SAMPLING_INVALID_REQUEST": 422,
    "SAMPLING_TIMEOUT": 504,
    "SAMPLING_MAX_CALLS_EXCEEDED": 429,
    "SAMPLING_MAX_TOKENS_EXCEEDED": 429,
    "SAMPLING_UNSUPPORTED_RESPONSE_FORMAT": 422,
    "APP_SESSION_REVOKED": 410,
    "APP_SESSION_EXPIRED": 410,
    "APP_SESSION_TOKEN_EXPIRED": 401,
    "STORAGE_NOT_GRANTED": 403,
    "STORAGE_FORBIDDEN_SCOPE": 403,
    "STORAGE_NOT_FOUND": 404,
    "STORAGE_PRECONDITION_FAILED": 412,
    "STORAGE_QUOTA_EXCEEDED": 429,
    "STORAGE_VALUE_TOO_LARGE": 413,
    "STORAGE_RATE_LIMITED": 429,
    "STORAGE_INVALID_PATH": 422,
    "STORAGE_INVALID_REQUEST": 422,
    "STORAGE_UPSTREAM_ERROR": 502,
    "STORAGE_PENDING_UPLOAD": 409,
    "AGENT_NOT_GRANTED": 403,
    "AGENT_INVALID_SUBMODE": 422,
    "AGENT_FIXED_REQUIRES_CLIENT_ID": 422,
    "AGENT_UNKNOWN_SESSION": 404,
    "AGENT_INVALID_UUID": 403,
    "AGENT_NEXUS_ERROR": 502,
    "AGENT_TOOL_NOT_GRANTED": 403,
    "INVALID_PARAMS": 422,
    "UNMAPPED_METHOD": 404,
    "METHOD_NOT_FOUND": 404,
    "UNKNOWN_INVOKE_CONTEXT": 410,
}


def refused(
    row: Row | str,
    message: str,
    *,
    status: int | None = None,
    symbol: str | None = None,
    retry_after: float | None = None,
) -> NexusError:
    """The refusal that `row` (or its name) means; `symbol` may say it more exactly."""
    if isinstance(row, str):
        row = by_symbol(row)
    return NexusError(
        message,
        status=status or _STATUS.get(row.name, 400),
        code=row.number,
        symbol=symbol or row.symbol,
        retry_after=retry_after,
    )


def invalid(fault: DecodeFailure, row: str = "INVALID_PARAMS") -> NexusError:
    """The refusal of content that could not be read."""
    return refused(fault.row if isinstance(fault, InvalidParams) else row, str(fault))
