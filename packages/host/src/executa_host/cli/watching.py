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
    told: object = codec.decode_any(event.chunk.data)
    members = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
    done, total = members.get("progress"), members.get("total")
    if isinstance(done, int | float) and isinstance(total, int | float) and total > 0:
        bar.update(task, completed=float(done), total=float(total))
    elif isinstance(done, int | float) and 0 <= done <= 1:
        bar.update(task, completed=float(done), total=1.0)
    message = members.get("message")
    if isinstance(message, str) and message:
        bar.update(task, description=clean(message)[:60])
    return True


def _print(event: EventRecord, console: Console) -> None:
    if isinstance(event.chunk, UnsetType) or event.chunk.kind not in _NOT_SHOWN:
        console.print(event_line(event), soft_wrap=True)
