"""What was typed, kept between runs for the arrow keys; lines with a secret are not.

A file in the user's state folder that only the user can read, bounded when it is opened.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from prompt_toolkit.history import FileHistory

from executa_host.cli.stores import state_folder
from executa_host.transcripts.redaction import Redactor, is_secret_name
from executa_host.transcripts.secrets import Secrets

KEPT: Final = 1000
"""Lines that are kept from one run to the next."""

_NAME: Final = re.compile(r"[\w.-]+(?=\"?\s*:?=|\"\s*:)")
_ENTRY: Final = "\n# "


def history_file() -> Path:
    """The file of this user, in a folder that exists."""
    folder = state_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "dev-history"


class Screening:
    """Tells lines that hold a secret: by a name in them, by its form, or one of `values`."""

    def __init__(self, values: Mapping[str, str]) -> None:
        known = Secrets()
        for name, value in values.items():
            known.add(name, value)
        self._redactor = Redactor(known)

    def holds_secret(self, line: str) -> bool:
        """Whether this line is better forgotten."""
        named = any(map(is_secret_name, _NAME.findall(line)))
        return named or self._redactor.text(line) != line


class CleanHistory(FileHistory):
    """The history of one file. `values` are credentials that were given, by name."""

    def __init__(self, path: Path, values: Mapping[str, str]) -> None:
        self._screening = Screening(values)
        path.touch(mode=0o600, exist_ok=True)
        path.chmod(0o600)
        _shorten(path)
        super().__init__(path)

    def store_string(self, string: str) -> None:
        """Called by prompt_toolkit for each line that was entered."""
        if not self._screening.holds_secret(string):
            super().store_string(string)


def _shorten(path: Path) -> None:
    """Keep the newest entries. Another run may be reading: it is replaced in one step."""
    text = path.read_text(encoding="utf-8", errors="replace")
    entries = text.split(_ENTRY)
    if len(entries) <= 2 * KEPT:
        return
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_text(_ENTRY + _ENTRY.join(entries[-KEPT:]), encoding="utf-8")
    fresh.replace(path)
