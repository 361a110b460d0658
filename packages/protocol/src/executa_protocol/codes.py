"""Error codes: find a row, build the error that is sent, raise the one that came.

`error.data.errorCode` carries the symbol. Several symbols may share a number
(``-32602`` is refused for more than one reason), and several chapters share a
symbol (``NOT_GRANTED``), so each row also has a `name` that is unique. The rows
themselves are in `code_table` and `code_extensions`.
"""

from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from executa_protocol.code_extensions import EXTENSION_ROWS
from executa_protocol.code_table import SEED_ROWS, Chapter, Row
from executa_protocol.errors import (
    AgentError,
    EmbeddingsError,
    ImageError,
    RpcError,
    SamplingError,
    StorageError,
    UploadError,
    UsageError,
)

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
CALL_ENDED: Final = -32000
"""A call ended without a result: cancelled, timed out, or its process is gone."""

SAMPLING_NOT_GRANTED: Final = -32001
SAMPLING_QUOTA_EXCEEDED: Final = -32002
SAMPLING_PROVIDER_ERROR: Final = -32003
SAMPLING_INVALID_REQUEST: Final = -32004
SAMPLING_TIMEOUT: Final = -32005
SAMPLING_MAX_CALLS_EXCEEDED: Final = -32006
SAMPLING_MAX_TOKENS_EXCEEDED: Final = -32007
SAMPLING_NOT_NEGOTIATED: Final = -32008
SAMPLING_USER_DENIED: Final = -32009
SAMPLING_UNSUPPORTED_RESPONSE_FORMAT: Final = -32010

APP_SESSION_REVOKED: Final = -32011
APP_SESSION_EXPIRED: Final = -32017
APP_SESSION_TOKEN_EXPIRED: Final = -32018

STORAGE_NOT_GRANTED: Final = -32021
STORAGE_NOT_FOUND: Final = -32022
STORAGE_PRECONDITION_FAILED: Final = -32023
STORAGE_QUOTA_EXCEEDED: Final = -32024
STORAGE_VALUE_TOO_LARGE: Final = -32025
STORAGE_RATE_LIMITED: Final = -32026
STORAGE_INVALID_PATH: Final = -32027
STORAGE_INVALID_REQUEST: Final = -32028
STORAGE_UPSTREAM_ERROR: Final = -32029
STORAGE_TIMEOUT: Final = -32030

AGENT_NOT_GRANTED: Final = -32041
AGENT_INVALID_SUBMODE: Final = -32042
AGENT_FIXED_REQUIRES_CLIENT_ID: Final = -32043
AGENT_UNKNOWN_SESSION: Final = -32044
AGENT_INVALID_UUID: Final = -32045
AGENT_NEXUS_ERROR: Final = -32046
AGENT_RUN_TOO_LARGE: Final = -32047
AGENT_TOOL_NOT_GRANTED: Final = -32048

TABLE: Final[tuple[Row, ...]] = SEED_ROWS + EXTENSION_ROWS
"""Every error code of the protocol, by chapter."""


class ErrorObject(Struct, omit_defaults=True):
    """The `error` member of a JSON-RPC response.

    `code` is a number of `TABLE` or the sender's own; `message` is for people;
    `data` is absent, or an object whose ``errorCode`` names the row.
    """

    code: int
    message: str
    data: Any | UnsetType = UNSET


_EXCEPTIONS: Final[dict[Chapter, type[RpcError]]] = {
    "sampling": SamplingError,
    "app-session": SamplingError,
    "agent": AgentError,
    "storage": StorageError,
    "image": ImageError,
    "upload": UploadError,
    "embeddings": EmbeddingsError,
}


def _index() -> tuple[dict[str, Row], dict[str, Row | None], dict[int, tuple[Row, ...]]]:
    names: dict[str, Row] = {}
    symbols: dict[str, Row | None] = {}
    numbers: dict[int, tuple[Row, ...]] = {}
    for row in TABLE:
        names[row.name] = row
        symbols[row.symbol] = None if row.symbol in symbols else row
        numbers[row.number] = (*numbers.get(row.number, ()), row)
    return names, symbols, numbers


_NAMES, _SYMBOLS, _NUMBERS = _index()


def by_symbol(symbol: str) -> Row:
    """The row of a unique name, or of a wire symbol that only one chapter has.

    Raises `UsageError` for a symbol that is unknown or that chapters share
    (``NOT_GRANTED``: ask for ``SAMPLING_NOT_GRANTED``).
    """
    row = _NAMES.get(symbol) or _SYMBOLS.get(symbol)
    if row is None:
        reason = "is shared by several chapters" if symbol in _SYMBOLS else "is not in the table"
        raise UsageError(f"error symbol {symbol!r} {reason}")
    return row


def by_number(number: int) -> tuple[Row, ...]:
    """The rows that share a number, the general one first; empty when it is unknown."""
    return _NUMBERS.get(number, ())


def find(code: int, symbol: str = "") -> Row | None:
    """The row that an error from the wire means, or None for the sender's own code.

    The symbol decides among rows of one number. In the upload chapter it also
    wins over the number, because some nexus versions shifted the numbers.
    """
    rows = by_number(code)
    if not rows:
        return None
    wanted = symbol.casefold()
    pool = rows if rows[0].chapter != "upload" else tuple(r for r in TABLE if r.chapter == "upload")
    for row in pool:
        if wanted in (row.symbol.casefold(), row.name.casefold()):
            return row
    return rows[0]


def rpc_error(code: int, message: str, data: Any = None) -> RpcError:
    """The exception for an error answer, of the class that the code's chapter has."""
    rows = by_number(code)
    cls = _EXCEPTIONS.get(rows[0].chapter, RpcError) if rows else RpcError
    return cls(code, message, data)


def wire_error(row: Row | str, message: str | None = None, **data: Any) -> ErrorObject:
    """The error that a row (or its name) means, with ``errorCode`` and `data` beside it.

    Without a `message` the symbol and the row's advice are the message. Members of
    `data` that are None are left out: absent is not null.
    """
    if isinstance(row, str):
        row = by_symbol(row)
    members = {key: value for key, value in data.items() if value is not None}
    return ErrorObject(
        code=row.number,
        message=message if message is not None else f"{row.symbol}: {row.advice}",
        data={"errorCode": row.symbol, **members},
    )
