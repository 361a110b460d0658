"""Any sequence of operations leaves a store as a simple model says, and every invariant whole.

The model is a few dictionaries that know the rulings and no SQL (R-40 to R-53).
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)
from msgspec import Raw

from executa_host.actions.endings import move
from executa_host.actions.faults import ActionsError, Code
from executa_host.actions.operations import (
    CloseSession,
    Piece,
    Rotated,
    Settle,
    Stored,
)
from executa_host.actions.records import ActionState, SessionRecord, SessionState
from executa_host.actions.sqlite import SqliteStore
from executa_host.actions.store import Marker
from executa_protocol.actions import MOVES, TERMINAL
from executa_protocol.chunks import ChunkKind
from executa_protocol.sessions import ENDED, view
from tests.actions.samples import AT, accept, open_session, to, token
from tests.actions.store_contract_sessions import prune, rotate

S = ActionState
NONE = ""
NOTHING: Any = multiple()  # pyright: ignore[reportUnknownVariableType]
"""What a rule adds to its bundle when nothing came of it."""


class Action:
    """What the model knows of an action."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.state = S.ACCEPTED
        self.fence = 0
        self.attempt = 1
        self.events = 1
        self.chunks = 0


class Session:
    """What the model knows of a session."""

    def __init__(self) -> None:
        self.closed: SessionState | None = None
        self.used = False


