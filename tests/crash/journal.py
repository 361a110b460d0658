"""What the outside world saw, written so that it survives the process that saw it.

One line a fact, appended by one `write`. A process that is killed leaves what it wrote: only a
power cut would not. It knows no store: it is what a store is held against.
"""

import os
from pathlib import Path
from typing import Any

import msgspec


class Journal:
    """Facts, in the order in which they were seen."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, what: str, **facts: Any) -> None:
        """Write a fact down. When this returns, it is seen."""
        os.write(self._descriptor, msgspec.json.encode({"what": what, **facts}) + b"\n")

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


def read(path: Path) -> list[dict[str, Any]]:
    """All facts so far."""
    if not path.exists():
        return []
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
