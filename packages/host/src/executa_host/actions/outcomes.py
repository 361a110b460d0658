"""What the end of an attempt means for its action: the rules of R-45, R-47 and R-54. Pure.

::

    ended        effect          what becomes of the action
    ---------    -----------     ----------------------------------------------------------
    answered     any             completed or failed; failed and worth a retry: retried, if
                                 the effect is read or idempotent and attempts are left
    refused      any             the same; the plugin never heard of it
    timed_out    repeatable      retried while attempts are left, else expired
                 mutating        dead letter, outcome unknown; expired if never written
    lost         repeatable      retried while attempts are left, else dead letter
                 mutating        dead letter, outcome unknown; failed if never written
    any, while   any             completed or failed if the answer came; cancelled if that was
    cancelling                   confirmed; else dead letter, outcome unknown
"""

from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from executa_host.actions.operations import Terms
from executa_host.actions.records import (
    ActionError,
    ActionState,
    CancelOutcome,
    DeadLetter,
    Retry,
)
from executa_host.actions.runner import Ended
from executa_protocol.actions import EXPIRED_ERROR, cancel_outcome, state_after_cancel


class Verdict(Struct, frozen=True, kw_only=True):
    """What to do. `state` ``queued`` is a retry, after `delay_ms`."""

    state: ActionState
    error: ActionError | UnsetType = UNSET
    delay_ms: int = 0
    dead_letter: DeadLetter | UnsetType = UNSET
    cancelled: CancelOutcome | UnsetType = UNSET


LOST: Final = ActionError(
    "CONNECTION_LOST", "the plugin was lost before it answered", retryable=True
)
CRASHED: Final = ActionError(
    "HOST_CRASHED", "the host stopped while the action ran", retryable=True
)
TIMED_OUT: Final = ActionError(
    "TIMED_OUT", "the attempt took longer than its limit", retryable=True
)
UNCONFIRMED: Final = ActionError(
    "CANCEL_UNCONFIRMED", "nobody knows whether the cancelled action had its effect"
)


def judge(
    ended: Ended,
    terms: Terms,
    attempt: int,
    *,
    cancelling: bool,
    now_ms: int,
    expires_at_ms: int,
    jitter: float,
) -> Verdict:
    """What becomes of an action whose attempt has ended. `jitter` is from 0 to 1."""
    if cancelling:
        return _cancelled(ended, terms, attempt)
    if ended.kind == "answered" and isinstance(ended.error, UnsetType):
        return Verdict(state=ActionState.COMPLETED)
    error = _error_of(ended)
    if terms.effect.repeatable and error.retryable and attempt < terms.max_attempts:
        delay = backoff(terms.retry, attempt, jitter)
        if not expires_at_ms or now_ms + delay < expires_at_ms:
            return Verdict(state=ActionState.QUEUED, error=error, delay_ms=delay)
        return Verdict(state=ActionState.EXPIRED, error=EXPIRED_ERROR)
    if ended.kind in ("answered", "refused", "cancelled"):
        return Verdict(state=ActionState.FAILED, error=error)
    if ended.kind == "timed_out":
        if terms.effect.repeatable or not ended.written:
            return Verdict(state=ActionState.EXPIRED, error=EXPIRED_ERROR)
        return _dead("timed_out", error, attempt, unknown=True)
    if terms.effect.repeatable:
        return _dead("attempts_exhausted", error, attempt, unknown=False)
    if not ended.written:
        return Verdict(state=ActionState.FAILED, error=error)
    return _dead("connection_lost", error, attempt, unknown=True)


def after_crash(state: ActionState, terms: Terms, attempt: int) -> Verdict:
    """What becomes of an action that a crash found `running`, `streaming` or `cancelling`."""
    if state is ActionState.CANCELLING:
        # It was written, for all that is known, and nobody will hear an answer any more.
        return _cancelled(Ended(kind="lost", error=CRASHED), terms, attempt)
    if terms.effect.repeatable and attempt < terms.max_attempts:
        return Verdict(state=ActionState.QUEUED, error=CRASHED)
    if terms.effect.repeatable:
        return _dead("attempts_exhausted", CRASHED, attempt, unknown=False)
    return _dead("host_crashed", CRASHED, attempt, unknown=True)


def backoff(retry: Retry, attempt: int, jitter: float) -> int:
    """Milliseconds before the attempt after `attempt`; half of them at least."""
    whole = min(retry.max_ms, retry.base_ms * 2 ** min(attempt - 1, 30))
    return int(whole * (0.5 + jitter / 2))


def _error_of(ended: Ended) -> ActionError:
    if not isinstance(ended.error, UnsetType):
        return ended.error
    return TIMED_OUT if ended.kind == "timed_out" else LOST


def _cancelled(ended: Ended, terms: Terms, attempt: int) -> Verdict:
    answered = ended.kind == "answered"
    outcome = cancel_outcome(
        answered=answered,
        acknowledged=ended.acknowledged or ended.kind == "refused",
        written=ended.written,
        effect=terms.effect,
    )
    success = answered and isinstance(ended.error, UnsetType)
    state = state_after_cancel(outcome, success=success)
    if state is not ActionState.DEAD_LETTERED:
        return Verdict(state=state, error=ended.error if answered else UNSET, cancelled=outcome)
    letter = DeadLetter(
        reason="cancel_unconfirmed", outcome_unknown=True, attempts=attempt, last_error=UNCONFIRMED
    )
    return Verdict(state=state, error=UNCONFIRMED, dead_letter=letter, cancelled=outcome)


def _dead(reason: str, error: ActionError, attempt: int, *, unknown: bool) -> Verdict:
    if unknown:  # what may have had its effect is not for anybody to just try again
        error = msgspec.structs.replace(error, retryable=False)
    letter = DeadLetter(
        reason=reason,  # type: ignore[arg-type] - one of its words
        outcome_unknown=unknown,
        attempts=attempt,
        last_error=error,
    )
    return Verdict(state=ActionState.DEAD_LETTERED, error=error, dead_letter=letter)
