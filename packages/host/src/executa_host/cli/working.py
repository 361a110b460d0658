"""What a person sees while something runs: a spinner with the time, and the plugin's progress.

Written to stderr, so that standard output holds the answer alone. Where stderr is no terminal
progress is lines; for a program there is neither.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, cast

from msgspec import Raw
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from executa_host.cli.output import Screen
from executa_host.cli.timeline import clean
from executa_protocol import codec, transcript
from executa_protocol.errors import DecodeFailure
from executa_protocol.transcript import AnyEvent

_NOTE_CHARS: Final = 60
_NOTES: Final = ("note", "message", "text")


class Working:
    """Says what is going on. `on_progress` takes an invoke's progress, `trace` a host's events."""

    def __init__(self, console: Console, bar: Progress | None, *, quiet: bool) -> None:
        self.console = console
        self._bar = bar
        self._task: Any = None if bar is None else bar.add_task("", total=None)
        self._quiet = quiet
        self._what = ""
        self.findings: list[transcript.Noise] = []
        """What the plugin did that it should not have done."""

    def on(self, what: str) -> None:
        """It is doing something else now."""
        self._what = what
        self._show(what)

    def on_progress(self, event: Raw) -> None:
        """A progress event of the plugin."""
        if self._quiet:
            return
        note = progress_text(event)
        if self._bar is None:
            self.console.print(f"… {note}", style="dim", markup=False)
        else:
            self._show(f"{self._what}: {note}")

    def trace(self, event: AnyEvent) -> None:
        """An event of the host: what the plugin writes to stderr, and what is odd about it."""
        if isinstance(event, transcript.Noise):
            self.findings.append(event)
        if self._quiet:
            return
        if isinstance(event, transcript.Stderr):
            self.console.print(indented(event.line), style="dim", markup=False, soft_wrap=True)
        elif isinstance(event, transcript.Noise):
            self.console.print(odd(event), style="yellow", markup=False, soft_wrap=True)

    def _show(self, text: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, description=text[:_NOTE_CHARS])


@contextmanager
def working(*, quiet: bool = False) -> Generator[Working]:
    """Shows what runs in the block."""
    console = Screen(stderr=True, highlight=False)
    if quiet or not console.is_terminal:
        yield Working(console, None, quiet=quiet)
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    with bar:
        yield Working(console, bar, quiet=False)


def indented(line: str) -> str:
    """A line of a plugin's stderr: cleaned, but tracebacks keep their shape."""
    text = line.expandtabs(4)
    return " " * (len(text) - len(text.lstrip(" "))) + clean(text)


def odd(event: transcript.Noise) -> str:
    """What was odd, with the line concerned."""
    if event.kind == "unreadable":
        return f"not a message on stdout: {clean(event.sample)}"
    return (
        f"{clean(event.message)}: {clean(event.sample)}" if event.sample else clean(event.message)
    )


def progress_text(event: Raw) -> str:
    """A progress event as a person reads it: how much of how much, and a note."""
    try:
        value: object = codec.decode_any(event)
    except DecodeFailure:
        return clean(bytes(event).decode(errors="replace"))
    told = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    inner: object = told.get("data", told)
    data = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    done, total = data.get("done"), data.get("total")
    words: list[str] = []
    if isinstance(done, int | float):
        words.append(f"{done:g} of {total:g}" if isinstance(total, int | float) else f"{done:g}")
    words += [data[name] for name in _NOTES if isinstance(data.get(name), str)]
    return clean(" ".join(words) or bytes(event).decode(errors="replace"))
