"""What went wrong at nexus, as a `NexusError` that may be shown to anyone.

Owns the reading of error answers and the words for those that never came. No token, no
body and no URL gets into a message: of an answer only its code, its symbol and its
sentence are taken, the sentence cut and cleared of whatever looks like a token.
"""

import re
import time
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final, Literal, cast

from executa_protocol import codec
from executa_protocol.codes import by_symbol, find
from executa_protocol.errors import DecodeFailure, UsageError
from executa_protocol.nexus import NexusError

Chapter = Literal["invoke", "sampling", "agent", "storage"]
"""Which part of the interface a call belongs to, and so which codes its failures have."""

SHOWN_CHARS: Final = 300
"""How much of nexus's own sentence is passed on."""

_SECRET: Final = re.compile(
    r"(?i:\bbearer\s+)\S+"  # a header
    r"|\beyJ[\w-]+(?:\.[\w-]+)*"  # a JWT: its header is an object
    r"|\b[A-Za-z0-9_-]{40,}"  # some other opaque string
    r"|(?i:\b[\w-]*(?:token|api_?key|secret|password|signature)=)[^\s,;&]+"
    r"|\b[a-z][a-z0-9+.-]*://\S+"  # a URL: its query may be a signature
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_UNAUTHORIZED: Final = (401, 403)


class NexusTimeout(NexusError, TimeoutError):
    """Nexus did not answer in time.

    A `TimeoutError` too: whoever waits for nexus with a time-out of their own answers both
    alike, with the code that their chapter has for it.
    """


def shown(text: str, *secrets: str) -> str:
    """Nexus's words on one line, cut, without `secrets` and without anything like one."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[withheld]")
    flat = " ".join(_CONTROL.sub(" ", _SECRET.sub("[withheld]", text)).split())
    return flat if len(flat) <= SHOWN_CHARS else flat[: SHOWN_CHARS - 1] + "…"


def refused(
    chapter: Chapter, status: int, body: bytes, retry_after: str | None, bearer: str
) -> NexusError:
    """The error that an answer with a status of 300 and more is."""
    error = _error_of(body)
    symbol = _text(error, "errorCode", "symbol", "error_name", "error")
    code = _code_of(chapter, error.get("code"), symbol)
    if not symbol and isinstance(error.get("code"), str):
        symbol = error["code"]
    words = shown(_text(error, "message", "detail", "reason"), bearer)
    if chapter == "invoke" and status in _UNAUTHORIZED and code in (None, -32600):
        # Nothing that a plugin did: the operator reads this.
        code, symbol = by_symbol("INTERNAL_ERROR").number, "INTERNAL_ERROR"
        words = f"nexus does not accept this host's key; check EXECUTA_NEXUS_KEY ({words})"
    return NexusError(
        words or f"nexus answered {status} {_phrase(status)}",
        status=status,
        code=code,
        symbol=shown(symbol, bearer)[:64],
        retry_after=_seconds(retry_after, error.get("retry_after")),
    )


def late(seconds: float) -> NexusTimeout:
    """Nexus did not answer in time."""
    return NexusTimeout(f"no answer from nexus within {seconds:g} s")


def unreadable(what: str, fault: Exception) -> NexusError:
    """Nexus answered with something else than it should have."""
    detail = shown(str(fault)) if isinstance(fault, DecodeFailure) else type(fault).__name__
    return NexusError(f"nexus answered {what} that cannot be read: {detail}", status=200)


def _error_of(body: bytes) -> dict[str, Any]:
    """The object that tells the error, in whichever of the field's envelopes it came."""
    try:
        value = codec.decode_any(body)
    except DecodeFailure:
        return {}
    for _ in range(2):
        if not isinstance(value, dict):
            return {}
        members = cast("dict[str, Any]", value)
        inner = next((members[key] for key in ("error", "detail") if key in members), None)
        if not isinstance(inner, dict):
            return members
        value = cast("object", inner)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(error: dict[str, Any], *names: str) -> str:
    return next((error[name] for name in names if isinstance(error.get(name), str)), "")


def _code_of(chapter: Chapter, code: object, symbol: str) -> int | None:
    """The wire code: as told, or that of the symbol, which the storage endpoints tell alone."""
    if isinstance(code, int) and not isinstance(code, bool):
        return code
    word = (code if isinstance(code, str) else symbol).upper()
    if not word:
        return None
    for name in (f"{chapter.upper()}_{word}", word):
        try:
            return by_symbol(name).number
        except UsageError:
            continue
    return None


def is_terminal(fault: NexusError) -> bool:
    """Whether nexus named a code that trying again cannot change."""
    row = None if fault.code is None else find(fault.code, fault.symbol)
    return row is not None and row.disposition != "retry"


def _seconds(header: str | None, told: object) -> float | None:
    """How long to wait: seconds or a date in the header, else what the body says."""
    if header is not None:
        try:
            return max(0.0, float(header))
        except ValueError:
            pass
        try:
            return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
        except (ValueError, TypeError, OverflowError):
            pass
    known = isinstance(told, int | float) and not isinstance(told, bool)
    return max(0.0, float(told)) if known else None  # pyright: ignore[reportArgumentType]


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "(no known status)"
