"""What a parser said of a golden line, held against what it should have said."""

from decimal import Decimal
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from executa_conformance.golden.rows import Row

_SPOKEN: Final = ("error", "faults", "diagnostic")
"""Members that are compared only where the parser gives them."""


class Said(Struct):
    """A parser's answer; see ``lines/README.md``, Adapters."""

    case: str
    reading: str = ""
    decoded: Any = None
    outcome: Any = UNSET
    error: Any = UNSET
    faults: Any = UNSET
    diagnostic: Any = UNSET
    skip: str | UnsetType = UNSET


def expected(row: Row, *, strict: bool) -> Row:
    """What is to be said of a row. Strict reading refuses what is tolerated."""
    if strict and row["reading"] == "tolerated":
        return {"reading": "invalid", "decoded": None}
    wanted = {name: row[name] for name in ("reading", "decoded", "outcome") if name in row}
    return wanted | {name: row[name] for name in _SPOKEN if name in row and not strict}


def difference(row: Row, said: Said, *, strict: bool) -> str:
    """What is wrong with an answer, or nothing."""
    for name, wanted in expected(row, strict=strict).items():
        got = getattr(said, name)
        if name in _SPOKEN and got is UNSET:
            continue
        if got is UNSET or not same(got, wanted):
            shown = "absent" if got is UNSET else msgspec.json.encode(got).decode()
            return f"{name}: expected {msgspec.json.encode(wanted).decode()}, got {shown}"
    return ""


def same(one: Any, other: Any) -> bool:
    """Equality of JSON values. Numbers are compared by their exact value; true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if type(one) in (int, float) and type(other) in (int, float):
        return Decimal(one) == Decimal(other)
    if isinstance(one, list) and isinstance(other, list):
        ours, theirs = cast("list[Any]", one), cast("list[Any]", other)
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(one, dict) and isinstance(other, dict):
        members, others = cast("Row", one), cast("Row", other)
        return members.keys() == others.keys() and all(
            same(value, others[key]) for key, value in members.items()
        )
    return bool(one == other)
