"""What callers ask of durable work: who they are, and what they submit and query.

Owns the shapes of requests and the names of scopes. Whether one is allowed or fits a
contract is decided in `access`, `acceptance` and the store.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType

from executa_host.actions.records import (
    ActionState,
    AppContext,
    ApprovalStatus,
    Callback,
    Context,
    Mode,
    Transaction,
)
from executa_protocol.limits import QUERY_DEFAULT

EMPTY_INPUT: Final = Raw(b"{}")


class Scope(StrEnum):
    """What a key may do. Without `TENANT` a caller handles only what is its own:
    what it submitted, what was submitted on its behalf, and what belongs to its sessions."""

    SUBMIT = "actions:submit"
    READ = "actions:read"
    CANCEL = "actions:cancel"
    APPROVE = "actions:approve"
    """Decides approvals of its tenant, and sees the actions that have one."""
    REDRIVE = "actions:redrive"
    SESSIONS = "sessions"
    TENANT = "tenant"
    """Sees and handles everything of its tenant."""
    ADMIN = "admin"
    """Everything, in every tenant."""
    ATTEST = "apps:attest"
    """May attach an `AppContext` (R-29)."""


ALL_SCOPES: Final = frozenset(Scope)
OWN_WORK: Final = frozenset({Scope.SUBMIT, Scope.READ, Scope.CANCEL, Scope.SESSIONS})
"""What an ordinary client has."""


class Caller(Struct, frozen=True, kw_only=True):
    """Who asks, as its key says. `user_id` is whose plugins run for it (R-23)."""

    principal: str
    tenant: str = "default"
    user_id: str = "local"
    scopes: frozenset[Scope] = OWN_WORK


class Submission(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A new action (seed actions-and-sessions, Action Identity).

    `input` is a raw JSON object, kept exactly. `timeout_ms` bounds one attempt (default:
    the contract's), `expires_in_ms` the whole. `delegation` runs from the principal on
    whose behalf the action is to the caller, which is its last member. `approval` asks
    for an approval that the contract does not need (``"ask"``), or states the caller's
    own decision (``"given"``), which is refused unless it may decide.
    """

    capability: str
    input: Raw = EMPTY_INPUT
    mode: Mode = Mode.ASYNC
    idempotency_key: str = ""
    timeout_ms: int | UnsetType = UNSET
    expires_in_ms: int | UnsetType = UNSET
    session_id: str = ""
    context: Context | UnsetType = UNSET
    callback: Callback | UnsetType = UNSET
    delegation: tuple[str, ...] = ()
    approval: str = ""
    app: AppContext | UnsetType = UNSET
    transaction: Transaction | UnsetType = UNSET


class Include(StrEnum):
    """What is read beside an action's record."""

    INPUT = "input"
    RESULT = "result"
    CHUNKS = "chunks"
    RECEIPTS = "receipts"


NOTHING: Final[frozenset[Include]] = frozenset()


class ActionQuery(Struct, frozen=True, kw_only=True):
    """Filters of a listing; all that are given must hold (R-48).

    `limit` is 1 to 1,000; outside is refused. `cursor` is a page's `next_cursor`, for
    the same query. The order is that of acceptance, the newest first unless `oldest_first`.
    """

    states: tuple[ActionState, ...] = ()
    capability: str = ""
    session_id: str = ""
    principal: str = ""
    approval: ApprovalStatus | UnsetType = UNSET
    transaction_id: str = ""
    tenant: str = ""
    limit: int = QUERY_DEFAULT
    cursor: str = ""
    oldest_first: bool = False


class SessionQuery(Struct, frozen=True, kw_only=True):
    """Filters of a listing of sessions, as `ActionQuery`. `principal`: either party."""

    states: tuple[str, ...] = ()
    principal: str = ""
    tenant: str = ""
    limit: int = QUERY_DEFAULT
    cursor: str = ""
    oldest_first: bool = False


EVERY_ACTION: Final = ActionQuery()
EVERY_SESSION: Final = SessionQuery()


def submission(
    capability: str, arguments: Mapping[str, Any] | None = None, /, **rest: Any
) -> Submission:
    """A `Submission` of plain Python arguments, for programs in the same process.

    Raises `NotEncodable`.
    """
    from executa_protocol import codec  # noqa: PLC0415 - shapes need no codec

    return Submission(capability=capability, input=Raw(codec.encode(dict(arguments or {}))), **rest)
