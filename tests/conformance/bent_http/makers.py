"""Bends from functions, and those that both HTTP sides have in common."""

import json
from collections.abc import Callable, Iterable
from typing import Any, cast

from executa_protocol.sse import SseEvent, encode_event
from tests.conformance.bent_http.relay import Answered, Bend, Members, Passing, decoded, members

Change = Callable[[Members], Any]


def answering(path: str, change: Change) -> Callable[[], Bend]:
    """Answers to requests whose path ends like this are changed."""

    class Changed(Bend):
        def answer(self, passing: Passing, answered: Answered) -> None:
            if passing.path.endswith(path) or path == "*":
                answered.change(change)

    return Changed


def asking(path: str, change: Change) -> Callable[[], Bend]:
    """Bodies of requests whose path ends like this are changed."""

    class Changed(Bend):
        def ask(self, passing: Passing) -> Answered | None:
            if passing.path.endswith(path):
                passing.change(change)
            return None

    return Changed


def swallowing(method: str, path: str, body: Any, status: int = 200) -> Callable[[], Bend]:
    """Requests whose path holds this are answered, and not passed on."""

    class Swallowed(Bend):
        def ask(self, passing: Passing) -> Answered | None:
            if passing.method == method and path in passing.path:
                return Answered(status, json.dumps(body).encode(), "application/json")
            return None

    return Swallowed


def framing(change: Callable[[Members], Any]) -> Callable[[], Bend]:
    """The events of streams are changed; a list that comes back is streamed in their place."""

    class Changed(Bend):
        def event(self, passing: Passing, event: SseEvent) -> Iterable[bytes]:
            value = members(decoded(event.data))
            changed = change(value)
            told = cast("list[Any]", changed) if isinstance(changed, list) else [value]
            kind = "" if event.type == "message" else event.type
            return [
                one
                if isinstance(one, bytes)
                else encode_event(json.dumps(one).encode(), event=kind, event_id=event.id)
                for one in told
            ]

    return Changed


class OpenDoor(Bend):
    """Nothing is refused."""

    def answer(self, passing: Passing, answered: Answered) -> None:
        if answered.status >= 400:
            answered.status, answered.body = 200, b"{}"
            answered.kind = "application/json"


class Codes(Bend):
    """Every refusal has the same code."""

    def answer(self, passing: Passing, answered: Answered) -> None:
        answered.change(
            lambda it: it["error"].update(code=-1, errorCode="X") if "error" in it else 0
        )


class Terse(Bend):
    """Refusals say nothing."""

    def answer(self, passing: Passing, answered: Answered) -> None:
        if answered.status >= 400:
            answered.body = b'{"detail":"no"}'


class Failing(Bend):
    """Whatever is sent that is no JSON breaks the server."""

    def answer(self, passing: Passing, answered: Answered) -> None:
        if answered.status in (400, 422):
            answered.status = 500
