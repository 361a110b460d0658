"""Known secrets, and where they stand in a text: as they are, encoded, overlapping, cut off.

Owns values and no syntax. Two kinds are kept apart because there are so many of the one:
`Secrets` that stay known, and tokens, of which only the last few thousand are looked for.
"""

import base64
import json
import re
from collections import OrderedDict
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final
from urllib.parse import quote, quote_plus

LEAST_CHARS: Final = 4
"""A shorter secret is looked for as a whole string only: it would stand everywhere."""

TOKENS_KEPT: Final = 4096
"""Tokens that are still looked for; one of an invoke long ago is forgotten."""

LEARNT_KEPT: Final = 20_000
"""Encoded forms of values that are no tokens; what a plugin makes up beyond them is not learnt."""

_KEY: Final = 8
"""Characters by which tokens are looked up."""

_LEAST_TOKEN: Final = 16
"""Shorter values are looked for one by one."""

_RUNS: Final = re.compile(r"[\w.\-~+/=%]{16,}")
"""Where tokens may stand: they have no spaces or quotes."""

_PLAIN: Final = re.compile(r"[\w.\-~+/=%]+")
_OUTSIDE: Final = re.compile(r"[-+.0-9eE]*|t?r?u?e?|f?a?l?s?e?|n?u?l?l?")
"""What may be a part of JSON outside its strings: numbers, and words."""

_LEAST_PART: Final = 16
"""Characters of a dotted token's part that is a secret of its own, such as its signature."""


