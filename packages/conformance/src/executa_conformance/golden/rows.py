"""The golden lines as values; their format is told in ``lines/README.md``."""

import base64
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import msgspec

Row = dict[str, Any]

LINES: Traversable = files("executa_conformance") / "golden" / "lines"


@cache
def chapters() -> tuple[str, ...]:
    """Every chapter there is, by name."""
    names = (path.name for path in LINES.iterdir())
    return tuple(sorted(name.removesuffix(".jsonl") for name in names if name.endswith(".jsonl")))


@cache
def rows(chapter: str) -> tuple[Row, ...]:
    """The cases of a chapter, in the order of the file."""
    lines = (LINES / f"{chapter}.jsonl").read_bytes().split(b"\n")
    return tuple(msgspec.json.decode(line, type=Row) for line in lines if line)


def data_of(row: Row) -> bytes:
    """The bytes to read."""
    if "input_b64" in row:
        return base64.b64decode(row["input_b64"])
    return row["input"].encode()
