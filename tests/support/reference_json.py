"""What JSON on the wire is, said by Python's own `json`: slow, plain, and nobody's fast path.

Tests and the fuzzer hold the protocol's readers against it (R-14).
"""

import json
import math
from typing import Any, NoReturn

MAX_DEPTH = 128


def load(line: bytes) -> Any:
    """The value of a line. Raises ValueError for whatever the wire does not allow."""
    text = line.decode("utf-8")
    if depth(text) > MAX_DEPTH:
        raise ValueError("too deep")
    value = json.loads(
        text, parse_float=_finite, parse_constant=_refuse, object_pairs_hook=_last_wins
    )
    _without_lone_surrogates(value)
    return value


def accepts(line: bytes) -> bool:
    """Whether the wire allows this line as JSON."""
    try:
        load(line)
    except ValueError:
        return False
    return True


def depth(text: str) -> int:
    """How deep the brackets outside strings nest."""
    deepest = level = 0
    in_string = escaped = False
    for character in text:
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character in "[{":
            level += 1
            deepest = max(deepest, level)
        elif character in "]}":
            level -= 1
    return deepest


def _last_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        _without_lone_surrogates(pairs)  # what is dropped has been on the line, too
    return members


def _without_lone_surrogates(value: Any) -> None:
    # Escapes may have made some, which only show when they are encoded again.
    json.dumps(value, ensure_ascii=False).encode("utf-8")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("not finite")
    return value


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)
