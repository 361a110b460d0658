"""Reads tables of a configuration file and remembers every fault with its path.

Owns the words for what is wrong: what was expected, what stands there, and the nearest
name for one that is not known. Nothing is raised until the whole file has been read.
What the tables mean is `config`'s business.
"""

import difflib
import math
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from msgspec import Struct

from executa_protocol.errors import UsageError

T = TypeVar("T")

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_KINDS: Final[dict[type, str]] = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "a table",
}


class Fault(Struct, frozen=True):
    """One thing that is wrong: where, such as ``plugins.notebook.command``, and what."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(UsageError):
    """A configuration file cannot be used; `faults` are all that is wrong with it."""

    def __init__(self, file: Path, faults: Collection[Fault]) -> None:
        lines = [f"{file}: the configuration has {len(faults)} fault{'s' * (len(faults) > 1)}"]
        super().__init__("\n  ".join(lines + [str(fault) for fault in faults]))
        self.file = file
        self.faults = tuple(faults)


class Table:
    """One table of the file. Whatever is not asked for is unknown when `finish` is called."""

    def __init__(self, values: Mapping[str, Any], path: str, faults: list[Fault]) -> None:
        self.path = path
        self._values = values
        self._faults = faults
        self._asked: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def at(self, name: str) -> str:
        """The path of a member."""
        key = name if _BARE.fullmatch(name) else '"' + name.replace('"', '\\"') + '"'
        return f"{self.path}.{key}" if self.path else key

    def fault(self, name: str, message: str) -> None:
        """Remember that something is wrong with a member."""
        self._faults.append(Fault(self.at(name), message))

    def take(self, name: str) -> Any:
        """The member as it stands there; None if it does not."""
        self._asked.add(name)
        return self._values.get(name)

    def names(self) -> Iterator[str]:
        """All members, for a table whose keys are names; each counts as asked for."""
        for name in self._values:
            self._asked.add(name)
            yield name

    def finish(self) -> None:
        """Every member that nobody asked for is a fault."""
        for name in self._values:
            if name not in self._asked:
                known = sorted(self._asked)
                near = difflib.get_close_matches(name, known, 1)
                advice = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
                self.fault(name, f"unknown name; {advice}")

    # --- Members of a kind ------------------------------------------------------------

    def text(self, name: str, default: str = "") -> str:
        """A string that is not empty."""
        value = self.take(name)
        if value is None:
            return default
        if isinstance(value, str) and value.strip():
            return value
        return self._wrong(name, "a string that is not empty", value, default)

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        value = self.take(name)
        if value is None:
            return default
        return value if isinstance(value, bool) else self._wrong(name, _KINDS[bool], value, default)

    def choice(self, name: str, words: Collection[str], default: str) -> str:
        """One of `words`."""
        value = self.take(name)
        if value is None:
            return default
        if value in words:
            return value
        return self._wrong(name, " or ".join(f'"{word}"' for word in words), value, default)

    def number(
        self, name: str, least: float, most: float, *, whole: bool = False
    ) -> float | int | None:
        """A number from `least` to `most`; None if it is not there."""
        value = self.take(name)
        if value is None:
            return None
        kinds = int if whole else int | float
        fits = isinstance(value, kinds) and not isinstance(value, bool)
        if fits and math.isfinite(value) and least <= value <= most:
            return value
        kind = _KINDS[int if whole else float]
        return self._wrong(name, f"{kind} from {least:g} to {most:g}", value, None)

    def texts(self, name: str, example: str) -> tuple[str, ...]:
        """An array of strings; `example` shows one."""
        value: object = self.take(name)
        if value is None or value == []:
            return ()
        items = cast("list[object]", value if isinstance(value, list) else [])
        if items and all(isinstance(item, str) for item in items):
            return tuple(cast("list[str]", items))
        return self._wrong(
            name, f"an array of strings such as {example}", cast("object", value), ()
        )

    def table(self, name: str) -> "Table":
        """A table inside this one; an empty one if it is not there."""
        value: object = self.take(name)
        if isinstance(value, dict):
            return Table(cast("dict[str, Any]", value), self.at(name), self._faults)
        if value is not None:
            self._wrong(name, _KINDS[dict], value, None)
        return Table({}, self.at(name), self._faults)

    def tables(self, name: str) -> "list[Table]":
        """An array of tables, ``[[name]]``; none if it is not there."""
        value: object = self.take(name)
        items = cast("list[object]", value if isinstance(value, list) else [])
        if value is not None and not (
            isinstance(value, list) and all(isinstance(item, dict) for item in items)
        ):
            self._wrong(name, f"tables, [[{self.at(name)}]]", cast("object", value), None)
            return []
        return [
            Table(cast("dict[str, Any]", item), f"{self.at(name)}[{place}]", self._faults)
            for place, item in enumerate(items)
        ]

    def _wrong(self, name: str, expected: str, value: object, default: T) -> T:
        self.fault(name, f"expected {expected}, got {shape_of(value)}")
        return default


def shape_of(value: object) -> str:
    """What stands there, in words. Texts are not shown: a secret may have come to a wrong place."""
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, str):
        return "a string" if value.strip() else "an empty string"
    if isinstance(value, list):
        return "an array" if value else "an empty array"
    return _KINDS.get(type(value), f"a {type(value).__name__}")
