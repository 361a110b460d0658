"""What an action is made of: states, modes, effects, cancellation and results.

Owns the vocabulary of seed actions-and-sessions and its rulings (R-41, R-45, R-52,
R-54) as types and tables. Storing actions, running them and deciding when to retry is
the host's business; ids are in `ids`, chunks in `chunks`, receipts in `receipts`.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from executa_protocol.moves import IllegalMove


class ActionState(StrEnum):
    """How far an action is (seed actions-and-sessions, Lifecycle)."""

    ACCEPTED = "accepted"
    QUEUED = "queued"
    RUNNING = "running"
    STREAMING = "streaming"
    PENDING_APPROVAL = "pending_approval"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    DEAD_LETTERED = "dead_lettered"


UNKNOWN: Final = "unknown"
"""The answer about an action that is not there or not to be seen; never a stored state."""

_S = ActionState

MOVES: Final[Mapping[ActionState, frozenset[ActionState]]] = MappingProxyType(
    {
        _S.ACCEPTED: frozenset({_S.QUEUED, _S.CANCELLING, _S.FAILED, _S.EXPIRED}),
        _S.QUEUED: frozenset({_S.RUNNING, _S.CANCELLING, _S.EXPIRED, _S.DEAD_LETTERED}),
        _S.RUNNING: frozenset(
            {
                _S.STREAMING,
                _S.PENDING_APPROVAL,
                _S.CANCELLING,
                _S.COMPLETED,
                _S.FAILED,
                _S.EXPIRED,
                _S.DEAD_LETTERED,
                _S.QUEUED,
            }
        ),
        _S.STREAMING: frozenset(
            {
                _S.COMPLETED,
                _S.FAILED,
                _S.CANCELLING,
                _S.PENDING_APPROVAL,
                _S.EXPIRED,
                _S.DEAD_LETTERED,
                _S.QUEUED,
            }
        ),
        _S.PENDING_APPROVAL: frozenset({_S.RUNNING, _S.CANCELLING, _S.FAILED, _S.EXPIRED}),
        _S.CANCELLING: frozenset({_S.CANCELLED, _S.COMPLETED, _S.FAILED, _S.DEAD_LETTERED}),
        _S.COMPLETED: frozenset(),
        _S.FAILED: frozenset(),
        _S.CANCELLED: frozenset(),
        _S.EXPIRED: frozenset(),
        _S.DEAD_LETTERED: frozenset(),
    }
)
"""The legal moves of R-41, apart from the reasons that `check_move` asks for."""

TERMINAL: Final = frozenset(state for state, after in MOVES.items() if not after)
"""States without a way out."""

MoveReason = Literal["recovery", "retry", "denied"]
"""Why a move is made that only some reason makes legal."""


def check_move(old: ActionState, new: ActionState, reason: MoveReason | None = None) -> int:
    """How much the move adds to the action's attempt: 1 for a requeue, else 0 (R-41).

    Raises `IllegalMove`. `reason` is required where R-41 names one (back to `queued`
    for recovery or retry, from approval to `failed` because it was denied) and refused
    anywhere else.
    """
    if new not in MOVES[old]:
        raise IllegalMove("action", old, new)
    if new is _S.QUEUED and old is not _S.ACCEPTED:
        if reason not in ("recovery", "retry"):
            raise IllegalMove("action", old, new, "only recovery or a retry requeues")
        return 1
    if old is _S.PENDING_APPROVAL and new is _S.FAILED:
        if reason != "denied":
            raise IllegalMove("action", old, new, "only a denial fails what awaits approval")
    elif reason is not None:
        raise IllegalMove("action", old, new, f"{reason} is no reason for it")
    return 0


class Mode(StrEnum):
    """How a caller waits for an action; the capability's contract says which it offers (R-52)."""

    SYNC = "sync"
    ASYNC = "async"
    STREAMING = "streaming"


class Effect(StrEnum):
    """What running a capability again would do (R-45). Undeclared is `MUTATING`."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    MUTATING = "mutating"

    @property
    def repeatable(self) -> bool:
        """Whether it may run again although it may have run before (R-47)."""
        return self is not Effect.MUTATING


# --- Cancellation (R-45) ------------------------------------------------------------


class CancelOutcome(StrEnum):
    """How a requested cancellation ended."""

    CONFIRMED = "confirmed"
    COMPLETED_FIRST = "completed_first"
    NEEDS_RECONCILIATION = "needs_reconciliation"


def cancel_outcome(
    *, answered: bool, acknowledged: bool, written: bool, effect: Effect
) -> CancelOutcome:
    """What became of a cancelled invoke, once its grace period is over.

    `answered`: the tool's own answer came in time. `acknowledged`: it ended with a
    cancelled error. `written`: its request reached the plugin.
    """
    if answered:
        return CancelOutcome.COMPLETED_FIRST
    if acknowledged or not written or effect is Effect.READ:
        return CancelOutcome.CONFIRMED
    return CancelOutcome.NEEDS_RECONCILIATION


def state_after_cancel(outcome: CancelOutcome, *, success: bool = True) -> ActionState:
    """The terminal state that an outcome is stored as; `success` is that of a late answer."""
    if outcome is CancelOutcome.CONFIRMED:
        return _S.CANCELLED
    if outcome is CancelOutcome.COMPLETED_FIRST:
        return _S.COMPLETED if success else _S.FAILED
    return _S.DEAD_LETTERED


# --- Results (R-54) -------------------------------------------------------------------


class ResultStatus(StrEnum):
    """What a result reports (seed actions-and-sessions, Results and Chunks)."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PENDING_APPROVAL = "pending_approval"
    REQUIRES_HUMAN = "requires_human"


class ActionError(Struct, frozen=True, omit_defaults=True):
    """Why an action failed. `code` is a symbol, `retryable` whether the same action may succeed.

    `path` names the faulty member of the input, where there is one.
    """

    code: str
    message: str
    retryable: bool = False
    path: str = ""
    data: dict[str, Any] | UnsetType = UNSET


EXPIRED_ERROR: Final = ActionError("EXPIRED", "the action ran out of time before it ended")


class ActionResult(Struct, frozen=True, omit_defaults=True):
    """The result of an action. `output` comes with `completed`, `error` with `failed`.

    `cancellation` tells how a requested cancellation ended, whatever the status.
    """

    action_id: str
    status: ResultStatus
    output: Raw | UnsetType = UNSET
    error: ActionError | UnsetType = UNSET
    cancellation: CancelOutcome | UnsetType = UNSET


_STATUS: Final[Mapping[ActionState, ResultStatus]] = MappingProxyType(
    {
        _S.COMPLETED: ResultStatus.COMPLETED,
        _S.FAILED: ResultStatus.FAILED,
        _S.CANCELLED: ResultStatus.CANCELLED,
        _S.PENDING_APPROVAL: ResultStatus.PENDING_APPROVAL,
        _S.EXPIRED: ResultStatus.FAILED,
        _S.DEAD_LETTERED: ResultStatus.FAILED,
    }
)


def result_status(state: ActionState, *, outcome_unknown: bool = False) -> ResultStatus | None:
    """What a result says of an action in `state`; None while there is none to give (R-54).

    `outcome_unknown` belongs to a dead letter: nobody knows whether its effect happened.
    """
    if state is _S.DEAD_LETTERED and outcome_unknown:
        return ResultStatus.REQUIRES_HUMAN
    return _STATUS.get(state)
