"""Requests into structs: bounded bodies, JSON, queries, and faults that name their place.

Owns how much of a body is read and how long that may take, and the words and paths of what
is wrong with a shape: ``$.input`` in a body, ``query.limit`` in a URL. What values mean is
the engine's business.
"""

import asyncio
import functools
import re
from typing import Any, Final, TypeVar, cast

import msgspec
from aiohttp import web
from msgspec import Raw, Struct, inspect, structs

from executa_host.actions.faults import Code
from executa_host.api.refusal import ApiCode, Refusal, invalid
from executa_protocol import codec
from executa_protocol.errors import DecodeFailure

T = TypeVar("T", bound=Struct)

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
"""The header that clients and proxies know for what is `idempotency_key` in a body."""

_KEY: Final = "idempotency_key"
_JSON: Final = re.compile(r"application/(?:[\w.+-]+\+)?json", re.IGNORECASE)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_NAME: Final = re.compile(r"[\w.-]{1,32}")
_RANGE: Final = re.compile(r"Expected `(?:int|float)` [<>]|out of range", re.IGNORECASE)
_BOUND: Final = re.compile(r"Expected `(?:int|float)` (<=|>=) ([\d.]+)")
_BOUNDS: Final = {"<=": "at most", ">=": "at least"}


# --- Bodies --------------------------------------------------------------------------------


async def read_body(request: web.Request, kind: type[T], most: int, seconds: float) -> T:
    """The body as a struct; none at all reads as ``{}``. Raises `Refusal`."""
    data = await _bytes(request, most, seconds)
    if data.strip(b" \t\r\n"):
        _check_type(request)
    else:
        data = b"{}"
    try:
        codec.check_content(data)
        body = codec.decode(data, msgspec.json.Decoder(kind))
    except DecodeFailure as fault:
        raise _told(str(fault), fault.path, "$") from None
    _check_objects(body, "$")
    return body


def with_key(request: web.Request, body: T) -> T:
    """The body with the idempotency key of the header. Raises `Refusal` if it has another one.

    The header may be a structured string, in quotes, or plain text.
    """
    given = request.headers.getall(IDEMPOTENCY_KEY, [])
    if not given:
        return body
    key = given[0].strip()
    if len(key) > 1 and key[0] == key[-1] == '"':
        key = key[1:-1]
    if len(given) > 1 or getattr(body, _KEY) not in ("", key):
        raise invalid(f"another key than in the header {IDEMPOTENCY_KEY}", f"$.{_KEY}")
    return structs.replace(body, **{_KEY: key})


async def _bytes(request: web.Request, most: int, seconds: float) -> bytes:
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Refusal(415, ApiCode.UNSUPPORTED_MEDIA_TYPE, "Content-Encoding: expected identity")
    if (request.content_length or 0) > most:
        raise _too_large(most)
    data = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.content.iter_any():
                data += piece
                if len(data) > most:
                    raise _too_large(most)
    except TimeoutError:
        msg = f"the body did not arrive within {seconds:g} s"
        raise Refusal(408, ApiCode.BODY_TOO_SLOW, msg, retryable=True) from None
    except web.RequestPayloadError:
        raise Refusal(400, ApiCode.BAD_HTTP, "the body is not what its headers say") from None
    return bytes(data)


def _too_large(most: int) -> Refusal:
    return Refusal(413, ApiCode.BODY_TOO_LARGE, f"the body has more than {most:,} bytes")


def _check_type(request: web.Request) -> None:
    kind, _, rest = request.headers.get("Content-Type", "").partition(";")
    charset = rest.lower().replace(" ", "").replace('"', "").partition("charset=")[2]
    if not _JSON.fullmatch(kind.strip()) or charset.partition(";")[0] not in ("", "utf-8", "utf8"):
        msg = "Content-Type: expected application/json in UTF-8"
        raise Refusal(415, ApiCode.UNSUPPORTED_MEDIA_TYPE, msg)


def _check_objects(value: Struct, path: str) -> None:
    """Raw members are JSON objects: the decoder takes any JSON for them."""
    for name, field in zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True):
        member = getattr(value, field)
        if isinstance(member, Raw):
            if bytes(memoryview(member)[:1]) != b"{":
                raise _told("Expected `object`", f"{path}.{name}".removeprefix("$."), "$")
        elif isinstance(member, Struct):
            _check_objects(member, f"{path}.{name}")


# --- Queries -------------------------------------------------------------------------------


def read_query(request: web.Request, kind: type[T]) -> T:
    """The query as a struct. Lists are written with commas or by repeating. Raises `Refusal`."""
    lists = _lists(kind)
    given: dict[str, Any] = {}
    for name, text in request.query.items():
        if name in lists:
            words = [word for word in text.split(",") if word]
            given[name] = [*given.get(name, ()), *words]
        elif name in given:
            raise invalid("given more than once", f"query.{_shown(name)}")
        else:
            given[name] = text
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as fault:
        text, _, path = str(fault).partition(" - at `$")
        raise _told(text, path.rstrip("`").removeprefix("."), "query") from None
    except UnicodeError:
        raise invalid("the query is no UTF-8", "query") from None


@functools.cache
def _lists(kind: type[Struct]) -> frozenset[str]:
    found = cast("inspect.StructType", inspect.type_info(kind))
    return frozenset(
        field.encode_name for field in found.fields if isinstance(field.type, inspect.VarTupleType)
    )


# --- Words ---------------------------------------------------------------------------------


def _told(message: str, path: str, root: str) -> Refusal:
    """What the decoder says, with the place that it means in the API's form."""
    text = message.removeprefix(f"{path}: ") if path else message
    path = path.partition("[...]")[0]  # below it the decoder names no members
    where = f"{root}.{path}" if path and path[0] != "[" else f"{root}{path}"
    for pattern, words in ((_UNKNOWN, "unknown member"), (_MISSING, "missing")):
        if (found := pattern.fullmatch(text)) is not None:
            return invalid(words, f"{where}.{_shown(found[1])}")
    if (bound := _BOUND.fullmatch(text)) is not None:
        text = f"Expected a number of {_BOUNDS[bound[1]]} {bound[2].removesuffix('.0')}"
    text = text[:1].lower() + text[1:].replace("`", "")
    if path and _RANGE.search(message):
        return invalid(text, where, Code.OUT_OF_RANGE)
    return invalid(text, where if where != "query" else "")


def _shown(name: str) -> str:
    """A client's own name for a member. One that is long may be a secret in the wrong place."""
    return name if _NAME.fullmatch(name) else "…"
