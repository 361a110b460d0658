"""Exit codes of the `executa` command; stable, documented, the same for every subcommand."""

from typing import Final

OK: Final = 0
FAILED: Final = 1
"""A tool failed, or a step of a demo did not do what it should."""
USAGE: Final = 2
"""The command line, or a file that it names, is wrong."""
BROKEN: Final = 3
"""A plugin could not be started, or ended before it answered."""
REFUSED: Final = 4
"""The host or nexus refused."""
INTERRUPTED: Final = 130
"""Ctrl-C, as shells count it."""


class Stop(Exception):
    """Ends the command with a sentence for a person and a code for a program."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
