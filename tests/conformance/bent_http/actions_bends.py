"""For each check of durable work, a runtime that it must catch."""

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from executa_protocol.sse import SseEvent
from tests.conformance.bent_http.makers import (
    Codes,
    OpenDoor,
    Terse,
    answering,
    asking,
    framing,
)
from tests.conformance.bent_http.relay import Answered, Bend, Members, Passing, Relay, members


def _records(value: object) -> Iterable[Members]:
    """Every record of an action in an answer."""
    held = members(value)
    if "action" in held:
        yield members(held["action"])
    for one in cast("list[Any]", held.get("records", [])):
        yield members(one)


def records(change: Callable[[Members], Any], path: str = "*") -> Callable[[], Bend]:
    """Every record of an action is changed."""

    def changed(body: Members) -> None:
        for record in _records(body):
            change(record)

    return answering(path, changed)


def outcomes(change: Callable[[Members], Any]) -> Callable[[], Bend]:
    """The result in an answer is changed, where there is one."""
    return answering("*", lambda it: change(it["result"]) if it.get("result") else None)


def logs(change: Callable[[list[Any]], Any]) -> Callable[[], Bend]:
    """The events of pages are changed, in place."""
    return answering("/events", lambda it: change(it["events"]) if it.get("events") else None)


def pieces(change: Callable[[list[Any]], Any]) -> Callable[[], Bend]:
    """The chunks of an action are changed, in place."""
    return answering("*", lambda it: change(it["chunks"]) if it.get("chunks") else None)


def sessions(change: Callable[[Members], Any]) -> Callable[[], Bend]:
    """The session in an answer is changed."""
    return answering("*", lambda it: change(it["session"]) if "session" in it else None)


