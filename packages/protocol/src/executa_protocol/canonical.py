"""One encoding for all spellings of the same JSON value, and its digest (R-43).

Two inputs are the same if they decode to the same value: keys are sorted by code
point, the last of duplicate keys wins, escapes and white space do not matter.
Numbers are compared exactly as they are written in decimal: ``1.50`` is ``1.5`` and
``15e-1``, but ``1`` is not ``1.0``, and no digit is lost to a double. Text is compared
by code points; different Unicode normal forms are different inputs. This module
does not know what the values are for.
"""

from typing import Final

import msgspec
from msgspec import Raw

from executa_protocol import codec
from executa_protocol.errors import DecodeFailure

_EXPONENT_DIGITS: Final = 18
"""A longer exponent means zero or infinity to everybody; Python's int would refuse 4,300."""


def canonical(raw: bytes | Raw) -> bytes:
    """The canonical encoding of a JSON text. Raises `DecodeFailure`.

    Refused like in every frame: bad UTF-8, lone surrogates, too deep, not finite.
    """
    data = bytes(raw)
    codec.check_content(data)
    return _ENCODER.encode(codec.decode(data, _DECODER))


def digest(raw: bytes | Raw) -> str:
    """SHA-256 of the canonical encoding, 64 hexadecimal digits. Raises `DecodeFailure`."""
    import hashlib  # noqa: PLC0415 - costs milliseconds, and most importers never hash

    return hashlib.sha256(canonical(raw)).hexdigest()


def _number(text: str) -> Raw:
    """A number with a fraction or an exponent, as digits and a power of ten.

    The result always has an exponent, so that it never meets an integer.
    """
    mantissa, _, exponent = text.lower().partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return Raw(f"{sign}0e0".encode())
    if len(exponent.lstrip("+-0")) > _EXPONENT_DIGITS:
        msg = "the exponent of a number is too long"
        raise DecodeFailure(msg)
    stripped = digits.rstrip("0")
    power = int(exponent or "0") - len(fraction) + len(digits) - len(stripped)
    return Raw(f"{sign}{stripped}e{power}".encode())


_DECODER = msgspec.json.Decoder(float_hook=_number)
_ENCODER = msgspec.json.Encoder(order="sorted")
