"""What the end of an attempt means: R-45 and R-47 as a table."""

import itertools

import pytest

from executa_host.actions.operations import Terms
from executa_host.actions.outcomes import after_crash, backoff, judge
from executa_host.actions.records import ActionError, ActionState, Effect, Mode, Retry
from executa_host.actions.runner import Ended
from executa_protocol.actions import CancelOutcome

S = ActionState


def terms(effect: Effect, attempts: int = 3) -> Terms:
    return Terms(
        mode=Mode.ASYNC, effect=effect, user_id="local", timeout_ms=1, max_attempts=attempts
    )


ANSWERED = Ended(kind="answered")
FAILED = Ended(kind="answered", error=ActionError("E", "e"))
WORTH_A_RETRY = Ended(kind="answered", error=ActionError("E", "e", retryable=True))
REFUSED = Ended(kind="refused", error=ActionError("E", "e"), written=False)

# ended, what becomes of it with attempts left, and at the last attempt; read, then mutating.
TABLE: list[tuple[str, Ended, tuple[S, S], tuple[S, S]]] = [
    ("answered", ANSWERED, (S.COMPLETED, S.COMPLETED), (S.COMPLETED, S.COMPLETED)),
    ("failed", FAILED, (S.FAILED, S.FAILED), (S.FAILED, S.FAILED)),
    ("failed, retryable", WORTH_A_RETRY, (S.QUEUED, S.FAILED), (S.FAILED, S.FAILED)),
    ("refused", REFUSED, (S.FAILED, S.FAILED), (S.FAILED, S.FAILED)),
    (
        "timed out",
        Ended(kind="timed_out"),
        (S.QUEUED, S.EXPIRED),
        (S.DEAD_LETTERED, S.DEAD_LETTERED),
    ),
    (
        "timed out, never written",
        Ended(kind="timed_out", written=False),
        (S.QUEUED, S.EXPIRED),
        (S.EXPIRED, S.EXPIRED),
    ),
    (
        "lost",
        Ended(kind="lost"),
        (S.QUEUED, S.DEAD_LETTERED),
        (S.DEAD_LETTERED, S.DEAD_LETTERED),
    ),
    (
        "lost, never written",
        Ended(kind="lost", written=False),
        (S.QUEUED, S.DEAD_LETTERED),
        (S.FAILED, S.FAILED),
    ),
    (
        "cancelled though nobody asked",
        Ended(kind="cancelled", error=ActionError("CANCELLED", "c"), acknowledged=True),
        (S.FAILED, S.FAILED),
        (S.FAILED, S.FAILED),
    ),
]
CASES = [
    (name, ended, effect, attempt, expected)
    for name, ended, repeatable, mutating in TABLE
    for effect, pair in (
        (Effect.READ, repeatable),
        (Effect.IDEMPOTENT, repeatable),
        (Effect.MUTATING, mutating),
    )
    for attempt, expected in zip((1, 3), pair, strict=True)
]


@pytest.mark.parametrize(
    ("ended", "effect", "attempt", "expected"),
    [case[1:] for case in CASES],
    ids=[f"{case[0]}-{case[2]}-{case[3]}" for case in CASES],
)
def test_the_end_of_an_attempt(
    ended: Ended, effect: Effect, attempt: int, expected: ActionState
) -> None:
    verdict = judge(
        ended,
        terms(effect),
        attempt,
        cancelling=False,
        now_ms=0,
        expires_at_ms=0,
        jitter=0.5,
    )
    assert verdict.state is expected
    unknown = expected is S.DEAD_LETTERED and effect is Effect.MUTATING
    if expected is S.DEAD_LETTERED:
        assert verdict.dead_letter
        assert verdict.dead_letter.outcome_unknown is unknown
        assert verdict.dead_letter.attempts == attempt


