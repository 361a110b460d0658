"""The golden lines as tests take them; their format is told in the README beside them."""

import json
from typing import Any

import msgspec
import pytest

from executa_conformance.golden.rows import LINES, Row, data_of
from executa_conformance.golden.rows import chapters as all_chapters
from executa_conformance.golden.rows import rows as rows_of

__all__ = ["LINES", "Row", "chapters", "data_of", "exact", "rows"]


def chapters() -> set[str]:
    """Every chapter there is."""
    return set(all_chapters())


def rows(*names: str) -> list[Any]:
    """The cases of these chapters, as pytest takes them."""
    return [
        pytest.param(row, id=f"{name}-{row['name']}") for name in names for row in rows_of(name)
    ]


def exact(value: Any) -> str:
    """A text that tells 1 from 1.0 and from true, and does not see the order of members."""
    return json.dumps(msgspec.to_builtins(value), sort_keys=True)
