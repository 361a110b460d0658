"""The requirement files and the source name the same requirements (R-03)."""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import executa_protocol

PACKAGE = Path(executa_protocol.__file__).parent
CITED = re.compile(r'"((?:AGNT|CORE|FRAME|HAND|MANI|SAMP|STOR|WIRE|ACTN|SESN|FILE)-\d{3})"')
MEMBERS = {"id", "source", "level", "role", "rule"}


def requirements() -> list[dict[str, Any]]:
    """Every requirement of every file."""
    return [
        row
        for path in sorted((PACKAGE / "requirements").glob("*.toml"))
        for row in tomllib.loads(path.read_text(encoding="utf-8"))["requirement"]
    ]


def cited() -> set[str]:
    """Every id that a line of the package names."""
    return {
        found
        for path in PACKAGE.rglob("*.py")
        for found in CITED.findall(path.read_text(encoding="utf-8"))
    }


def test_ids_are_unique_over_all_files() -> None:
    counts = Counter(row["id"] for row in requirements())
    assert [name for name, count in counts.items() if count > 1] == []


def test_every_id_that_the_source_cites_is_listed() -> None:
    assert cited() - {row["id"] for row in requirements()} == set()


def test_every_requirement_has_its_members() -> None:
    for row in requirements():
        assert row.keys() >= MEMBERS, row
        assert row["level"] in {"must", "should", "may"}, row
        assert row["role"] in {"plugin", "host", "nexus", "both"}, row
        assert row["rule"].endswith("."), row
