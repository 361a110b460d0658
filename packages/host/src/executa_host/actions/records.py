"""The records of durable work as clients read them.

Owns the shapes; every struct here encodes to the JSON that an API shows. Times are
epoch milliseconds, durations milliseconds. How records come about is the engine's
business, where they are kept the store's. An agent session is nowhere in here (R-02).
"""

from enum import StrEnum
from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from executa_protocol.actions import (
    ActionError,
    ActionResult,
    ActionState,
    CancelOutcome,
    Effect,
    Mode,
)
from executa_protocol.chunks import Chunk
from executa_protocol.nexus import AppContext
from executa_protocol.receipts import ReceiptKind
from executa_protocol.sessions import SessionState

__all__ = [
    "ActionError",
    "ActionRecord",
    "ActionResult",
    "ActionState",
    "ActionView",
    "AppContext",
    "Approval",
    "ApprovalStatus",
    "Callback",
    "CancelOutcome",
    "Cancellation",
    "ChunkRecord",
    "Context",
    "Contract",
    "DeadLetter",
    "Effect",
    "EventRecord",
    "Mode",
    "Observability",
    "ReceiptRecord",
    "Retry",
    "SessionRecord",
    "SessionState",
    "Transaction",
]

ChunkRecord = Chunk
"""A chunk is what the protocol says it is (R-44)."""


# --- Contracts (R-45, R-52) -----------------------------------------------------------


class Retry(Struct, frozen=True, omit_defaults=True):
    """How often an action is run, and the pause before the second attempt; it doubles.

    Counts only where the effect is `read` or `idempotent`; a mutating one has one attempt.
    """

    attempts: int = 3
    base_ms: int = 1_000
    max_ms: int = 60_000


