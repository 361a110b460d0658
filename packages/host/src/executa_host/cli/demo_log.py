"""Whether a log that was read in pieces is the whole log: no event missing, none twice.

What was followed over a crash is compared with the log as the store has it now, and the
numbers of the chunks with what R-44 promises.
"""

from collections.abc import Iterator, Sequence

from msgspec import UnsetType

from executa_host.actions.records import EventRecord
from executa_protocol.chunks import Chunk, check_append
from executa_protocol.errors import UsageError


def faults_in(seen: Sequence[EventRecord], whole: Sequence[EventRecord]) -> list[str]:
    """What is wrong with `seen`, which must be the beginning of `whole`; empty if nothing is."""
    return [*_cursor_faults(seen, whole), *_chunk_faults(seen)]


def _cursor_faults(seen: Sequence[EventRecord], whole: Sequence[EventRecord]) -> Iterator[str]:
    cursors = [event.cursor for event in seen]
    stored = [event.cursor for event in whole[: len(seen)]]
    if repeats := len(cursors) - len(set(cursors)):
        yield f"{repeats} events came twice"
    if missing := len(set(stored) - set(cursors)):
        yield f"{missing} events are missing"
    if unknown := len(set(cursors) - {event.cursor for event in whole}):
        yield f"{unknown} events are not in the log"
    if cursors != stored and sorted(cursors) == sorted(stored):
        yield "events came in another order than they have in the log"


def _chunk_faults(seen: Sequence[EventRecord]) -> Iterator[str]:
    """The chunks of each action follow each other as R-44 has it."""
    last: dict[str, Chunk] = {}
    for event in seen:
        if not isinstance(event.chunk, UnsetType):
            try:
                check_append(last.get(event.action_id), event.chunk)
            except UsageError as fault:
                yield str(fault)
            last[event.action_id] = event.chunk
