"""Which files make a plugin, and when they change.

Only what looks like source counts: a plugin that writes data beside itself must not start
itself anew by that.
"""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Final

from watchfiles import (
    Change,
    DefaultFilter,
    awatch,  # pyright: ignore[reportUnknownVariableType] - it also takes an event of trio
)

SOURCES: Final = frozenset({
    ".c", ".cc", ".cjs", ".cpp", ".cs", ".go", ".h", ".java", ".js", ".kt", ".lua", ".mjs", ".mod",
    ".php", ".pl", ".py", ".pyi", ".rb", ".rs", ".sh", ".swift", ".toml", ".ts", ".tsx", ".zig",
})  # fmt: skip
"""Endings of files that are source."""

_DESCRIPTIONS: Final = frozenset({"executa.json", "package.json", "manifest.json"})
_QUIET_MS: Final = 50
_MOST_MS: Final = 400


class Source(DefaultFilter):
    """Lets through changes of source, of what describes a plugin, and of its program."""

    def __init__(self, programs: Sequence[Path]) -> None:
        super().__init__()
        self._programs = {str(path) for path in programs}

    def __call__(self, change: Change, path: str) -> bool:
        """Asked by watchfiles about each change."""
        file = Path(path)
        known = file.suffix in SOURCES or file.name in _DESCRIPTIONS or path in self._programs
        return known and super().__call__(change, path)


def watched(words: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """The folders to watch for what was typed, and the programs among its words.

    Without words it is the working directory; a command whose words name no file has none.
    """
    paths = [Path(word) for word in words or (".",)]
    if len(paths) == 1 and paths[0].is_dir():
        return [paths[0].resolve()], []
    files = [path.resolve() for path in paths if path.is_file()]
    # An interpreter is given by its path as well, and does not change under the hand.
    own = [file for file in files if file.suffix in SOURCES] or files[:1]
    return sorted({file.parent for file in own}), own


async def changes(folders: Sequence[Path], programs: Sequence[Path]) -> AsyncGenerator[list[Path]]:
    """What changed, each time that something did; files that were saved together come together."""
    watching = awatch(*folders, watch_filter=Source(programs), step=_QUIET_MS, debounce=_MOST_MS)
    async for found in watching:
        yield sorted(Path(path) for _, path in found)
