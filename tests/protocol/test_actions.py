"""What an action is made of: states and moves, cancellation and results."""

from itertools import product
from typing import get_args

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec import Raw

from executa_protocol.actions import (
    EXPIRED_ERROR,
    MOVES,
    TERMINAL,
    UNKNOWN,
    ActionError,
    ActionResult,
    ActionState,
    CancelOutcome,
    Effect,
    Mode,
    MoveReason,
    ResultStatus,
    cancel_outcome,
    check_move,
    result_status,
    state_after_cancel,
)
from executa_protocol.moves import IllegalMove

S = ActionState
REASONS: tuple[MoveReason | None, ...] = (None, *get_args(MoveReason))

# R-41, word for word.
RULING = {
    "accepted": "queued, cancelling, failed, expired",
    "queued": "running, cancelling, expired, dead_lettered",
    "running": "streaming, pending_approval, cancelling, completed, failed, expired, "
    "dead_lettered, queued",
    "streaming": "completed, failed, cancelling, pending_approval, expired, dead_lettered, queued",
    "pending_approval": "running, cancelling, failed, expired",
    "cancelling": "cancelled, completed, failed, dead_lettered",
    "completed": "",
    "failed": "",
    "cancelled": "",
    "expired": "",
    "dead_lettered": "",
}


def test_the_table_is_the_ruling() -> None:
    as_text = {old.value: {new.value for new in after} for old, after in MOVES.items()}
    assert as_text == {old: set(filter(None, text.split(", "))) for old, text in RULING.items()}


def needed(old: ActionState, new: ActionState) -> set[MoveReason | None]:
    """The reasons with which the ruling allows a move; none if it does not."""
    if new not in MOVES[old]:
        return set()
    if new is S.QUEUED and old in (S.RUNNING, S.STREAMING):
        return {"recovery", "retry"}
    if (old, new) == (S.PENDING_APPROVAL, S.FAILED):
        return {"denied"}
    return {None}


@pytest.mark.parametrize(("old", "new"), list(product(S, S)))
def test_each_move_is_legal_with_exactly_the_reasons_that_the_ruling_names(
    old: ActionState, new: ActionState
) -> None:
    for reason in REASONS:
        if reason in needed(old, new):
            assert check_move(old, new, reason) == (reason in ("recovery", "retry"))
        else:
            with pytest.raises(IllegalMove, match=f"action: {old} -> {new}"):
                check_move(old, new, reason)


def test_the_terminal_states_are_the_seeds() -> None:
    assert {S.COMPLETED, S.FAILED, S.CANCELLED, S.EXPIRED, S.DEAD_LETTERED} == TERMINAL


def test_unknown_is_an_answer_and_no_state() -> None:
    assert UNKNOWN not in set(S)


def test_every_state_can_be_reached() -> None:
    reached = {S.ACCEPTED}
    for _ in S:
        reached |= {new for old in reached for new in MOVES[old]}
    assert reached == set(S)


class Life(RuleBasedStateMachine):
    """One action that anybody tries to move anywhere, against a model of its history."""

    def __init__(self) -> None:
        super().__init__()
        self.history = [S.ACCEPTED]
        self.attempt = 1
        self.requeues = 0

    @rule(new=st.sampled_from(S), reason=st.sampled_from(REASONS))
    def move(self, new: ActionState, reason: MoveReason | None) -> None:
        old = self.history[-1]
        try:
            self.attempt += check_move(old, new, reason)
        except IllegalMove:
            return
        self.requeues += old is not S.ACCEPTED and new is S.QUEUED
        self.history.append(new)

    @invariant()
    def attempts_count_the_requeues(self) -> None:
        assert self.attempt == self.requeues + 1

    @invariant()
    def nothing_follows_a_terminal_state(self) -> None:
        assert not TERMINAL.intersection(self.history[:-1])

    @invariant()
    def nothing_completes_that_never_ran(self) -> None:
        if self.history[-1] is S.COMPLETED:
            assert {S.RUNNING, S.CANCELLING}.intersection(self.history)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=100, deadline=None)


