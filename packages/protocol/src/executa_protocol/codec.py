"""JSON in and out: what the libraries leave open, decided once (R-14).

Every line passes `check_content` before any decoder sees it, because decoders
that skip or pass a value through look neither at its UTF-8 nor at the size of its
numbers, and recurse as deep as it nests. Every outgoing value passes `encode`,
because encoders write NaN and Infinity as ``null``. This module knows JSON and no
message.
"""

import math
from collections.abc import Iterable
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import UNSET, Raw, Struct

from executa_protocol.errors import DecodeFailure, NotEncodable
from executa_protocol.limits import KIB, MAX_DEPTH

T = TypeVar("T")

_ENCODER = msgspec.json.Encoder()
_ANY = msgspec.json.Decoder()

_NOT_BRACKETS: Final = b'"\\'  # of the skeleton
_NOT_SKELETON: Final = bytes(byte for byte in range(256) if byte not in b'[]{}"\\')
_ONE_KIND_OF_BRACKET: Final = bytes.maketrans(b"[]", b"{}")
_DIGITS_AS_ZERO: Final = bytes.maketrans(b"123456789E", b"000000000e")
_SMALL: Final = 4 * KIB
_LONG_STRING: Final = 256
"""Bytes for each quote from which on strings are worth to be taken out one by one."""
_SLASHES: Final = 64
"""Backslashes in a row before a quote that are counted."""
_SPARSE: Final = 32
"""Bytes for each backslash from which on escapes are worth to be taken out one by one."""
_MANTISSA: Final = 64
"""Bytes of a number before its exponent that are looked at."""
_FEW: Final = 16
_RARE: Final = 512
"""Bytes for each thing like an exponent, after the first few, up to which all are looked at."""
# Bytes as numbers, and `find` for longer pieces: `in` looks for bytes in bytes only after
# it has tried them as a number, which costs more than most searches.
_LF: Final = 0x0A
_BACKSLASH: Final = 0x5C
_OPENING: Final = 0x7B
_PLUS: Final = 0x2B
_INFINITE_DIGITS: Final = b"0" * 210
"""1e309 is infinite, and an exponent of two digits brings at most 99 of its digits."""

# --- In ---------------------------------------------------------------------------


def check_content(line: bytes) -> None:
    """Raise `DecodeFailure` if `line` holds bad UTF-8, nests too deep, or has an infinite number.

    Lone surrogates, NaN and Infinity as words, and everything else that is no JSON
    are left to the decoder, which refuses them also in values that it skips.
    """
    if not line.isascii():
        try:
            line.decode()
        except UnicodeDecodeError as fault:
            msg = f"invalid UTF-8 at byte {fault.start}"
            raise DecodeFailure(msg) from None
    bare = line if len(line) <= _SMALL else _without_strings(line)
    # A line with fewer bytes than a too deep value has brackets needs no closer look.
    if len(bare) > 2 * MAX_DEPTH and too_deep(bare):
        msg = f"arrays and objects nest deeper than {MAX_DEPTH}"
        raise DecodeFailure(msg)
    if len(line) <= _SMALL or _may_hold_infinite_number(bare):
        decode(line, _ANY)


