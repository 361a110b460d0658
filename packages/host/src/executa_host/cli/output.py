"""Standard output for people and for programs, and what happens when its reader has gone.

A reader that has seen enough (``| head``) is no error: what comes after is dropped, and the
command goes on to its clean end.
"""

import os
import sys
from typing import Any

import msgspec
from rich.console import Console


class Screen(Console):
    """A console that falls silent when nobody reads any more."""

    def on_broken_pipe(self) -> None:
        """Called by rich."""
        self.quiet = True
        silence(self.file.fileno())


def write_line(line: bytes) -> None:
    """One line of output for a program, at once."""
    try:
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        silence()


def write_json(document: dict[str, Any]) -> None:
    """One JSON object on a line."""
    write_line(msgspec.json.encode(document))


def silence(stream: int | None = None) -> None:
    """Let the rest of a stream, standard output by default, go nowhere, buffers included."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno() if stream is None else stream)
    os.close(nowhere)


def tell(text: str, style: str = "red") -> None:
    """A sentence for the person at the terminal, whoever reads standard output."""
    Screen(stderr=True).print(text, markup=False, highlight=False, style=style, soft_wrap=True)