class Query(Bend):
    """Words of queries are read otherwise."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def ask(self, passing: Passing) -> Answered | None:
        words = [one for one in passing.query.split("&") if one.split("=")[0] not in self._names]
        passing.query = "&".join(words)
        return None


class AsksTwice(Bend):
    """Each submission is made twice: the idempotency key is not heeded."""

    def ask(self, passing: Passing) -> Answered | None:
        if passing.path.endswith("/actions") and passing.method == "POST":
            passing.change(lambda it: it.pop("idempotency_key", None))
        return None


class SharedKeys(Bend):
    """An idempotency key is one for all capabilities."""

    def __init__(self) -> None:
        self._first: dict[str, bytes] = {}

    def answer(self, passing: Passing, answered: Answered) -> None:
        key = passing.members.get("idempotency_key")
        if key:
            answered.body = self._first.setdefault(str(key), answered.body)


class Repeats(Bend):
    """Of a stream every event is sent, whatever was seen before."""

    def ask(self, passing: Passing) -> Answered | None:
        passing.headers.pop("Last-Event-ID", None)
        return None


class Slow(Bend):
    """Results are given only with the next question."""

    def ask(self, passing: Passing) -> Answered | None:
        if passing.path.endswith("/result"):
            passing.query = ""
        return None


class CancelsWithClients(Bend):
    """A client that goes takes its action with it."""

    async def more(self, passing: Passing, relay: Relay) -> None:
        if passing.path.endswith("/events"):
            url = f"{relay.target}{passing.path.removesuffix('events')}cancel"
            headers = {"Authorization": f"Bearer {passing.bearer}"}
            async with relay.client.post(url, json={}, headers=headers) as response:
                await response.read()


class Runs(Bend):
    """Approvals are given by the runtime itself."""

    async def more(self, passing: Passing, relay: Relay) -> None:
        if passing.path.endswith(("/cancel", "/deny")):
            submit = passing.path.split("/actions/")[0] + "/actions"
            body = {
                "capability": "conformance.count",
                "input": {"name": self.name},
                "mode": "sync",
            }
            headers = {"Authorization": f"Bearer {passing.bearer}"}
            url = f"{relay.target}{submit}"
            async with relay.client.post(url, json=body, headers=headers) as response:
                await response.read()

    name = ""

    def ask(self, passing: Passing) -> Answered | None:
        given = members(passing.members.get("input"))
        self.name = str(given.get("name", self.name))
        return None


class Echoes(Bend):
    """Answers repeat the resume tokens that were seen."""

    def __init__(self) -> None:
        self._seen: list[str] = []

    def ask(self, passing: Passing) -> Answered | None:
        self._seen += [str(passing.members.get("resume_token", ""))]
        return None

    def answer(self, passing: Passing, answered: Answered) -> None:
        answered.change(lambda it: it.update(seen=list(self._seen)))


class KeepsTokens(Bend):
    """A resume token stays what it was."""

    def answer(self, passing: Passing, answered: Answered) -> None:
        given = passing.members.get("resume_token")
        if given:
            answered.change(lambda it: it.update(resume_token=given))


class NewTokens(Bend):
    """Every resume gives a token of its own."""

    def __init__(self) -> None:
        self._number = 0

    def answer(self, passing: Passing, answered: Answered) -> None:
        self._number += 1
        number = self._number
        answered.change(
            lambda it: (
                it.update(resume_token=f"{it['resume_token']}{number}")
                if "resume_token" in it
                else None
            )
        )


class Reopens(Bend):
    """What is cancelled is cancelled, also when it had ended."""

    def __init__(self) -> None:
        self._cancelled: set[str] = set()

    def ask(self, passing: Passing) -> Answered | None:
        if passing.path.endswith("/cancel"):
            self._cancelled.add(passing.path.split("/")[-2])
        return None

    def answer(self, passing: Passing, answered: Answered) -> None:
        def change(body: Members) -> None:
            for record in _records(body):
                if record.get("action_id") in self._cancelled:
                    record["state"] = "cancelled"

        answered.change(change)


class Unstable(Bend):
    """Lists begin anew with every page."""

    def ask(self, passing: Passing) -> Answered | None:
        words = [one for one in passing.query.split("&") if not one.startswith("cursor=")]
        passing.query = "&".join(words)
        return None


class LosesLive(Bend):
    """Followers are told of states alone."""

    def event(self, passing: Passing, event: SseEvent) -> Iterable[bytes]:
        return [] if event.type == "chunk" else super().event(passing, event)


def _wrong_output(result: Members) -> None:
    result["output"] = "something"


def _unfinished(events: list[Any]) -> None:
    events[:] = [event for event in events if event.get("state") not in ("completed", "failed")]


def _swap(events: list[Any]) -> None:
    events.reverse()


_SAME: Final = {"resume_token": "t" * 43}

BENDS: Final[dict[str, Callable[[], Bend]]] = {
    "ACTN-001": records(lambda it: it.update(action_id=f"job-{it['action_id']}")),
    "ACTN-002": records(lambda it: it.update(mode="whatever")),
    "ACTN-003": logs(_swap),
    "ACTN-004": Reopens,
    "ACTN-005": records(lambda it: it.update(state="expired")),
    "ACTN-006": outcomes(_wrong_output),
    "ACTN-007": outcomes(lambda it: it.pop("error", None)),
    "ACTN-008": AsksTwice,
    "ACTN-009": OpenDoor,
    "ACTN-010": SharedKeys,
    "ACTN-011": OpenDoor,
    "ACTN-012": answering("/actions", lambda it: it.pop("result", None)),
    "ACTN-014": answering("*", lambda it: members(it.get("capability")).update(effect="read")),
    "ACTN-015": OpenDoor,
    "ACTN-016": OpenDoor,
    "ACTN-017": Unstable,
    "ACTN-018": lambda: Query("state"),
    "ACTN-019": answering("*", lambda it: it.pop("receipts", None)),
    "ACTN-020": Slow,
    "ACTN-021": records(lambda it: it.pop("cancellation", None)),
    "ACTN-022": records(lambda it: it.update(attempt=2)),
    "ACTN-023": Runs,
    "ACTN-024": outcomes(lambda it: it.update(status="completed")),
    "ACTN-025": Runs,
    "ACTN-026": OpenDoor,
    "ACTN-028": records(lambda it: it.pop("redrive_of", None)),
    "ACTN-029": answering(
        "*", lambda it: [one.update(previous="") for one in it.get("receipts", [])]
    ),
    "ACTN-030": outcomes(lambda it: it["output"].update(number=float(it["output"]["number"]))),
    "ACTN-031": OpenDoor,
    "ACTN-032": Terse,
    "ACTN-033": Codes,
    "ACTN-034": outcomes(lambda it: it.update(status="failed")),
    "ACTN-035": OpenDoor,
    "EVNT-001": pieces(lambda it: it.pop(1)),
    "EVNT-002": pieces(lambda it: it.pop()),
    "EVNT-003": pieces(lambda it: [one.pop("attempt") for one in it]),
    "EVNT-004": logs(lambda it: it.pop() if len(it) == 2 else None),
    "EVNT-005": framing(lambda it: [] if it.get("state") == "queued" else None),
    "EVNT-006": Repeats,
    "EVNT-007": OpenDoor,
    "EVNT-008": CancelsWithClients,
    "EVNT-009": logs(lambda it: it.remove(it[-1])),
    "EVNT-011": logs(_unfinished),
    "EVNT-012": LosesLive,
    "SESS-001": sessions(lambda it: it.update(session_id="s-1")),
    "SESS-002": sessions(lambda it: it.update(responder=it["initiator"])),
    "SESS-003": answering("/handshake", lambda it: it.update(_SAME)),
    "SESS-004": KeepsTokens,
    "SESS-005": OpenDoor,
    "SESS-006": NewTokens,
    "SESS-007": OpenDoor,
    "SESS-009": asking("/resume", lambda it: it.pop("after", None)),
    "SESS-010": OpenDoor,
    "SESS-011": Echoes,
    "SESS-012": sessions(lambda it: it.update(state="active")),
    "SESS-013": OpenDoor,
    "SESS-014": OpenDoor,
}
"""By the requirement of the check."""
