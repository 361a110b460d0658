"""Answers as the OpenAPI document tells them, where a struct cannot be told as it is.

msgspec writes defaults into a schema and cannot write one that is raw JSON. These are the
same structs, with the same names, whose raw members have no default; nothing decodes or
encodes with them.
"""

from typing import Any, Final

from msgspec import UNSET, Raw, UnsetType, field

from executa_host.actions import interface, records
from executa_host.api import shapes


def _no_default() -> Raw:
    return Raw(b"{}")


class Chunk(records.ChunkRecord, frozen=True):
    __doc__ = records.ChunkRecord.__doc__

    data: Raw = field(default_factory=_no_default)


class EventRecord(records.EventRecord, frozen=True, omit_defaults=True, kw_only=True):
    __doc__ = records.EventRecord.__doc__

    chunk: Chunk | UnsetType = UNSET


class EventPage(interface.EventPage, frozen=True):
    __doc__ = interface.EventPage.__doc__

    events: tuple[EventRecord, ...]
    cursor: str
    ended: bool = False


class ActionView(records.ActionView, frozen=True, omit_defaults=True):
    __doc__ = records.ActionView.__doc__

    chunks: tuple[Chunk, ...] | UnsetType = UNSET


class ResumedAnswer(shapes.ResumedAnswer, frozen=True, omit_defaults=True):
    __doc__ = shapes.ResumedAnswer.__doc__

    replay: EventPage | UnsetType = UNSET


AS_TOLD: Final[dict[Any, Any]] = {
    interface.EventPage: EventPage,
    records.ActionView: ActionView,
    shapes.ResumedAnswer: ResumedAnswer,
}
"""What is told in place of a struct that is answered."""