class Contract(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a capability promises and asks for. `capability` is ``PLUGIN.TOOL``.

    `input_schema` is JSON Schema. `approvers` are the principals that may decide, empty
    for everybody whose key may approve. `entry` is the digest of the tool's manifest
    entry, to which approvals are bound (R-46).
    """

    capability: str
    description: str = ""
    modes: tuple[Mode, ...] = (Mode.SYNC, Mode.ASYNC)
    input_schema: dict[str, Any] = {}
    effect: Effect = Effect.MUTATING
    approval: bool = False
    approvers: tuple[str, ...] = ()
    approval_ttl_ms: int = 86_400_000
    timeout_ms: int = 60_000
    retry: Retry = Retry()
    entry: str = ""


# --- What an action carries (seed actions-and-sessions, Action Identity) ---------------


class Observability(Struct, frozen=True, omit_defaults=True):
    """W3C trace context: it becomes the parent of the action's spans."""

    traceparent: str = ""
    tracestate: str = ""
    baggage: str = ""


class Context(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What an action brings along, kept as it came and given back with the record.

    Raw members are JSON objects whose content is the caller's business.
    """

    conversation: Raw | UnsetType = UNSET
    memory: Raw | UnsetType = UNSET
    identity: Raw | UnsetType = UNSET
    compliance: Raw | UnsetType = UNSET
    observability: Observability | UnsetType = UNSET


class Callback(Struct, frozen=True, omit_defaults=True):
    """Where the outcome is posted. `approvals`: also when an approval is waited for."""

    url: str
    approvals: bool = False


class Transaction(Struct, frozen=True, omit_defaults=True):
    """The caller's transaction that an action is part of; `transaction_id` is a filter."""

    transaction_id: str
    step: str = ""
    data: Raw | UnsetType = UNSET


# --- Actions ------------------------------------------------------------------------------


class ApprovalStatus(StrEnum):
    """Where the decision is. An action that needs none has no approval at all."""

    REQUIRED = "required"
    """Nobody was asked yet: the action is not `pending_approval` so far."""
    REQUESTED = "requested"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    """The action ended before anybody decided: cancelled, for instance."""


class Approval(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The approval of an action (R-46).

    `content` is what it binds to: the digest of capability, input and manifest entry.
    """

    status: ApprovalStatus
    content: str
    expires_at_ms: int = 0
    approvers: tuple[str, ...] = ()
    decided_by: str = ""
    decided_at_ms: int = 0
    note: str = ""


class Cancellation(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A requested cancellation; `outcome` once it is known (R-45)."""

    requested_by: str
    requested_at_ms: int
    reason: str = ""
    outcome: CancelOutcome | UnsetType = UNSET


class DeadLetter(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Why nobody goes on with an action by itself.

    `outcome_unknown`: its effect may have happened (R-47). `redriven_as` is the action
    that a person made of it.
    """

    reason: Literal[
        "host_crashed", "connection_lost", "timed_out", "cancel_unconfirmed", "attempts_exhausted"
    ]
    outcome_unknown: bool
    attempts: int
    last_error: ActionError | UnsetType = UNSET
    redriven_as: str = ""


class ActionRecord(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One action. `input` and `result` are there when they were asked for.

    `principal` submitted it, `subject` is on whose behalf (the head of `delegation`, else
    the principal). `cursor` is that of its latest event, `chunks` how many it has.
    `timeout_ms` bounds one attempt, `expires_at_ms` (0: never) the whole. `not_before_ms`
    is when a retry is due. `removed_at_ms` marks what retention left of it.
    """

    action_id: str
    capability: str
    state: ActionState
    mode: Mode
    tenant: str
    principal: str
    subject: str
    effect: Effect
    accepted_at_ms: int
    updated_at_ms: int
    cursor: str
    session_id: str = ""
    attempt: int = 1
    max_attempts: int = 1
    chunks: int = 0
    timeout_ms: int = 0
    expires_at_ms: int = 0
    not_before_ms: int = 0
    started_at_ms: int = 0
    ended_at_ms: int = 0
    idempotency_key: str = ""
    input_digest: str = ""
    input: Raw | UnsetType = UNSET
    context: Context | UnsetType = UNSET
    callback: Callback | UnsetType = UNSET
    delegation: tuple[str, ...] = ()
    app: AppContext | UnsetType = UNSET
    transaction: Transaction | UnsetType = UNSET
    approval: Approval | UnsetType = UNSET
    cancellation: Cancellation | UnsetType = UNSET
    dead_letter: DeadLetter | UnsetType = UNSET
    last_error: ActionError | UnsetType = UNSET
    redrive_of: str = ""
    result: ActionResult | UnsetType = UNSET


class ReceiptRecord(Struct, frozen=True):
    """A receipt (R-53) with what it attests, a small JSON object of digests and names."""

    action_id: str
    number: int
    kind: ReceiptKind
    at_ms: int
    content: str
    previous: str
    digest: str
    attested: Raw


class ActionView(Struct, frozen=True, omit_defaults=True):
    """An action with what was asked for beside it; at most 1,000 chunks, the first ones."""

    action: ActionRecord
    chunks: tuple[ChunkRecord, ...] | UnsetType = UNSET
    receipts: tuple[ReceiptRecord, ...] | UnsetType = UNSET


# --- Sessions and events ------------------------------------------------------------------


class SessionRecord(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A session between two principals (R-49). `outcome` is how it was closed.

    `cursor` is that of its latest event; `floor` is the oldest cursor that can still be
    read after, raised by retention.
    """

    session_id: str
    tenant: str
    initiator: str
    responder: str
    state: SessionState
    created_at_ms: int
    updated_at_ms: int
    cursor: str
    floor: str
    open_actions: int = 0
    ended_at_ms: int = 0
    outcome: str = ""
    label: str = ""


class EventRecord(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One event of an action's or a session's log (R-51).

    `cursor` is its place in the log that was read, and what to continue after (the id of
    a server-sent event). `type` ``state`` is a move of the action, ``chunk`` a chunk of
    it, ``approval`` a decision about it, and ``session`` a move of the session itself,
    which only the session's log has.
    """

    cursor: str
    type: Literal["state", "chunk", "approval", "session"]
    at_ms: int
    action_id: str = ""
    session_id: str = ""
    state: str = ""
    reason: str = ""
    attempt: int = 0
    chunk: ChunkRecord | UnsetType = UNSET
