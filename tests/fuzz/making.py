"""Bytes of a fuzzer to something worth reading.

A coverage-guided fuzzer cannot see into the C of the JSON decoder, so it would seldom
get past it by itself. `expand` gives it a byte for each long or unlikely piece of text;
`Maker` builds JSON as a type has it, or of the names and words that a reader knows, with
a fault here and there.
"""

import types
import typing
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct, UnsetType

# Bytes that no UTF-8 text has stand for pieces that no fuzzer would hit upon.
PIECES: Final[dict[int, bytes]] = {
    0xF5: b"[" * 70,
    0xF6: b"]" * 70,
    0xF7: b'{"a":' * 70,
    0xF8: b"}" * 70,
    0xF9: b"9" * 215,
    0xFA: b"e99",
    0xFB: b"x" * 1500,
    0xFC: b'"jsonrpc":"2.0","id":1,"',
    0xFD: b"\xef\xbb\xbf",
}

_RAW: Final = (
    b"null", b"true", b"false", b"0", b"1", b"-1", b"7.0", b"1e308", b"1e999", b"-0", b"NaN",
    b"9" * 25, b"9" * 4301, b'""', b'"\\ud800"', b'"\xff"', b"[]", b"{}", b'"\\u0000"', b"0.5",
    b'"2.0"', b"2.0", b"[[]]", b"65536", b'"\xc2\x80\xe2\x80\xa8"', b"\x00", b"1e-400", b"-",
)  # fmt: skip


MOST: Final = 6_000
"""Bytes that `expand` gives at most: half as much again as the smallest line cap."""


def expand(data: bytes) -> bytes:
    """`data` with its pieces in place of the bytes that stand for them."""
    return b"".join(PIECES.get(byte, bytes((byte,))) for byte in data)[:MOST]


def pieces(data: bytes, count: int) -> list[bytes]:
    """`data` cut into about so many pieces, some of them empty."""
    step = max(1, len(data) // max(1, count))
    cut = [data[start : start + step] for start in range(0, len(data), step)]
    return [b"", *cut[:2], b"", *cut[2:]]


class Maker:
    """Builds JSON text from bytes, with `words` for keys and strings."""

    def __init__(self, data: bytes, words: Sequence[str]) -> None:
        self._data = data
        self._at = 0
        self._words = [b'"%b"' % word.encode() for word in words]

    def byte(self) -> int:
        """The next byte, 0 when there is none."""
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def value(self, depth: int = 0) -> bytes:
        """A value, more often than not one that can be read."""
        kind = self.byte() % 24
        if kind < 3 and depth < 6:
            members = [b"%b:%b" % (self._key(), self.value(depth + 1)) for _ in self._some()]
            return b"{" + b",".join(members) + b"}"
        if kind < 6 and depth < 6:
            return b"[" + b",".join([self.value(depth + 1) for _ in self._some()]) + b"]"
        if kind < 13:
            return self._words[self.byte() % len(self._words)]
        if kind < 18:
            return b"%d" % (self.byte() * 257)
        if kind < 19:
            return b'"%b"' % expand(self._take(self.byte() % 8))
        if kind < 22:
            return (b"null", b"true", b"false")[kind - 19]
        return _RAW[self.byte() % len(_RAW)]

    def of(self, kind: Any, depth: int = 0) -> bytes:
        """A value of a type, most of the time."""
        if self.byte() % 16 == 15 or depth > 8:
            return self.value(depth)
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            return self.of(arguments[0], depth)
        if origin is typing.Literal:
            return msgspec.json.encode(arguments[self.byte() % len(arguments)])
        if origin in (typing.Union, types.UnionType):
            choices = [choice for choice in arguments if choice is not UnsetType]
            return self.of(choices[self.byte() % len(choices)], depth)
        if origin in (list, tuple):
            return b"[" + b",".join([self.of(arguments[0], depth + 1) for _ in self._some()]) + b"]"
        if origin is dict:
            members = [
                b"%b:%b" % (self._key(), self.of(arguments[1], depth + 1)) for _ in self._some()
            ]
            return b"{" + b",".join(members) + b"}"
        if isinstance(kind, type) and issubclass(kind, Struct):
            return self._struct(kind, depth)
        return self._plain(kind, depth)

    def _plain(self, kind: Any, depth: int) -> bytes:
        if kind is str:
            return self._words[self.byte() % len(self._words)]
        if kind is bool:
            return (b"true", b"false")[self.byte() % 2]
        if kind is int or kind is float:
            return b"%d" % (1 + self.byte() % 40)
        return b"null" if kind is type(None) else self.value(depth)

    def _struct(self, kind: type[Struct], depth: int) -> bytes:
        hints = typing.get_type_hints(kind, include_extras=True)
        members: list[bytes] = []
        config = kind.__struct_config__
        if config.tag_field:
            members.append(msgspec.json.encode({config.tag_field: config.tag})[1:-1])
        optional = len(kind.__struct_fields__) - len(kind.__struct_defaults__)
        for index, (name, field) in enumerate(
            zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
        ):
            required = (
                index < optional or kind.__struct_defaults__[index - optional] is msgspec.NODEFAULT
            )
            if self.byte() % 16 < (15 if required else 6):
                members.append(b'"%b":%b' % (name.encode(), self.of(hints[field], depth + 1)))
        if self.byte() % 8 == 7:
            members.append(b"%b:%b" % (self._key(), self.value(depth + 1)))
        return b"{" + b",".join(members) + b"}"

    def object(self) -> bytes:
        """An object of several members."""
        count = 1 + self.byte() % 9
        members = [b"%b:%b" % (self._key(), self.value(1)) for _ in range(count)]
        return b"{" + b",".join(members) + b"}"

    def _some(self) -> range:
        return range(self.byte() % 5)

    def _key(self) -> bytes:
        index = self.byte()
        return self._words[index % len(self._words)] if index < 250 else b'"%b"' % self._take(3)

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken.replace(b'"', b"").replace(b"\\", b"")
