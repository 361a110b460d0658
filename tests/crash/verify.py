"""A file held against what the outside world saw of it.

Each promise is a function that gives sentences; none of them means that it was kept.
"""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from executa_host.actions.faults import ActionsError, Code
from executa_host.actions.operations import Stored
from executa_host.actions.sqlite import SqliteStore
from executa_host.actions.store import Marker
from executa_protocol.actions import TERMINAL, ActionState
from executa_protocol.chunks import ChunkKind
from tests.crash import journal
from tests.crash.plugins import ATTEMPTS, MUTATING

Facts = list[dict[str, Any]]


async def verify(folder: Path, *, finished: bool) -> list[str]:
    """Everything that was promised and not kept. `finished`: a life has ended everything."""
    facts = journal.read(folder / "journal.jsonl")
    async with await SqliteStore.open(folder / "a.db") as store:
        findings = [f"check: {each}" for each in await store.check()]
        findings += [each async for each in _actions(store, facts, finished=finished)]
        findings += _runs(facts)
        findings += _keys(facts)
        findings += [each async for each in _events(store, facts)]
        if finished:
            findings += _callbacks(facts)
    findings += _tokens(facts)
    return findings


def of(facts: Facts, what: str) -> Iterator[dict[str, Any]]:
    """The facts of one kind."""
    return (fact for fact in facts if fact["what"] == what)


async def _actions(store: SqliteStore, facts: Facts, *, finished: bool) -> AsyncIterator[str]:
    ended = {fact["action"]: fact["state"] for fact in of(facts, "ended")}
    runs = {(fact["action"], fact["attempt"]): fact for fact in of(facts, "answer")}
    emitted: dict[tuple[str, int], int] = Counter(
        (fact["action"], fact["attempt"]) for fact in of(facts, "chunk")
    )
    for action_id in {fact["action"] for fact in of(facts, "accepted")}:
        found = await store.action(action_id)
        if found is None:
            yield f"{action_id} was accepted and is lost"
        if not isinstance(found, Stored):
            continue
        state = found.record.state
        if action_id in ended and ended[action_id] != state:
            yield f"{action_id} had ended as {ended[action_id]} and is {state}"
        if finished and state not in TERMINAL:
            yield f"{action_id} never ended: it is {state}"
        shown: dict[int, list[int]] = defaultdict(list)
        for chunk in await store.chunks(action_id, 0, 1000):
            if chunk.kind is ChunkKind.DATA:
                shown[chunk.attempt].append(int(bytes(chunk.data)))
        for attempt, numbers in shown.items():
            if numbers != list(range(len(numbers))):
                yield f"{action_id}: attempt {attempt} has chunks {numbers}"
            if len(numbers) > emitted[action_id, attempt]:
                yield f"{action_id}: attempt {attempt} has chunks that nobody emitted"
        last = runs.get((action_id, found.record.attempt))
        if state is ActionState.COMPLETED and last is not None:
            kept = len(shown[found.record.attempt])
            if kept != last["shown"]:
                yield f"{action_id}: {last['shown']} chunks were shown and {kept} are kept"


def _runs(facts: Facts) -> Iterator[str]:
    runs = list(of(facts, "run"))
    by_action = Counter(fact["action"] for fact in runs)
    tools = {fact["action"]: fact["tool"] for fact in runs}
    for action_id, count in by_action.items():
        allowed = 1 if tools[action_id] in MUTATING else ATTEMPTS
        if count > allowed:
            yield f"{action_id} of {tools[action_id]} ran {count} times"
    attempts = Counter((fact["action"], fact["attempt"]) for fact in runs)
    yield from (f"{each} ran twice" for each, count in attempts.items() if count > 1)
    denied = {fact["action"] for fact in of(facts, "decided") if not fact["approved"]}
    yield from (f"{each} was denied and ran" for each in denied & by_action.keys())


def _keys(facts: Facts) -> Iterator[str]:
    owners: dict[str, set[str]] = defaultdict(set)
    for fact in of(facts, "accepted"):
        if fact["key"]:
            owners[fact["key"]].add(fact["action"])
    for key, actions in owners.items():
        if len(actions) > 1:
            yield f"key {key} has {len(actions)} actions"


async def _events(store: SqliteStore, facts: Facts) -> AsyncIterator[str]:
    seen: dict[str, dict[str, Any]] = defaultdict(dict)
    for fact in of(facts, "event"):
        before = seen[fact["subject"]].setdefault(fact["cursor"], fact["is_"])
        if before != fact["is_"]:
            yield f"{fact['subject']}: {fact['cursor']} was {before} and then {fact['is_']}"
    for subject, events in seen.items():
        found = await (
            store.action(subject) if subject.startswith("act_") else store.session(subject)
        )
        if isinstance(found, Marker):
            continue
        kept: dict[str, Any] = {}
        after = ""
        try:
            while True:
                page = await store.events(subject, after, 1000)
                for event in page.events:
                    chunk = event.chunk.sequence if event.chunk else 0
                    kept[event.cursor] = [
                        event.type, event.action_id, event.state, event.attempt, chunk,
                    ]  # fmt: skip
                after = page.cursor
                if not page.events:
                    break
        except ActionsError as refused:
            if refused.code is not Code.CURSOR_GONE:
                yield f"{subject}: its log cannot be read: {refused}"
            continue
        for cursor, event in events.items():
            if kept.get(cursor) != event:
                yield f"{subject}: {cursor} was seen as {event} and is {kept.get(cursor)}"


def _callbacks(facts: Facts) -> Iterator[str]:
    wanted = sum(fact["callback"] and not fact["replayed"] for fact in of(facts, "accepted"))
    arrived = len({fact["delivery"] for fact in of(facts, "callback")})
    if arrived < wanted:
        yield f"{wanted} callbacks were promised and {arrived} arrived"


def _tokens(facts: Facts) -> Iterator[str]:
    """Each token was used by one attempt at most, whatever happened in between."""
    used = Counter(fact["old"] for fact in of(facts, "resumed"))
    yield from (f"a resume token was used {n} times" for n in used.values() if n > 1)
    given = Counter(fact["token"] for fact in of(facts, "resumed"))
    yield from (f"a resume token was given {n} times" for n in given.values() if n > 1)
