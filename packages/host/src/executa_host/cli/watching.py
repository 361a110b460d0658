"""Following in a terminal: lines of what happened, and below them what is happening.

Owns the live part: a spinner with the state, or a bar where progress has numbers. Where the
output is no terminal there are lines alone.
"""

from collections.abc import AsyncIterator
from typing import Any, Final, cast

from msgspec import UnsetType
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from executa_host.actions.records import EventRecord
from executa_host.cli.action_views import event_line
from executa_host.cli.timeline import clean
from executa_protocol import codec
from executa_protocol.chunks import ChunkKind

_NOTE_CHARS: Final = 60
_NOT_SHOWN: Final = frozenset({ChunkKind.END})


async def watch(events: AsyncIterator[EventRecord], console: Console) -> None:
    """Show every event until the log ends."""
    if not console.is_terminal:
        async for event in events:
            _print(event, console)
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task("waiting", total=None)
        async for event in events:
            if event.state:
                bar.update(task, description=event.state)
            if not _advance(bar, task, event):
                _print(event, console)


def _advance(bar: Progress, task: Any, event: EventRecord) -> bool:
    """Move the bar by an event that is about progress; whether it was one."""
    if isinstance(event.chunk, UnsetType) or event.chunk.kind is not ChunkKind.PROGRESS:
        return False
    told = _object(codec.decode_any(event.chunk.data))
    data = _object(told.get("data", told))
    done, total = data.get("done"), data.get("total")
    if isinstance(done, int | float):
        known = float(total) if isinstance(total, int | float) and total > 0 else None
        bar.update(task, completed=float(done), total=known)
    note = data.get("note")
    if isinstance(note, str) and note:
        bar.update(task, description=clean(note)[:_NOTE_CHARS])
    return True


def _print(event: EventRecord, console: Console) -> None:
    if isinstance(event.chunk, UnsetType) or event.chunk.kind not in _NOT_SHOWN:
        console.print(event_line(event), soft_wrap=True)


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