def _without_strings(line: bytes) -> bytes:
    """A long line without what its strings hold, as far as they are few and long.

    What a text holds matters to neither check, and a closer look at all of it would cost
    more than decoding it. Exact for JSON; anything else the decoder refuses in any form.
    """
    if line.count(b'"', 0, _SMALL) > _SMALL // _LONG_STRING:
        return line
    parts: list[bytes] = []
    end = 0
    start = line.find(b'"')
    quote = start
    for _ in range(len(line) // _LONG_STRING):  # more quotes than that are not worth it
        quote = line.find(b'"', quote + 1)
        if quote < 0:
            break
        if line[quote - 1] == _BACKSLASH:
            before = line[max(start, quote - _SLASHES) : quote]
            slashes = len(before) - len(before.rstrip(b"\\"))
            if slashes == _SLASHES:
                break
            if slashes % 2:  # an escaped quote
                continue
        parts.append(line[end:start])
        end = quote + 1
        quote = start = line.find(b'"', end)
        if start < 0:
            break
    parts.append(line[end:])
    return b'""'.join(parts)


def too_deep(line: bytes) -> bool:
    """Whether the arrays and objects of `line` nest deeper than `MAX_DEPTH`.

    Exact for JSON; for anything else it may say yes where a decoder would stop earlier.
    """
    if len(line) <= _SMALL:
        # `count` looks at every byte, `replace` asks memchr for the next that counts.
        others = line.replace(b"[", b"").replace(b"{", b"")
        if len(line) - len(others) <= MAX_DEPTH:
            return False
    skeleton = line.translate(_ONE_KIND_OF_BRACKET, _NOT_SKELETON)
    brackets = skeleton.translate(None, _NOT_BRACKETS)
    if brackets.count(b"{") <= MAX_DEPTH:
        return False
    if _BACKSLASH in skeleton:
        if skeleton.rfind(b'\\"') >= 0:  # only then a quote may be an escaped one
            skeleton = _without_escapes(line, skeleton).translate(
                _ONE_KIND_OF_BRACKET, _NOT_SKELETON
            )
            brackets = skeleton.translate(None, _NOT_BRACKETS)
        skeleton = skeleton.translate(None, b"\\")
    # Only quotes and brackets are left, so a string without brackets is two quotes side
    # by side. If all quotes stand in such pairs, no string holds a bracket.
    if 2 * skeleton.count(b'""') < len(skeleton) - len(brackets):
        # Dropping pairs changes nothing for what stands outside strings.
        others = skeleton.replace(b'""""', b"").replace(b'""', b"")
        brackets = b"".join(others.split(b'"')[::2])
    return _rises_over(MAX_DEPTH, brackets)


def _rises_over(limit: int, brackets: bytes) -> bool:
    """Whether more than `limit` of these are open anywhere, in steps of as many."""
    level = 0
    for start in range(0, len(brackets), limit):
        opened = brackets.count(b"{", start, start + limit)
        if level + opened <= limit:  # even if all that opens here did so before any closes
            level += 2 * opened - limit
            continue
        for bracket in brackets[start : start + limit]:
            level += 1 if bracket == _OPENING else -1
            if level > limit:
                return True
    return False


def _without_escapes(line: bytes, skeleton: bytes) -> bytes:
    """A line without the quotes and backslashes that its strings hold.

    To search all of a line for them takes longer than to look at each of few backslashes.
    """
    if skeleton.count(b"\\") > len(line) // _SPARSE:
        if skeleton.rfind(b"\\\\") >= 0:
            line = line.replace(b"\\\\", b"")
        return line.replace(b'\\"', b"")
    first, *others = line.split(b"\\")
    parts = [first]
    escaped = False
    for part in others:
        if escaped:
            parts.append(part)
            escaped = False
        elif part:
            parts.append(part[1:])
        else:  # one backslash after another: it is the other that is escaped
            escaped = True
    return b"".join(parts)


def _may_hold_infinite_number(line: bytes) -> bool:
    """Whether a number here may be 1e309 or more: three digits of exponent, or 210 of its own."""
    # Unlike bytes, a bytearray does not look whether it changes, which takes half the time.
    digits = bytearray(line).translate(_DIGITS_AS_ZERO)
    return (
        _may_hold_exponent(digits, b"0e000")
        or (_PLUS in line and _may_hold_exponent(digits, b"0e+000"))
        or digits.find(_INFINITE_DIGITS) >= 0
    )


def _may_hold_exponent(digits: bytearray, exponent: bytes) -> bool:
    """Whether a number may end in `exponent`; what an id in hexadecimal holds is none.

    A number follows the beginning of the line, a blank, or one of ``,:[``.
    """
    at = digits.rfind(exponent)  # takes half as long as `find`
    looks = 0
    while at >= 0:
        looks += 1
        if looks > _FEW + (len(digits) - at) // _RARE:
            return True
        if at == 0 or digits[at - 1] in b"0.- \t\r\n,:[":
            before = digits[max(at - _MANTISSA, 0) : at].rstrip(b"0.-")
            if not before or before[-1] in b" \t\r\n,:[":
                return True
        at = digits.rfind(exponent, 0, at + len(exponent) - 1)
    return False


def decode_any(data: bytes | Raw) -> Any:
    """Decode to plain Python values; integers stay exact. Raises `DecodeFailure`."""
    return decode(data, _ANY)


def decode(data: bytes | Raw, decoder: "msgspec.json.Decoder[T]") -> T:
    """Decode with a prepared `decoder`. Raises `DecodeFailure` with the path of the fault."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as fault:
        message, path = _with_path(str(fault))
        raise DecodeFailure(message, path=path) from None
    except msgspec.DecodeError as fault:
        raise DecodeFailure(str(fault)) from None
    except UnicodeDecodeError as fault:
        msg = f"invalid UTF-8 at byte {fault.start}"
        raise DecodeFailure(msg) from None
    except RecursionError:
        msg = f"arrays and objects nest deeper than {MAX_DEPTH}"
        raise DecodeFailure(msg) from None


def _with_path(message: str) -> tuple[str, str]:
    """Take msgspec's "Expected `int` - at `$.a[0]`" apart: the path goes without its ``$.``."""
    text, found, tail = message.rpartition(" - at `")
    if not found:
        return message, ""
    path = tail.rpartition("$")[2].rstrip("`").removeprefix(".")  # it may begin "key` in `$"
    return (f"{path}: {text}" if path else text), path


# --- Out ----------------------------------------------------------------------------


def encode(value: object) -> bytes:
    """Encode as one line of JSON without its LF. Raises `NotEncodable`.

    Refused: what JSON has no form for, NaN and Infinity (no library does), lone
    surrogates, and a raw value that brings a newline of its own.
    """
    try:
        data = _ENCODER.encode(value)
        path = _non_finite(value, "") if data.rfind(b"null") >= 0 else None
    except RecursionError:
        msg = "the value nests too deep, or contains itself"
        raise NotEncodable(msg) from None
    except (TypeError, ValueError, OverflowError) as fault:  # UnicodeEncodeError is a ValueError
        msg = f"not JSON: {fault}"
        raise NotEncodable(msg) from None
    if path is not None:
        msg = f"not JSON: {path or 'the value'} is not a finite number"
        raise NotEncodable(msg)
    if _LF in data:
        msg = "a raw value holds a newline, which would split the frame"
        raise NotEncodable(msg)
    return data


def _non_finite(value: object, path: str) -> str | None:
    """The path of the first NaN or Infinity in `value`, or None.

    Runs only when ``null`` stands in the encoded text: each NaN leaves one there.
    """
    if isinstance(value, float):
        return None if math.isfinite(value) else path
    if value is None or value is UNSET or isinstance(value, str | bytes | int | Raw):
        return None
    for name, item in _members(value):
        inner = f"{path}{name}" if name[0] == "[" or path else name.removeprefix(".")
        if (found := _non_finite(item, inner)) is not None:
            return found
    return None


def _members(value: object) -> Iterable[tuple[str, object]]:
    """What stands one level below `value`, each with its step of the path."""
    if isinstance(value, Struct):
        names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        return [(f".{name}", getattr(value, attribute)) for name, attribute in names]
    if not isinstance(value, dict | list | tuple | set | frozenset):
        # A raw value within is JSON text already, and holds no number of ours.
        value = msgspec.to_builtins(value, str_keys=True, enc_hook=lambda _: None)
    if isinstance(value, dict):
        pairs = cast("dict[object, object]", value)
        return [(f".{key}", item) for key, item in pairs.items()]
    if isinstance(value, list | tuple | set | frozenset):
        items = cast("Iterable[object]", value)
        return [(f"[{index}]", item) for index, item in enumerate(items)]
    return []
