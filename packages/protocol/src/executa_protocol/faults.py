"""Looking at decoded JSON by hand and noting everything that is wrong with it.

A typed decode stops at its first fault and names no index. The collector goes on and
names the full path. It knows no message; `manifest_reading` and its neighbours do.
"""

from collections.abc import Iterable
from typing import Any, TypeVar, cast

from executa_protocol.errors import StrictRefusal
from executa_protocol.manifest import Fault
from executa_protocol.readings import Reader

Object = dict[str, Any]
C = TypeVar("C", bound=str)


def as_object(value: Any) -> Object | None:
    """The value if it is an object, else None."""
    return cast("Object", value) if isinstance(value, dict) else None


def join(path: str, member: str) -> str:
    """The path of a member."""
    return f"{path}.{member}" if path else member


class Collector:
    """Takes faults and tolerated departures while a value is walked.

    Each accessor returns the member if it is well formed, and otherwise notes a fault
    and returns what stands in for it.
    """

    def __init__(self, reader: Reader) -> None:
        self.faults: list[Fault] = []
        self._reader = reader

    def fault(self, path: str, message: str) -> None:
        """Note a fault."""
        self.faults.append(Fault(path, message))

    def tolerate(self, requirement: str, path: str, message: str) -> None:
        """Note a departure: a finding in tolerant mode, a fault in strict mode."""
        try:
            self._reader.tolerate(requirement, f"{path}: {message}")
        except StrictRefusal:
            self.faults.append(Fault(path, f"{message} ({requirement})", requirement))

    def text(self, item: Object, member: str, path: str) -> str | None:
        """A string that may be absent."""
        value = item.get(member)
        if value is None or isinstance(value, str):
            return value
        self.fault(join(path, member), "expected a string")
        return None

    def required_text(self, item: Object, member: str, path: str) -> str:
        """A string that may be neither absent nor empty."""
        value = item.get(member)
        if isinstance(value, str) and value:
            return value
        self.fault(join(path, member), "required" if member not in item else "expected some text")
        return ""

    def flag(self, item: Object, member: str, path: str, *, default: bool) -> bool:
        """A boolean that may be absent."""
        value = item.get(member)
        if isinstance(value, bool):
            return value
        if value is not None:
            self.fault(join(path, member), "expected true or false")
        return default

    def choice(self, item: Object, member: str, path: str, words: tuple[C, ...], default: C) -> C:
        """One of a few words, or the default when absent."""
        value = item.get(member)
        for word in words:
            if value == word:
                return word
        if value is not None:
            self.fault(join(path, member), f"expected one of {', '.join(words)}")
        return default

    def object(self, item: Object, member: str, path: str) -> Object | None:
        """An object that may be absent."""
        value = item.get(member)
        found = as_object(value)
        if found is None and value is not None:
            self.fault(join(path, member), "expected an object")
        return found

    def objects(self, item: Object, member: str, path: str) -> list[tuple[str, Object]] | None:
        """An array of objects with the path of each, or None when absent or no array."""
        where = join(path, member)
        value = item.get(member)
        if not isinstance(value, list):
            if value is not None:
                self.fault(where, "expected an array")
            return None
        found: list[tuple[str, Object]] = []
        for index, entry in enumerate(cast("list[Any]", value)):
            inner = as_object(entry)
            if inner is None:
                self.fault(f"{where}[{index}]", "expected an object")
            else:
                found.append((f"{where}[{index}]", inner))
        return found

    def unique(self, items: Iterable[tuple[str, Object]], member: str) -> None:
        """Note every item whose member repeats that of an earlier one."""
        seen: dict[str, str] = {}
        for path, item in items:
            value = item.get(member)
            if isinstance(value, str) and value:
                first = seen.setdefault(value, path)
                if first != path:
                    self.fault(f"{path}.{member}", f"{value!r} is already at {first}")
