"""`--record FILE`, on every command that runs a plugin: one option, one way to begin and end."""

import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from executa_host.transcripts.recorder import Recorder

Record = Annotated[
    Path | None,
    Parameter(help="Record every frame and event to this file, secrets left out; see `show`."),
]


@contextmanager
def recording(path: Path | None, *, append: bool = False) -> Generator[Recorder | None]:
    """A recorder for `Host(recorder=...)`, closed at the end; None without a path.

    With `append` a transcript that is there goes on. Raises `UsageError` if the file cannot
    be had; a recording that failed later is told on stderr, and harms nothing else.
    """
    if path is None:
        yield None
        return
    recorder = Recorder(path, append=append, command=("executa", *sys.argv[1:]))
    try:
        yield recorder
    finally:
        finish(recorder)


def finish(recorder: Recorder, parts: Iterable[Path] = ()) -> None:
    """Close a recorder, with transcripts of child processes as further parts of it."""
    recorder.close(parts)
    if recorder.fault:
        Console(stderr=True).print(recorder.fault, style="yellow", markup=False, highlight=False)