class StoreMachine(RuleBasedStateMachine):
    """One store and its model. Time moves by steps of a second."""

    actions = Bundle("actions")
    sessions = Bundle("sessions")
    tokens = Bundle("tokens")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.now = AT
        self.model: dict[str, Action] = {}
        self.gone: set[str] = set()
        self.known_sessions: dict[str, Session] = {}
        self.keys: dict[str, tuple[str, bytes]] = {}
        self.names = 0
        self.store: SqliteStore

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    async def _apply(self, *operations: Any) -> list[Any]:
        """Apply operations at the same time; answers or refusals."""
        work = [self.store.apply(operation) for operation in operations]
        return await asyncio.gather(*work, return_exceptions=True)

    @initialize()
    def open(self) -> None:
        path = Path(self.folder.name) / "a.db"
        self.store = self.run(SqliteStore.open(path, synchronous="NORMAL", readers=1))

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.run(self.store.close())
        self.runner.close()
        self.folder.cleanup()

    # --- Actions ------------------------------------------------------------------------------

    @rule(
        target=actions,
        session_id=st.one_of(st.just(NONE), sessions),
        key=st.sampled_from([NONE, "k1", "k2"]),
        text=st.sampled_from([b"a", b"b"]),
    )
    def accept(self, session_id: str, key: str, text: bytes) -> Any:
        self.now += 1000
        given = Raw(b'{"text":"' + text + b'"}')
        made = accept(given, idempotency_key=key, session_id=session_id, at_ms=self.now)
        (answer,) = self.run(self._apply(made))
        session = self.known_sessions.get(session_id)
        if session is not None and session.closed:
            assert answer.code in (Code.SESSION_ENDED, Code.UNKNOWN_SESSION)  # or removed
            return NOTHING
        if key in self.keys:
            action_id, before = self.keys[key]
            if before != text:
                assert answer.code is Code.IDEMPOTENCY_CONFLICT
            elif action_id in self.gone:
                assert answer.code is Code.REMOVED
            else:
                assert (answer.action_id, answer.replayed) == (action_id, True)
            return NOTHING
        assert (answer.action_id, answer.replayed) == (made.action_id, False)
        self.model[made.action_id] = Action(session_id)
        if session is not None:
            session.used = True
        if key:
            self.keys[key] = (made.action_id, text)
        return made.action_id

    @rule(ids=st.lists(actions, min_size=1, max_size=6), data=st.data())
    def move_some(self, ids: list[str], data: st.DataObject) -> None:
        """Moves of several actions at once, some of them of the same one."""
        self.now += 1000
        made: list[Any] = []
        for action_id in ids:
            found = self.run(self.store.action(action_id))
            if not isinstance(found, Stored) or found.record.state in TERMINAL:
                continue
            target = data.draw(st.sampled_from(sorted(MOVES[found.record.state])), "state")
            made.append((action_id, target, to(found, target, at_ms=self.now)))
        answers = self.run(self._apply(*(each[2] for each in made)))
        winners: set[str] = set()
        for (action_id, target, operation), answer in zip(made, answers, strict=True):
            if action_id in winners:
                assert not answer.won
                continue
            assert answer.won
            winners.add(action_id)
            self._moved(self.model[action_id], target, operation)

    def _moved(self, action: Action, target: ActionState, operation: Any) -> None:
        action.fence += operation.claim
        action.attempt += target is S.QUEUED and action.state is not S.ACCEPTED
        action.state = target
        action.events += len(operation.steps)
        action.chunks += sum(isinstance(step, Piece) for step in operation.steps)

    @rule(action_id=actions, count=st.integers(1, 3))
    def append(self, action_id: str, count: int) -> None:
        found = self.run(self.store.action(action_id))
        if not isinstance(found, Stored) or found.record.state in TERMINAL:
            return
        made = move(found, "chunk", self.now, *[Piece(ChunkKind.DATA)] * count)
        (answer,) = self.run(self._apply(made))
        assert answer.won
        action = self.model[action_id]
        action.events += count
        action.chunks += count

    # --- Sessions and tokens --------------------------------------------------------------------

    @rule(target=sessions)
    def open_session(self) -> str:
        self.names += 1
        name = f"t{self.names}"
        session = self.run(open_session(self.store, token=token(name), at_ms=self.now))
        self.known_sessions[session.session_id] = Session()
        return session.session_id

    @rule(session_id=sessions, outcome=st.sampled_from(["completed", "cancelled", "failed"]))
    def close_session(self, session_id: str, outcome: str) -> None:
        session = self.known_sessions[session_id]
        before = self.run(self.store.session(session_id))
        close = CloseSession(at_ms=self.now, session_id=session_id, outcome=SessionState(outcome))
        (answer,) = self.run(self._apply(close))
        if isinstance(before, Marker) or before is None:
            assert isinstance(answer, ActionsError)
        elif session.closed:
            same = session.closed == outcome
            assert isinstance(answer, SessionRecord) is same
        elif isinstance(answer, ActionsError):
            assert answer.code is Code.ILLEGAL_MOVE
            assert outcome == "completed"
            assert before.state in (SessionState.QUEUED, SessionState.WAITING_FOR_HUMAN)
        else:
            session.closed = SessionState(outcome)

    @rule()
    def settle(self) -> None:
        self.now += 1000
        self.run(self._apply(Settle(at_ms=self.now, closed_before_ms=self.now)))

    @rule(target=tokens, session_id=sessions)
    def token_of(self, session_id: str) -> str:
        """The first token of a session, by the order in which they were opened."""
        return f"t{list(self.known_sessions).index(session_id) + 1}"

    @rule(target=tokens, name=consumes(tokens), attempts=st.sampled_from([1, 3]))
    def resume(self, name: str, attempts: int) -> Any:
        """Racers with one token; at most one of them gets the next."""
        self.names += 1
        made = [rotate(name, f"{self.names}.{n}", self.now) for n in range(attempts)]
        answers = self.run(self._apply(*made))
        won = [answer for answer in answers if isinstance(answer, Rotated)]
        assert len(won) <= 1
        return f"{name}+" if won else NOTHING

    # --- The end ----------------------------------------------------------------------------------

    @rule(back=st.integers(0, 20), keep=st.sampled_from([2, 10**6]))
    def prune(self, back: int, keep: int) -> None:
        """Keys are kept for ever here: their end is tested elsewhere."""
        made = prune(self.now, self.now - back * 1000, keep, 3)
        made.key_outlives_ms = made.marker_age_ms = 10**12
        (removed,) = self.run(self._apply(made))
        ended = [each for each, action in self.model.items() if action.state in TERMINAL]
        assert removed.actions <= len(ended)
        for action_id in ended:
            if isinstance(self.run(self.store.action(action_id)), Marker):
                self.gone.add(action_id)
                del self.model[action_id]

    @rule()
    def reopen(self) -> None:
        self.run(self.store.close())
        self.open()

    # --- What always holds --------------------------------------------------------------------

    @invariant()
    def every_invariant_of_the_file_holds(self) -> None:
        if hasattr(self, "store"):
            assert self.run(self.store.check()) == []

    @invariant()
    def the_store_is_what_the_model_says(self) -> None:
        if not hasattr(self, "store"):
            return
        for action_id, action in self.model.items():
            found = self.run(self.store.action(action_id))
            assert isinstance(found, Stored)
            record = found.record
            assert (record.state, found.fence, record.attempt, record.cursor, record.chunks) == (
                action.state,
                action.fence,
                action.attempt,
                f"a{action.events}",
                action.chunks,
            )
        for session_id, session in self.known_sessions.items():
            found = self.run(self.store.session(session_id))
            if isinstance(found, SessionRecord):
                own = [a.state for a in self.model.values() if a.session_id == session_id]
                still_open = [state for state in own if state not in TERMINAL]
                assert found.open_actions == len(still_open)
                assert (found.state in ENDED) == bool(session.closed)
                if not session.closed and session.used:
                    assert found.state is view(still_open)


StoreMachine.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much),
)
TestStoreMachine = StoreMachine.TestCase
