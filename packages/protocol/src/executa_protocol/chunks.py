"""Chunks: what an action shows before its result, in an order that survives reconnects.

Owns the rules of R-44 for both sides: what may be appended, and what a follower makes
of duplicates, holes and earlier attempts. It does not know where chunks are stored or
how they travel.
"""

from enum import StrEnum
from typing import Final

from msgspec import Raw, Struct, field

from executa_protocol.errors import DecodeFailure, UsageError


class ChunkKind(StrEnum):
    """What a chunk tells (R-44)."""

    DATA = "data"
    PROGRESS = "progress"
    TOOL = "tool"
    PREVIEW = "preview"
    PENDING_APPROVAL = "pending_approval"
    ERROR = "error"
    END = "end"


OUTPUT: Final = frozenset({ChunkKind.DATA, ChunkKind.TOOL, ChunkKind.PREVIEW})
"""Kinds that a later attempt makes again: a follower forgets those of earlier ones."""

FIRST_SEQUENCE: Final = 1


def _no_data() -> Raw:
    return Raw(b"{}")


class Chunk(Struct, frozen=True):
    """One chunk. `sequence` counts from 1 per action, over all its attempts.

    `at_ms` is epoch milliseconds.
    """

    action_id: str
    sequence: int
    attempt: int
    kind: ChunkKind
    at_ms: int
    data: Raw = field(default_factory=_no_data)  # a raw default could not stand in a schema


def check_append(last: Chunk | None, new: Chunk) -> None:
    """Check that `new` may follow `last`, the action's latest chunk (None: it has none).

    Raises `UsageError`: a gap or repeat in the sequence, a step back in attempts, or
    anything after the end.
    """
    expected = FIRST_SEQUENCE if last is None else last.sequence + 1
    if new.sequence != expected:
        msg = f"chunk {new.sequence} of {new.action_id} where {expected} is due"
        raise UsageError(msg)
    if last is None:
        return
    if new.action_id != last.action_id:
        msg = f"a chunk of {new.action_id} among those of {last.action_id}"
        raise UsageError(msg)
    if last.kind is ChunkKind.END:
        msg = f"chunk {new.sequence} of {new.action_id} comes after its end"
        raise UsageError(msg)
    if new.attempt < last.attempt:
        msg = f"chunk {new.sequence} of {new.action_id} is of an earlier attempt"
        raise UsageError(msg)


class ChunkFollower:
    """What a consumer knows while chunks arrive, perhaps more than once.

    `cursor` is the last sequence taken: the one to reconnect after. `attempt` is the
    one whose output counts; when it rises, what an earlier one put out is void.
    """

    __slots__ = ("attempt", "cursor", "ended")

    def __init__(self, cursor: int = 0) -> None:
        self.cursor = cursor
        self.attempt = 0
        self.ended = False

    def take(self, chunk: Chunk) -> bool:
        """Whether the chunk is new. Raises `DecodeFailure` for a hole, which no duplicate is."""
        if chunk.sequence <= self.cursor:
            return False
        if chunk.sequence != self.cursor + 1 or self.ended:
            what = "after its end" if self.ended else f"after chunk {self.cursor}"
            msg = f"chunk {chunk.sequence} of {chunk.action_id} came {what}"
            raise DecodeFailure(msg, path="sequence")
        self.cursor = chunk.sequence
        self.attempt = max(self.attempt, chunk.attempt)
        self.ended = chunk.kind is ChunkKind.END
        return True