def test_a_retry_that_would_come_too_late_is_none() -> None:
    for ended in (Ended(kind="lost"), Ended(kind="timed_out"), WORTH_A_RETRY):
        verdict = judge(
            ended,
            terms(Effect.READ),
            1,
            cancelling=False,
            now_ms=1000,
            expires_at_ms=1500,
            jitter=1.0,
        )
        assert verdict.state is S.EXPIRED


@pytest.mark.parametrize(
    ("ended", "effect", "outcome", "state"),
    [
        (ANSWERED, Effect.MUTATING, CancelOutcome.COMPLETED_FIRST, S.COMPLETED),
        (FAILED, Effect.MUTATING, CancelOutcome.COMPLETED_FIRST, S.FAILED),
        (
            Ended(kind="cancelled", acknowledged=True),
            Effect.MUTATING,
            CancelOutcome.CONFIRMED,
            S.CANCELLED,
        ),
        (
            Ended(kind="cancelled", written=False),
            Effect.MUTATING,
            CancelOutcome.CONFIRMED,
            S.CANCELLED,
        ),
        (REFUSED, Effect.MUTATING, CancelOutcome.CONFIRMED, S.CANCELLED),
        (
            Ended(kind="cancelled"),
            Effect.MUTATING,
            CancelOutcome.NEEDS_RECONCILIATION,
            S.DEAD_LETTERED,
        ),
        (
            Ended(kind="cancelled"),
            Effect.IDEMPOTENT,
            CancelOutcome.NEEDS_RECONCILIATION,
            S.DEAD_LETTERED,
        ),
        (Ended(kind="cancelled"), Effect.READ, CancelOutcome.CONFIRMED, S.CANCELLED),
        (
            Ended(kind="lost"),
            Effect.MUTATING,
            CancelOutcome.NEEDS_RECONCILIATION,
            S.DEAD_LETTERED,
        ),
        (
            Ended(kind="timed_out"),
            Effect.IDEMPOTENT,
            CancelOutcome.NEEDS_RECONCILIATION,
            S.DEAD_LETTERED,
        ),
    ],
)
def test_the_end_of_a_cancelled_attempt(
    ended: Ended, effect: Effect, outcome: CancelOutcome, state: ActionState
) -> None:
    verdict = judge(ended, terms(effect), 1, cancelling=True, now_ms=0, expires_at_ms=0, jitter=0)
    assert (verdict.cancelled, verdict.state) == (outcome, state)


@pytest.mark.parametrize(
    ("effect", "attempt", "state", "expected"),
    [
        (Effect.READ, 1, S.RUNNING, S.QUEUED),
        (Effect.IDEMPOTENT, 2, S.STREAMING, S.QUEUED),
        (Effect.READ, 3, S.RUNNING, S.DEAD_LETTERED),
        (Effect.MUTATING, 1, S.RUNNING, S.DEAD_LETTERED),
        (Effect.MUTATING, 1, S.STREAMING, S.DEAD_LETTERED),
        (Effect.MUTATING, 1, S.CANCELLING, S.DEAD_LETTERED),
        (Effect.IDEMPOTENT, 1, S.CANCELLING, S.DEAD_LETTERED),
        (Effect.READ, 1, S.CANCELLING, S.CANCELLED),
    ],
)
def test_what_a_crash_leaves(
    effect: Effect, attempt: int, state: ActionState, expected: ActionState
) -> None:
    assert after_crash(state, terms(effect), attempt).state is expected


def test_pauses_double_up_to_a_limit_and_are_never_less_than_half() -> None:
    retry = Retry(attempts=9, base_ms=100, max_ms=1000)
    assert [backoff(retry, attempt, 1.0) for attempt in range(1, 7)] == [
        100, 200, 400, 800, 1000, 1000,
    ]  # fmt: skip
    for attempt, jitter in itertools.product((1, 5, 1000), (0.0, 0.3, 1.0)):
        whole = backoff(retry, attempt, 1.0)
        assert whole / 2 <= backoff(retry, attempt, jitter) <= whole
