"""Writes as data: everything that a store can be asked to do in one step.

An operation is applied wholly or not at all, and its answer is given once it is durable.
`Operation[T]` is answered with a `T` or refused with an `ActionsError`. This module
knows the shapes; `validate` holds them against what every backend relies on before they
join a transaction with others.
"""

from typing import Generic, TypeVar

from msgspec import UNSET, Raw, Struct, UnsetType

from executa_host.actions.records import (
    ActionError,
    ActionRecord,
    AppContext,
    Approval,
    ApprovalStatus,
    Callback,
    Cancellation,
    Context,
    DeadLetter,
    Effect,
    Mode,
    Retry,
    SessionRecord,
    Transaction,
)
from executa_protocol.actions import ActionState, MoveReason
from executa_protocol.chunks import ChunkKind
from executa_protocol.receipts import ReceiptKind
from executa_protocol.sessions import SessionState

T = TypeVar("T")


class Operation(Struct, Generic[T], kw_only=True):
    """One write. `step` is its name for crash points; `at_ms` when it was made."""

    step: str
    at_ms: int


class Attested(Struct, frozen=True):
    """What a receipt attests: a small JSON object in its canonical form, and the digest of it."""

    kind: ReceiptKind
    text: bytes
    content: str


# --- Actions -------------------------------------------------------------------------------


