"""`--record FILE`, on every command that runs a plugin: one option, one way to begin and end."""

import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from executa_host.cli.output import tell
from executa_host.transcripts.recorder import Recorder

Record = Annotated[
    Path | None,
    Parameter(help="Record every frame and event to this file, secrets left out; see `show`."),
]


@contextmanager
def recording(
    path: Path | None, *, append: bool = False, parts: Iterable[Path] = ()
) -> Generator[Recorder | None]:
    """A recorder for `Host(recorder=...)`, closed at the end; None without a path.

    With `append` a transcript that is there goes on. `parts` are transcripts of child processes,
    which become further parts of this one. Raises `UsageError` if the file cannot
    be had; a recording that failed later is told on stderr, and harms nothing else.
    """
    if path is None:
        yield None
        return
    recorder = Recorder(path, append=append, command=("executa", *sys.argv[1:]))
    try:
        yield recorder
    finally:
        recorder.close(parts)
        if recorder.fault:
            tell(recorder.fault, style="yellow")
