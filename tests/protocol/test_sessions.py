"""Durable sessions: legal moves, and what they show of their actions."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from executa_protocol import actions
from executa_protocol.actions import ActionState, MoveReason
from executa_protocol.moves import IllegalMove
from executa_protocol.sessions import ENDED, MOVES, Session, SessionState, check_move, view

S = SessionState
A = ActionState

# R-49, word for word.
RULING = {
    "new": "active, cancelled, failed",
    "active": "queued, processing, completed, cancelled, failed",
    "queued": "active, processing, cancelled, failed",
    "processing": "queued, streaming, waiting_for_human, active, completed, cancelled, failed",
    "streaming": "queued, processing, waiting_for_human, active, completed, cancelled, failed",
    "waiting_for_human": "queued, processing, streaming, active, cancelled, failed",
    "completed": "settled",
    "cancelled": "settled",
    "failed": "settled",
    "settled": "",
}


def test_the_table_is_the_ruling() -> None:
    as_text = {old.value: {new.value for new in after} for old, after in MOVES.items()}
    assert as_text == {old: set(filter(None, text.split(", "))) for old, text in RULING.items()}


@pytest.mark.parametrize(("old", "new"), list(product(S, S)))
def test_a_move_is_legal_or_refused_by_name(old: SessionState, new: SessionState) -> None:
    if new in MOVES[old]:
        check_move(old, new)
    else:
        with pytest.raises(IllegalMove, match=f"session: {old} -> {new}"):
            check_move(old, new)


def test_an_ended_session_never_works_again() -> None:
    reached = set(ENDED)
    for _ in S:
        reached |= {new for old in reached for new in MOVES[old]}
    assert reached == ENDED


def test_a_session_begins_new() -> None:
    assert Session("ses_1", "alice", "host", 0).state is S.NEW


@pytest.mark.parametrize(
    ("states", "shown"),
    [
        ([], S.ACTIVE),
        ([A.COMPLETED, A.FAILED, A.CANCELLED, A.EXPIRED, A.DEAD_LETTERED], S.ACTIVE),
        ([A.ACCEPTED], S.QUEUED),
        ([A.QUEUED], S.QUEUED),
        ([A.QUEUED, A.RUNNING], S.PROCESSING),
        ([A.CANCELLING, A.QUEUED], S.PROCESSING),
        ([A.RUNNING, A.STREAMING, A.QUEUED], S.STREAMING),
        ([A.STREAMING, A.PENDING_APPROVAL], S.WAITING_FOR_HUMAN),
        ([A.COMPLETED, A.ACCEPTED], S.QUEUED),
    ],
)
def test_a_session_shows_its_most_advanced_open_action(
    states: list[ActionState], shown: SessionState
) -> None:
    assert view(states) is shown


@given(st.lists(st.sampled_from(A)))
def test_what_is_shown_depends_on_neither_order_nor_number(states: list[ActionState]) -> None:
    assert view(states) is view(reversed(states)) is view(states * 2)
    assert view(states) not in ENDED


class Work(RuleBasedStateMachine):
    """A session with several actions that each make one legal move at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.actions: list[ActionState] = []
        self.shown = S.ACTIVE

    @rule()
    def accept(self) -> None:
        self.actions.append(A.ACCEPTED)
        self.show()

    @precondition(lambda self: bool(self.actions))
    @rule(
        index=st.integers(0, 20),
        new=st.sampled_from(A),
        reason=st.sampled_from([None, "retry", "denied"]),
    )
    def move(self, index: int, new: ActionState, reason: MoveReason | None) -> None:
        index %= len(self.actions)
        try:
            actions.check_move(self.actions[index], new, reason)
        except IllegalMove:
            return
        self.actions[index] = new
        self.show()

    def show(self) -> None:
        shown = view(self.actions)
        if shown is not self.shown:
            check_move(self.shown, shown)
            self.shown = shown

    @invariant()
    def it_can_be_closed(self) -> None:
        assert {S.CANCELLED, S.FAILED} <= MOVES[self.shown]


TestWork = Work.TestCase
TestWork.settings = settings(max_examples=100, stateful_step_count=60, deadline=None)
