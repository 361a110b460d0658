"""What a replay found, and the words for it."""

import json
from typing import Any, Final

from msgspec import Struct

from executa_host.replaying.comparing import MISSING, Difference

_BEFORE: Final = 40
"""Characters before a difference that are shown with it."""


class Verdict(Struct, frozen=True):
    """The first difference of a launch, and at which frame: `row` of the transcript, 0 for none."""

    launch: int
    row: int
    frame: str
    difference: Difference
    got: Any = MISSING
    """The whole frame in which it is."""


def sentence(verdict: Verdict, most: int = 400) -> str:
    """A difference for a person."""
    found = verdict.difference
    where = f"line {verdict.row}" if verdict.row else "after the last line"
    path = f"\n  at       {found.path}" if found.path else ""
    expected, got = _around(found.expected, found.got)
    whole = f"\n  in       {_words(verdict.got, most)}" if verdict.got is not MISSING else ""
    return (
        f"launch {verdict.launch}, {verdict.frame} ({where}):{path}"
        f"\n  expected {_words(expected, most)}\n  got      {_words(got, most)}{whole}"
    )


def _around(expected: Any, got: Any) -> tuple[Any, Any]:
    """Two long texts from a little before where they part."""
    if not (isinstance(expected, str) and isinstance(got, str)):
        return expected, got
    pairs = enumerate(zip(expected, got, strict=False))
    same = next((index for index, (old, new) in pairs if old != new), min(len(expected), len(got)))
    if same <= _BEFORE:
        return expected, got
    return f"…{expected[same - _BEFORE :]}", f"…{got[same - _BEFORE :]}"


def _words(value: Any, most: int) -> str:
    if value is MISSING:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"