def test_modes_and_effects_are_the_rulings() -> None:
    assert set(Mode) == {"sync", "async", "streaming"}
    assert [effect for effect in Effect if effect.repeatable] == ["read", "idempotent"]


# --- Cancellation ----------------------------------------------------------------------

C = CancelOutcome


@pytest.mark.parametrize(
    ("answered", "acknowledged", "written", "effect", "outcome"),
    [
        (True, False, True, Effect.MUTATING, C.COMPLETED_FIRST),
        (True, True, True, Effect.READ, C.COMPLETED_FIRST),
        (False, True, True, Effect.MUTATING, C.CONFIRMED),
        (False, False, False, Effect.MUTATING, C.CONFIRMED),
        (False, False, True, Effect.READ, C.CONFIRMED),
        (False, False, True, Effect.IDEMPOTENT, C.NEEDS_RECONCILIATION),
        (False, False, True, Effect.MUTATING, C.NEEDS_RECONCILIATION),
    ],
)
def test_a_cancellation_ends_as_the_ruling_says(
    answered: bool, acknowledged: bool, written: bool, effect: Effect, outcome: CancelOutcome
) -> None:
    got = cancel_outcome(
        answered=answered, acknowledged=acknowledged, written=written, effect=effect
    )
    assert got is outcome


def test_each_outcome_is_stored_as_a_state_that_cancelling_leads_to() -> None:
    assert state_after_cancel(C.CONFIRMED) is S.CANCELLED
    assert state_after_cancel(C.COMPLETED_FIRST) is S.COMPLETED
    assert state_after_cancel(C.COMPLETED_FIRST, success=False) is S.FAILED
    assert state_after_cancel(C.NEEDS_RECONCILIATION) is S.DEAD_LETTERED
    for outcome in C:
        check_move(S.CANCELLING, state_after_cancel(outcome))


# --- Results ---------------------------------------------------------------------------

R = ResultStatus


@pytest.mark.parametrize(
    ("state", "status"),
    [
        (S.COMPLETED, R.COMPLETED),
        (S.FAILED, R.FAILED),
        (S.CANCELLED, R.CANCELLED),
        (S.PENDING_APPROVAL, R.PENDING_APPROVAL),
        (S.EXPIRED, R.FAILED),
        (S.DEAD_LETTERED, R.FAILED),
        (S.ACCEPTED, None),
        (S.QUEUED, None),
        (S.RUNNING, None),
        (S.STREAMING, None),
        (S.CANCELLING, None),
    ],
)
def test_each_state_has_the_result_of_the_ruling(
    state: ActionState, status: ResultStatus | None
) -> None:
    assert result_status(state) is status
    if state is not S.DEAD_LETTERED:
        assert result_status(state, outcome_unknown=True) is status


def test_a_dead_letter_of_unknown_outcome_requires_a_human() -> None:
    assert result_status(S.DEAD_LETTERED, outcome_unknown=True) is R.REQUIRES_HUMAN


def test_a_result_is_written_without_what_it_does_not_have() -> None:
    done = ActionResult("act_1", R.COMPLETED, Raw(b'{"n":1}'))
    assert msgspec.json.encode(done) == (
        b'{"action_id":"act_1","status":"completed","output":{"n":1}}'
    )
    failed = ActionResult("act_1", R.FAILED, error=EXPIRED_ERROR)
    assert msgspec.json.decode(msgspec.json.encode(failed)) == {
        "action_id": "act_1",
        "status": "failed",
        "error": {"code": "EXPIRED", "message": EXPIRED_ERROR.message},
    }


def test_a_result_is_read_back_equal() -> None:
    error = ActionError("TOOL_FAILED", "no", retryable=True, path="input.q", data={"n": 1})
    result = ActionResult("act_1", R.CANCELLED, error=error, cancellation=C.CONFIRMED)
    assert msgspec.json.decode(msgspec.json.encode(result), type=ActionResult) == result
