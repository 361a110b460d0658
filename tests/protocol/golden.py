"""The golden lines as tests take them; their format is told in `tests/golden/README.md`."""

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

GOLDEN = Path(__file__).parents[1] / "golden"
Row = dict[str, Any]


def chapters() -> set[str]:
    """Every chapter there is."""
    return {path.stem for path in GOLDEN.glob("*.jsonl")}


def rows(*names: str) -> list[Any]:
    """The cases of these chapters, as pytest takes them."""
    found: list[Any] = []
    for name in names:
        for line in (GOLDEN / f"{name}.jsonl").read_bytes().split(b"\n"):
            if line:
                row = msgspec.json.decode(line)
                found.append(pytest.param(row, id=f"{name}-{row['name']}"))
    return found


def data_of(row: Row) -> bytes:
    """The bytes to read."""
    if "input_b64" in row:
        return base64.b64decode(row["input_b64"])
    return row["input"].encode()


def exact(value: Any) -> str:
    """A text that tells 1 from 1.0 and from true, and does not see the order of members."""
    return json.dumps(msgspec.to_builtins(value), sort_keys=True)
