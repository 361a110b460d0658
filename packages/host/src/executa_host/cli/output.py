"""Standard output for people and for programs, and what happens when its reader has gone.

A reader that has seen enough (``| head``) is no error: what comes after is dropped, and the
command goes on to its clean end. One that would go on for ever asks `reader_gone`.
"""

import os
import re
import sys
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.text import Text

_UNSAFE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


_gone: set[int] = set()


def reader_gone() -> bool:
    """Whether nobody reads standard output any more, as far as the last write has shown."""
    return bool(_gone)


class Screen(Console):
    """A console that falls silent when nobody reads any more."""

    def print_json(self, json: str | None = None, *, data: Any = None, **_: Any) -> None:
        """JSON over several lines, in colour, and without what would move a cursor."""
        raw = msgspec.json.encode(data) if json is None else json.encode()
        text = harmless(msgspec.json.format(raw, indent=2).decode())
        self.print(JSONHighlighter()(Text(text)), soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Called by rich."""
        self.quiet = True
        silence(self.file.fileno())


def harmless(text: str) -> str:
    """Text from elsewhere as a terminal may see it: control characters as JSON escapes them."""
    plain = text.replace("\r\n", "\n")
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", plain)


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
    out = sys.stdout.fileno()
    os.dup2(nowhere, out if stream is None else stream)
    if stream in (None, out):
        _gone.add(out)
    os.close(nowhere)


def tell(text: str, style: str = "red") -> None:
    """A sentence for the person at the terminal, whoever reads standard output."""
    Screen(stderr=True).print(
        harmless(text), markup=False, highlight=False, style=style, soft_wrap=True
    )
