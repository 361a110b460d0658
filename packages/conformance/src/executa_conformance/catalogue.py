"""Every requirement: those that the protocol package reports by itself, and the kit's own.

The protocol's files list the spellings of the field that its readers tell apart; the kit's
files complete them. In a prefix that both use, the kit's ids begin at 101. A requirement of
the protocol that no check can see is excused in ``requirements/unchecked.toml``.
"""

import hashlib
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any, Final

import msgspec

from executa_conformance.model import Requirement

REVISION: Final = "2026-11"
"""The newest frozen revision."""

_UNCHECKED: Final = "unchecked.toml"


def _tables(folder: Traversable) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.endswith(".toml"):
            yield path.name, tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def requirements() -> Mapping[str, Requirement]:
    """Every requirement by its id, in the order of the files.

    Raises ValueError for an id that stands twice, and for an excuse of nothing.
    """
    found: dict[str, Requirement] = {}
    excuses: dict[str, str] = {}
    for package in ("executa_protocol", "executa_conformance"):
        for name, table in _tables(files(package) / "requirements"):
            if name == _UNCHECKED:
                excuses = table
                continue
            for row in msgspec.convert(table["requirement"], list[Requirement]):
                if row.id in found:
                    msg = f"{name}: {row.id} is listed twice"
                    raise ValueError(msg)
                found[row.id] = row
    for identity, reason in excuses.items():
        if identity not in found:
            msg = f"{_UNCHECKED}: there is no requirement {identity}"
            raise ValueError(msg)
        found[identity] = msgspec.structs.replace(found[identity], unchecked=reason)
    return MappingProxyType(found)


def digest(requirement: Requirement) -> str:
    """What freezes a rule: SHA-256 over everything that it demands, and of whom."""
    frozen = (requirement.source, requirement.severity, requirement.role, requirement.rule)
    return hashlib.sha256(msgspec.json.encode((requirement.id, *frozen))).hexdigest()


def frozen(revision: str = REVISION) -> bytes:
    """The frozen set of a revision as it is stored. Raises FileNotFoundError."""
    return (files("executa_conformance") / "requirements/frozen" / f"{revision}.json").read_bytes()


def changes(stored: bytes) -> list[str]:
    """What has become of a frozen set: rules that changed or are gone, one sentence each."""
    rows = requirements()
    found: list[str] = []
    for identity, value in msgspec.json.decode(stored, type=dict[str, str]).items():
        if identity not in rows:
            found.append(f"{identity} is gone; withdraw it, but keep it listed")
        elif digest(rows[identity]) != value:
            found.append(f"{identity} has changed; a rule that changes needs a new id")
    return found


def freeze() -> bytes:
    """The frozen file of the requirements as they are now."""
    digests = {row.id: digest(row) for row in requirements().values()}
    encoded = msgspec.json.encode(dict(sorted(digests.items())))
    return msgspec.json.format(encoded, indent=2) + b"\n"
