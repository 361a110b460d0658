"""The rules of a storage key or a file path, in one place.

A key names the same thing for every host, shell and reader of a log: relative,
bounded, nothing invisible in it. This module knows no method.
"""

import re
from typing import Final

from executa_protocol.limits import STORAGE_KEY_CHARS, STORAGE_SEGMENT_CHARS

_INVISIBLE: Final = re.compile(
    "["
    "\u0000-\u001f\u007f-\u009f"  # control
    "\u00ad\u034f\u180e\u200b-\u200d\u2060-\u2064\ufeff"  # zero width
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # bidi
    "\u2028\u2029"  # line and paragraph separators, control in all but name
    "]"
)


def key_fault(key: str) -> str | None:
    """Why `key` cannot be a key, in a few words; None when it can.

    At most 1,024 characters and 128 a segment; relative; no empty, ``.`` or ``..``
    segment, backslash, control, zero-width or bidi character, or space at an edge.
    """
    if not key:
        return "expected a key, it is empty"
    return _common_fault(key) or _segments_fault(key.split("/"))


def prefix_fault(prefix: str) -> str | None:
    """Why `prefix` cannot begin a key; an empty one and one that ends in ``/`` can."""
    if not prefix:
        return None
    fault = _common_fault(prefix)
    if fault:
        return fault
    *whole, last = prefix.split("/")
    if len(last) > STORAGE_SEGMENT_CHARS:
        return _too_long(last)
    return _segments_fault(whole)


def _common_fault(text: str) -> str | None:
    if len(text) > STORAGE_KEY_CHARS:
        return f"{len(text):,} characters, at most {STORAGE_KEY_CHARS:,}"
    if text.startswith("/"):
        return "it must be relative"
    if "\\" in text:
        return "it has a backslash"
    if found := _INVISIBLE.search(text):
        return f"it has the invisible character U+{ord(found.group()):04X}"
    if text[0].isspace() or text[-1].isspace():
        return "it begins or ends with a space"
    return None


def _segments_fault(segments: list[str]) -> str | None:
    for segment in segments:
        if not segment:
            return "it has an empty segment"
        if segment in {".", ".."}:
            return f"it has a segment {segment!r}"
        if len(segment) > STORAGE_SEGMENT_CHARS:
            return _too_long(segment)
    return None


def _too_long(segment: str) -> str:
    return f"a segment of {len(segment)} characters, at most {STORAGE_SEGMENT_CHARS}"
