"""What the engine in memory keeps its events in, and its check of scopes."""

import asyncio

from msgspec import structs

from executa_host.actions import faults
from executa_host.actions.faults import Code
from executa_host.actions.interface import EventPage
from executa_host.actions.records import EventRecord
from executa_host.actions.requests import Caller, Scope


def need(caller: Caller, scope: Scope) -> None:
    """Refuse a caller without a scope."""
    if scope not in caller.scopes and Scope.ADMIN not in caller.scopes:
        raise faults.Forbidden(Code.FORBIDDEN, f"the key lacks the scope {scope}")


class Log:
    """One log of events, and its wake-up."""

    def __init__(self) -> None:
        self.events: list[EventRecord] = []
        self.grown = asyncio.Event()
        self.ended = False

    def add(self, event: EventRecord) -> None:
        self.events.append(structs.replace(event, cursor=f"c{len(self.events) + 1}"))
        self.grown.set()
        self.grown = asyncio.Event()

    def after(self, cursor: str, limit: int) -> EventPage:
        if cursor and not (cursor.startswith("c") and cursor[1:].isdecimal()):
            raise faults.Invalid(Code.CURSOR_INVALID, "no cursor of this log", path="after")
        start = int(cursor[1:]) if cursor else 0
        if start > len(self.events):
            raise faults.Invalid(Code.CURSOR_AHEAD, "a cursor of the future", path="after")
        found = tuple(self.events[start : start + limit])
        head = found[-1].cursor if found else cursor
        return EventPage(found, head, self.ended and start + len(found) == len(self.events))