class Secrets:
    """The secrets that one recording knows; each has a number, the same wherever it stands."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._lasting: dict[str, int] = {}  # variant → number
        self._written: set[str] = set()  # the same as JSON strings
        self._whole: dict[str, int] = {}  # those too short to be looked for
        self._tokens: OrderedDict[str, tuple[str, ...]] = OrderedDict()  # value → its variants
        self._starts: dict[str, dict[str, int]] = {}  # first characters → variant → number
        self._names: dict[int, str] = {}

    def __repr__(self) -> str:
        return f"Secrets({len(self._lasting) + len(self._whole)} and {len(self._tokens)} tokens)"

    def add(self, name: str, value: str) -> None:
        """From now on `value` is a secret. `name` is what stands in its place."""
        if not value:
            return
        number = self.number(name, value)
        if len(value) < LEAST_CHARS:
            self._whole[value] = number
            self._written |= {json.dumps(value), json.dumps(value, ensure_ascii=False)}
            return
        for variant in variants_of(value):
            self._lasting.setdefault(variant, number)

    def add_token(self, name: str, value: str) -> None:
        """As `add`, for one of many values that are secret for a while."""
        if len(value) < _LEAST_TOKEN or _PLAIN.fullmatch(value) is None:
            if len(self._lasting) < LEARNT_KEPT:
                self.add(name, value)
            return
        if value in self._tokens:
            self._tokens.move_to_end(value)
            return
        number = self.number(name, value)
        variants = tuple(v for v in variants_of(value) if len(v) >= _LEAST_TOKEN)
        self._tokens[value] = variants
        for variant in variants:
            self._starts.setdefault(variant[:_KEY], {})[variant] = number
        if len(self._tokens) > TOKENS_KEPT:
            self._forget(*self._tokens.popitem(last=False))

    def _forget(self, value: str, variants: tuple[str, ...]) -> None:
        del value
        for variant in variants:
            same = self._starts.get(variant[:_KEY], {})
            same.pop(variant, None)
            if not same:
                self._starts.pop(variant[:_KEY], None)

    def number(self, name: str, value: str) -> int:
        """The number of a value, whether it is looked for or not."""
        digest = blake2b(value.encode(errors="surrogatepass"), digest_size=8).digest()
        number = self._numbers.setdefault(digest, len(self._numbers) + 1)
        self._names.setdefault(number, _label(name))
        return number

    def placeholder(self, number: int) -> str:
        """What stands in the place of a secret."""
        return f"[redacted:{self._names[number]}:{number}]"

    def whole(self, text: str) -> int | None:
        """The number of the short secret that `text` is."""
        return self._whole.get(text)

    def replace_plain(self, text: str) -> str | None:
        """A line of JSON without secrets, if they can be replaced where they stand; else None.

        Those cannot that look like JSON themselves, and short ones.
        """
        if any(written in text for written in self._written):
            return None
        found = [variant for variant in self._lasting if variant in text]
        if not found and not self._starts:
            return text
        if not all(_within_strings(variant) for variant in found):
            return None
        return self.replace(text)

    def replace(self, text: str, *, cut: bool = False) -> str:
        """`text` without secrets. With `cut` its end may be the beginning of one."""
        number = self._whole.get(text)
        if number is not None:
            return self.placeholder(number)
        if not cut and not any(variant in text for variant in self._lasting) and not self._starts:
            return text
        spans = [*self._lasting_spans(text, cut=cut), *self._token_spans(text, cut=cut)]
        if not spans:
            return text
        parts: list[str] = []
        position = 0
        for start, end, number in merged(spans):
            parts += [text[position:start], self.placeholder(number)]
            position = end
        return "".join([*parts, text[position:]])

    def _lasting_spans(self, text: str, *, cut: bool) -> Iterator[tuple[int, int, int]]:
        for variant, number in self._lasting.items():
            start = text.find(variant)
            while start >= 0:
                yield start, start + len(variant), number
                start = text.find(variant, start + 1)
            if cut:
                for length in range(min(len(variant) - 1, len(text)), LEAST_CHARS - 1, -1):
                    if text.endswith(variant[:length]):
                        yield len(text) - length, len(text), number
                        break

    def _token_spans(self, text: str, *, cut: bool) -> Iterator[tuple[int, int, int]]:
        starts = self._starts
        if not starts:
            return
        for run in _RUNS.finditer(text):
            for position in range(run.start(), run.end() - _KEY + 1):
                found = starts.get(text[position : position + _KEY])
                if found is None:
                    continue
                for variant, number in found.items():
                    if text.startswith(variant, position):
                        yield position, position + len(variant), number
                    elif cut and variant.startswith(text[position:]):
                        yield position, len(text), number


def _within_strings(variant: str) -> bool:
    """Whether it can only stand within a string of JSON, whole."""
    return _PLAIN.fullmatch(variant) is not None and _OUTSIDE.fullmatch(variant) is None


def merged(spans: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Spans that overlap as one, from left to right: half a secret is no less of one."""
    spans.sort(key=lambda span: (span[0], -span[1]))
    start, end, number = spans[0]
    for other_start, other_end, other_number in spans[1:]:
        if other_start < end:
            end = max(end, other_end)
        else:
            yield start, end, number
            start, end, number = other_start, other_end, other_number
    yield start, end, number


def variants_of(value: str) -> tuple[str, ...]:
    """A secret and its encoded forms: in JSON, percent-encoded, base64 at any offset, hex."""
    data = value.encode(errors="surrogatepass")
    found = [value]
    for ascii_only in (True, False):
        within = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        found += [within, json.dumps(within, ensure_ascii=ascii_only)[1:-1]]
    percent = quote(data, safe="")
    found += [percent, quote_plus(data), quote(data), percent.lower() if "%" in percent else ""]
    for offset in range(3):
        for altchars in (b"+/", b"-_"):
            found.append(_base64_within(data, offset, altchars))
    found += [data.hex(), data.hex().upper()]
    if value.count(".") >= 2:  # of a signed token, what it says and its signature
        found += [part for part in value.split(".")[1:] if len(part) >= _LEAST_PART]
    return tuple(dict.fromkeys(form for form in found if len(form) >= LEAST_CHARS))


def _base64_within(data: bytes, offset: int, altchars: bytes) -> str:
    """The characters of base64 that only `data` decides when it begins at `offset` of three."""
    text = base64.b64encode(bytes(offset) + data, altchars).decode()
    first = (0, 2, 3)[offset]
    rest = (offset + len(data)) % 3
    return text[first:] if not rest else text[first : -((4, 3, 2)[rest])]


def _label(name: str) -> str:
    return "".join(c if c.isalnum() or c in "_.-" else "-" for c in name)[:40] or "secret"