class Terms(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What stays as it was accepted, the contract's part of it included.

    `user_id` is whose plugins run; `entry` is the digest of the tool's manifest entry.
    """

    mode: Mode
    effect: Effect
    user_id: str
    timeout_ms: int
    max_attempts: int = 1
    retry: Retry = Retry()
    idempotency_key: str = ""
    input_digest: str = ""
    entry: str = ""
    context: Context | UnsetType = UNSET
    callback: Callback | UnsetType = UNSET
    delegation: tuple[str, ...] = ()
    app: AppContext | UnsetType = UNSET
    transaction: Transaction | UnsetType = UNSET
    approval_ttl_ms: int = 0
    redrive_of: str = ""


class Stored(Struct):
    """An action as the engine works with it: the record and what clients do not see.

    `fence` rises at each claim; every move is a compare-and-set on (state, fence) (R-42).
    `parties` are the two principals of its session.
    """

    record: ActionRecord
    fence: int
    terms: Terms
    parties: tuple[str, ...] = ()


class Accepted(Struct, frozen=True):
    """`action_id` is the operation's own, or, replayed, that of the key's first action."""

    action_id: str
    replayed: bool = False


class Accept(Operation[Accepted], kw_only=True):
    """Take a new action in, with its idempotency key (R-43).

    Refused: IDEMPOTENCY_CONFLICT, REMOVED (the key's action is gone), UNKNOWN_SESSION,
    SESSION_ENDED. With `redrive_of` the old action must be a dead letter, and the first
    new action that was made of it is the answer, replayed.
    """

    step: str = "accept"
    action_id: str
    tenant: str
    principal: str
    subject: str
    capability: str
    terms: Terms
    input: Raw
    session_id: str = ""
    expires_at_ms: int = 0
    approval: Approval | UnsetType = UNSET
    receipts: tuple[Attested, ...] = ()


class Piece(Struct, frozen=True):
    """A chunk to append; the store gives it its sequence."""

    kind: ChunkKind
    data: Raw = Raw(b"{}")


class Decided(Struct, frozen=True):
    """A decision to log."""

    status: ApprovalStatus


Step = ActionState | Piece | Decided
"""What a move writes to the log, in order."""


class Moved(Struct, frozen=True):
    """The answer to a move. `current` is None if it won; the loser gets the action as it is.

    `events` and `chunks` are the counts after it, of the winner.
    """

    fence: int = 0
    events: int = 0
    chunks: int = 0
    current: Stored | None = None
    missing: bool = False

    @property
    def won(self) -> bool:
        """Whether it was applied."""
        return self.current is None and not self.missing


class Move(Operation[Moved], kw_only=True):
    """Change one action, if it is still in (`state`, `fence`) and its approval as `approval_is`.

    `steps` are logged in order; the states among them are walked, each a legal move, with
    `reason` for those that need one. Without a state among them the action stays where it
    is. Members left UNSET are left as they are.
    """

    action_id: str
    state: ActionState
    fence: int
    steps: tuple[Step, ...]
    session_id: str = ""
    reason: MoveReason | None = None
    why: str = ""
    attempt: int = 1
    approval_is: ApprovalStatus | UnsetType = UNSET
    claim: bool = False
    not_before_ms: int = 0
    approval: Approval | UnsetType = UNSET
    cancellation: Cancellation | UnsetType = UNSET
    dead_letter: DeadLetter | UnsetType = UNSET
    last_error: ActionError | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    receipts: tuple[Attested, ...] = ()
    callback_url: str = ""

    @property
    def target(self) -> ActionState:
        """The state that it leads to."""
        return self.walk()[0]

    def walk(self) -> tuple[ActionState, int]:
        """The state that it leads to, and how many chunks it appends."""
        state, chunks = self.state, 0
        for step in self.steps:
            if isinstance(step, ActionState):
                state = step
            elif isinstance(step, Piece):
                chunks += 1
        return state, chunks


# --- Sessions -------------------------------------------------------------------------------


class TokenRecord(Struct, frozen=True, kw_only=True):
    """A new resume token as it is kept: hashed."""

    token_hash: str
    chain: str
    principal: str
    expires_at_ms: int


class OpenSession(Operation[SessionRecord], kw_only=True):
    """A new session with its initiator's token."""

    step: str = "open_session"
    session_id: str
    tenant: str
    initiator: str
    responder: str
    label: str = ""
    token: TokenRecord


class Attach(Operation[SessionRecord], kw_only=True):
    """A new chain of tokens for a party. Refused: UNKNOWN_SESSION, SESSION_ENDED when settled."""

    step: str = "attach"
    session_id: str
    token: TokenRecord


class Rotated(Struct, frozen=True):
    """The answer to a resume. The new token comes of the old one and `nonce` (R-50)."""

    session: SessionRecord
    nonce: str


class Rotate(Operation[Rotated], kw_only=True):
    """Use a resume token once (R-50), by hashes only.

    `nonce` is fresh; if the same attempt repeats, the answer has the first one's instead.
    `new_hash` is that of the token which comes of `nonce`. Refused: RESUME_UNKNOWN,
    RESUME_CONFLICT, RESUME_SPENT, RESUME_REVOKED, SESSION_ENDED when settled.
    """

    step: str = "resume"
    token_hash: str
    tenant: str
    principal: str
    attempt_hash: str
    nonce: str
    new_hash: str
    window_ms: int
    new_expires_at_ms: int


class CloseSession(Operation[SessionRecord], kw_only=True):
    """End a session; the same way again changes nothing. Refused: UNKNOWN_SESSION,
    SESSION_ENDED (another way), ILLEGAL_MOVE."""

    step: str = "close_session"
    session_id: str
    outcome: SessionState


class Settle(Operation[tuple[str, ...]], kw_only=True):
    """Settle what was closed before `closed_before_ms` and has no open action; void its
    tokens. The answer names the sessions."""

    step: str = "settle"
    closed_before_ms: int
    limit: int = 500


# --- Callbacks and retention -------------------------------------------------------------------


class CallbackTried(Operation[None], kw_only=True):
    """A delivery was tried: `next_at_ms` 0 ends it, delivered or given up (`error` says)."""

    step: str = "callback"
    delivery: int
    next_at_ms: int = 0
    error: str = ""


class Pruned(Struct, frozen=True):
    """What retention removed; `more` if it stopped at its step."""

    actions: int = 0
    sessions: int = 0
    keys: int = 0
    more: bool = False


class Prune(Operation[Pruned], kw_only=True):
    """Remove what ended before `ended_before_ms` or is beyond the latest `keep`, at most
    `limit` actions, leaving markers; forget keys and markers that are due."""

    step: str = "prune"
    ended_before_ms: int
    keep: int
    limit: int
    key_outlives_ms: int
    marker_age_ms: int


AnyOperation = (
    Accept | Move | OpenSession | Attach | Rotate | CloseSession | Settle | CallbackTried | Prune
)
