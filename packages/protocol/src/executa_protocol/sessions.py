"""Durable sessions: their states, legal moves, and what they show of their actions (R-49).

An agent session is something else (R-02) and has no states here. Resume tokens,
events and storage are the host's business.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from executa_protocol.actions import ActionState
from executa_protocol.moves import IllegalMove


class SessionState(StrEnum):
    """Where a session is (seed actions-and-sessions, Sessions)."""

    NEW = "new"
    ACTIVE = "active"
    QUEUED = "queued"
    PROCESSING = "processing"
    STREAMING = "streaming"
    WAITING_FOR_HUMAN = "waiting_for_human"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    SETTLED = "settled"


_S = SessionState
_GIVEN_UP: Final = frozenset({_S.CANCELLED, _S.FAILED})

MOVES: Final[Mapping[SessionState, frozenset[SessionState]]] = MappingProxyType(
    {
        _S.NEW: _GIVEN_UP | {_S.ACTIVE},
        _S.ACTIVE: _GIVEN_UP | {_S.QUEUED, _S.PROCESSING, _S.COMPLETED},
        _S.QUEUED: _GIVEN_UP | {_S.ACTIVE, _S.PROCESSING},
        _S.PROCESSING: _GIVEN_UP
        | {_S.QUEUED, _S.STREAMING, _S.WAITING_FOR_HUMAN, _S.ACTIVE, _S.COMPLETED},
        _S.STREAMING: _GIVEN_UP
        | {_S.QUEUED, _S.PROCESSING, _S.WAITING_FOR_HUMAN, _S.ACTIVE, _S.COMPLETED},
        _S.WAITING_FOR_HUMAN: _GIVEN_UP | {_S.QUEUED, _S.PROCESSING, _S.STREAMING, _S.ACTIVE},
        _S.COMPLETED: frozenset({_S.SETTLED}),
        _S.CANCELLED: frozenset({_S.SETTLED}),
        _S.FAILED: frozenset({_S.SETTLED}),
        _S.SETTLED: frozenset(),
    }
)
"""The legal moves of R-49."""

ENDED: Final = frozenset({_S.COMPLETED, _S.CANCELLED, _S.FAILED, _S.SETTLED})
"""States that an explicit close leads to; none of them leads back to work."""


def check_move(old: SessionState, new: SessionState) -> None:
    """Raise `IllegalMove` unless a session may go from `old` to `new`."""
    if new not in MOVES[old]:
        raise IllegalMove("session", old, new)


_SHOWN: Final[tuple[tuple[SessionState, frozenset[ActionState]], ...]] = (
    (_S.WAITING_FOR_HUMAN, frozenset({ActionState.PENDING_APPROVAL})),
    (_S.STREAMING, frozenset({ActionState.STREAMING})),
    (_S.PROCESSING, frozenset({ActionState.RUNNING, ActionState.CANCELLING})),
    (_S.QUEUED, frozenset({ActionState.ACCEPTED, ActionState.QUEUED})),
)


def view(actions: Iterable[ActionState]) -> SessionState:
    """The state that an open session shows: that of its most advanced open action (R-49).

    Without an open action it is `active`. As each action makes one legal move at a
    time, what the session shows makes legal moves too.
    """
    states = frozenset(actions)
    for shown, those in _SHOWN:
        if states & those:
            return shown
    return _S.ACTIVE


class Session(Struct, frozen=True):
    """A durable relationship between two principals; `created_at_ms` is epoch milliseconds."""

    session_id: str
    initiator: str
    responder: str
    created_at_ms: int
    state: SessionState = SessionState.NEW
