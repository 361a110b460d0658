"""Whether a frame is the recorded one again, and where it is not: the first difference.

What differs from run to run is left aside: generated ids (each must stand for the same one
everywhere), times and durations, and what was redacted. Numbers are compared as they are: 1 is
not 1.0. Knows JSON values and no protocol.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, cast

from msgspec import Struct

from executa_host.transcripts.redaction import MARK


class Missing:
    """Stands where nothing stands."""

    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = Missing()


class Difference(Struct, frozen=True):
    """Where two values differ first. `path` is like ``result.data[0]``, empty for the whole."""

    path: str
    expected: Any
    got: Any


class Names:
    """Which generated id of now stands for which recorded one. Both ways, or it is another."""

    def __init__(self) -> None:
        self.now: dict[str, str] = {}
        self._recorded: dict[str, str] = {}

    def bind(self, recorded: str, now: str) -> bool:
        """Whether `now` may stand for `recorded`."""
        known = self.now.setdefault(recorded, now)
        back = self._recorded.setdefault(now, recorded)
        return known == now and back == recorded

    def copy(self) -> "Names":
        """The same, to try something with."""
        twin = Names()
        twin.now, twin._recorded = dict(self.now), dict(self._recorded)
        return twin

    def current(self, text: str) -> str:
        """A recorded text with the ids of now."""
        for recorded, now in self.now.items():
            if recorded != now:
                text = text.replace(recorded, now)
        return text


_WORDS: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_TIME_WORDS: Final = frozenset(
    {
    "at", "time", "timestamp", "ts", "ms", "us", "ns", "seconds", "secs", "duration",
    "elapsed", "latency", "took", "deadline", "expires", "expiry", "created", "updated",
    "modified", "started", "ended", "date", "age", "uptime", "pid",
    }
)  # fmt: skip
_SETTINGS: Final = frozenset(
    {
    "ttl", "timeout", "interval", "max", "min", "limit", "every", "count",
    }
)  # fmt: skip
"""Words of what is set rather than measured, whatever its unit."""
_ID_WORDS: Final = frozenset(
    {
    "id", "ids", "uuid", "guid", "ulid", "nonce", "cursor", "etag", "trace", "span",
    "traceparent",
    }
)  # fmt: skip

_DIGEST_WORDS: Final = frozenset(
    {
    "sha256", "sha1", "sha", "md5", "digest", "hash", "checksum", "crc",
    }
)  # fmt: skip


_ISO: Final = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_PARTS: Final = re.compile(
    rf"(?P<mark>{MARK.pattern})|(?P<iso>{_ISO})|(?P<uuid>{_UUID})"
    r"|(?P<took>\d+(?:\.\d+)?(?=\s?(?:ms|µs|us|ns)\b)|\d+\.\d+(?=\s?s\b))"
    r"|(?P<ulid>\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b)"
    r"|(?P<hex>(?<![0-9A-Za-z])[0-9a-f]{16,}(?![0-9A-Za-z]))"
)
_LONGEST_ID: Final = 64
_RANDOM: Final = re.compile(
    r"[A-Za-z0-9_-]*?(?=[A-Za-z0-9]*\d)(?=[A-Za-z0-9]*[A-Za-z])[A-Za-z0-9]{12,}"
)


class Comparison:
    """Compares with the names known so far. `ignored` are patterns of paths, as in a shell."""

    def __init__(self, names: Names, ignored: Sequence[str] = ()) -> None:
        self._names = names
        self._ignored = ignored

    def first(self, recorded: Any, now: Any, path: str = "") -> Difference | None:
        """The first difference, in the order of the recorded value; None for none."""
        if any(fnmatchcase(path, pattern) for pattern in self._ignored):
            return None
        if isinstance(recorded, dict) and isinstance(now, dict):
            members, others = cast("dict[str, Any]", recorded), cast("dict[str, Any]", now)
            return self._objects(members, others, path)
        if isinstance(recorded, list) and isinstance(now, list):
            return self._arrays(cast("list[Any]", recorded), cast("list[Any]", now), path)
        if isinstance(recorded, str) and isinstance(now, str):
            return None if self._same_text(recorded, now, path) else Difference(path, recorded, now)
        if isinstance(recorded, str) and MARK.fullmatch(recorded):
            return None  # a number that was a secret
        if type(cast("object", recorded)) is type(cast("object", now)) and recorded == now:
            return None
        numbers = _is_number(recorded) and _is_number(now)
        if numbers and is_time(path):
            return None
        return Difference(path, recorded, now)

    def _objects(
        self, recorded: dict[str, Any], now: dict[str, Any], path: str
    ) -> Difference | None:
        names = {name: self._key(name, now) for name in recorded}
        for name, value in recorded.items():
            inner = f"{path}.{name}" if path else name
            found = self.first(value, now.get(names[name], MISSING), inner)
            if found is not None:
                return found
        known = set(names.values())
        for name, value in now.items():
            inner = f"{path}.{name}" if path else name
            if name not in known and not any(fnmatchcase(inner, each) for each in self._ignored):
                return Difference(inner, MISSING, value)
        return None

    def _key(self, name: str, now: dict[str, Any]) -> str:
        """The member that stands for a recorded one: ids and secrets may be names as well."""
        if name in now:
            return name
        return next((other for other in now if self._same_text(name, other, "")), name)

    def _arrays(self, recorded: list[Any], now: list[Any], path: str) -> Difference | None:
        for index in range(max(len(recorded), len(now))):
            expected = recorded[index] if index < len(recorded) else MISSING
            got = now[index] if index < len(now) else MISSING
            found = self.first(expected, got, f"{path}[{index}]")
            if found is not None:
                return found
        return None

    def _same_text(self, recorded: str, now: str, path: str) -> bool:
        if recorded == now:
            return True
        pattern, ids = _pattern(recorded, path)
        match = pattern.fullmatch(now)
        if match is None:
            return _is_random(recorded, now, path) and self._names.bind(recorded, now)
        trial = self._names.copy()
        if not all(trial.bind(old, match[name]) for name, old in ids.items()):
            return False
        return all(self._names.bind(old, match[name]) for name, old in ids.items())


def _pattern(recorded: str, path: str) -> "tuple[re.Pattern[str], dict[str, str]]":
    """What a text of now must look like, and the recorded ids by the group they must stand in."""
    pieces: list[str] = []
    ids: dict[str, str] = {}
    position = 0
    digest = bool(_DIGEST_WORDS & set(_words(path)))
    for match in _PARTS.finditer(recorded):
        pieces.append(re.escape(recorded[position : match.start()]))
        position = match.end()
        kind, text = match.lastgroup, match[0]
        if kind == "mark":
            pieces.append(r"(?s:.*?)")
        elif kind == "iso":
            pieces.append(_ISO)
        elif kind == "took":
            pieces.append(r"\d+(?:\.\d+)?")
        elif kind == "hex" and digest:
            pieces.append(re.escape(text))
        else:
            name = f"g{len(ids)}"
            ids[name] = text
            shape = {"uuid": _UUID, "ulid": r"[0-9A-HJKMNP-TV-Z]{26}"}
            inner = shape.get(kind or "", rf"[0-9a-f]{{{len(text)}}}")
            pieces.append(f"(?P<{name}>{inner})")
    return re.compile("".join([*pieces, re.escape(recorded[position:])])), ids


def _is_random(recorded: str, now: str, path: str) -> bool:
    """Whether both look like ids that somebody made up, and stand where an id does."""
    words = _words(path)
    if not words or words[-1] not in _ID_WORDS or not len(recorded) == len(now) <= _LONGEST_ID:
        return False
    return bool(_RANDOM.fullmatch(recorded) and _RANDOM.fullmatch(now))


def is_time(path: str) -> bool:
    """Whether the member at `path` tells a time, a duration or a process, which are never twice."""
    words = _words(path)
    if not words or set(words) & _SETTINGS:
        return False
    return words[-1] in _TIME_WORDS


def _words(path: str) -> list[str]:
    """The words of the last member's name."""
    name = re.sub(r"(?:\[\d+\])+$", "", path).rpartition(".")[2]
    return [word.lower() for word in _WORDS.findall(name)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


Side = Literal["host", "plugin"]
