"""The shapes of requests and answers that HTTP adds to those of durable work.

Owns bodies and queries: what members there are, of which type and length. Members that are
not listed are refused. Bodies that have a struct in `actions.requests` are that struct, only
stricter about names.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from executa_host.actions.interface import CloseOutcome, EventPage
from executa_host.actions.limits import EXPIRY_MAX, NAME_CHARS, NOTE_CHARS
from executa_host.actions.records import (
    ActionError,
    ActionRecord,
    ActionResult,
    ActionState,
    ApprovalStatus,
    Callback,
    Context,
    Contract,
    Observability,
    SessionRecord,
    SessionState,
    Transaction,
)
from executa_host.actions.requests import EMPTY_INPUT, Include, Submission
from executa_host.actions.submission_checks import TIMEOUT_MAX
from executa_host.api.limits import ATTEMPT_CHARS, TOKEN_CHARS
from executa_protocol.limits import QUERY_DEFAULT, QUERY_MAX, WAIT_MAX
from executa_protocol.nexus import AppContext

_PRINTABLE = r"^[^\x00-\x1f\x7f]*$(?!\n)"

Limit = Annotated[int, Meta(ge=1, le=QUERY_MAX, description="Most records of the answer (R-48).")]
Wait = Annotated[float, Meta(ge=0, le=WAIT_MAX, description="Seconds to wait at most (R-48).")]
Name = Annotated[str, Meta(max_length=NAME_CHARS, pattern=_PRINTABLE)]
Given = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS, pattern=_PRINTABLE)]
Text = Annotated[str, Meta(max_length=NOTE_CHARS)]
Token = Annotated[str, Meta(min_length=1, max_length=TOKEN_CHARS, pattern=_PRINTABLE)]
Cursor = Annotated[str, Meta(max_length=TOKEN_CHARS, pattern=_PRINTABLE)]
JsonObject = Annotated[Raw, Meta(extra_json_schema={"type": "object"})]
"""JSON kept as it came; that it is an object is checked in `reading`."""


# --- Submissions ---------------------------------------------------------------------------


class StrictObservability(Observability, frozen=True, omit_defaults=True,
                          forbid_unknown_fields=True):  # fmt: skip
    """`Observability` without other members."""


class StrictContext(Context, frozen=True, omit_defaults=True, kw_only=True,
                    forbid_unknown_fields=True):  # fmt: skip
    """`Context` without other members."""

    conversation: JsonObject | UnsetType = UNSET
    memory: JsonObject | UnsetType = UNSET
    identity: JsonObject | UnsetType = UNSET
    compliance: JsonObject | UnsetType = UNSET
    observability: StrictObservability | UnsetType = UNSET


class StrictCallback(Callback, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`Callback` without other members."""


class StrictTransaction(Transaction, frozen=True, omit_defaults=True,
                        forbid_unknown_fields=True):  # fmt: skip
    """`Transaction` without other members."""

    data: JsonObject | UnsetType = UNSET


class StrictApp(AppContext, frozen=True, forbid_unknown_fields=True):
    """`AppContext` without other members."""


class SubmitBody(Submission, frozen=True, omit_defaults=True, kw_only=True,
                 forbid_unknown_fields=True):  # fmt: skip
    """A new action (seed actions-and-sessions, Action Identity)."""

    timeout_ms: Annotated[int, Meta(ge=1, le=TIMEOUT_MAX)] | UnsetType = UNSET
    expires_in_ms: Annotated[int, Meta(ge=1, le=EXPIRY_MAX)] | UnsetType = UNSET
    input: JsonObject = field(default_factory=lambda: EMPTY_INPUT)
    context: StrictContext | UnsetType = UNSET
    callback: StrictCallback | UnsetType = UNSET
    app: StrictApp | UnsetType = UNSET
    transaction: StrictTransaction | UnsetType = UNSET


class SubmitAnswer(Struct, frozen=True, omit_defaults=True):
    """The accepted action; with mode `sync` its result too, if it came in time (R-51).

    `replayed`: the idempotency key had accepted this action before (R-43).
    """

    action: ActionRecord
    replayed: bool = False
    result: ActionResult | UnsetType = UNSET


# --- Other bodies --------------------------------------------------------------------------


class CancelBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Why an action is asked to end."""

    reason: Text = ""


class DecisionBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A decision. `content` is the digest of what was looked at: the approval's (R-46)."""

    content: Name = ""
    note: Text = ""


class RedriveBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The idempotency key of the new action."""

    idempotency_key: Name = ""


class HandshakeBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A new session, from the caller to `responder`."""

    responder: Given
    label: Name = ""


class ResumeBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A resume token, and the client's own id of this attempt (R-50).

    With `after` the answer replays up to `limit` events after that cursor.
    """

    resume_token: Token
    attempt_id: Annotated[str, Meta(min_length=1, max_length=ATTEMPT_CHARS, pattern=_PRINTABLE)]
    after: Cursor | UnsetType = UNSET
    limit: Limit = QUERY_DEFAULT


class CloseBody(Struct, frozen=True, forbid_unknown_fields=True):
    """How a session ends."""

    outcome: CloseOutcome = "completed"


class NoBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A body that says nothing."""


# --- Queries -------------------------------------------------------------------------------


class NoQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """No parameter is known."""


class ActionsParams(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Filters of a listing of actions; all that are given must hold."""

    state: tuple[ActionState, ...] = ()
    capability: Name = ""
    session: Name = ""
    principal: Name = ""
    approval: ApprovalStatus | UnsetType = UNSET
    transaction: Name = ""
    tenant: Name = ""
    order: Literal["newest", "oldest"] = "newest"
    limit: Limit = QUERY_DEFAULT
    cursor: Cursor = ""


class SessionsParams(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Filters of a listing of sessions; all that are given must hold."""

    state: tuple[SessionState, ...] = ()
    principal: Name = ""
    tenant: Name = ""
    order: Literal["newest", "oldest"] = "newest"
    limit: Limit = QUERY_DEFAULT
    cursor: Cursor = ""


class ReadParams(Struct, frozen=True, forbid_unknown_fields=True):
    """What is read beside the record."""

    include: tuple[Include, ...] = ()


class ResultParams(Struct, frozen=True, forbid_unknown_fields=True):
    """How long to wait for a terminal result."""

    wait: Wait = 0.0


class EventsParams(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where to continue, and how long to wait for the first event.

    A stream takes `after` alone, and `Last-Event-ID` before it.
    """

    after: Cursor = ""
    limit: Limit = QUERY_DEFAULT
    wait: Wait = 0.0


class LogsParams(Struct, frozen=True, forbid_unknown_fields=True):
    """Whose process, and how many of its last lines."""

    user_id: Name = ""
    limit: Limit = QUERY_DEFAULT


class UserParams(Struct, frozen=True, forbid_unknown_fields=True):
    """Whose process; the caller's own if it is not said (R-23)."""

    user_id: Name = ""


# --- Answers -------------------------------------------------------------------------------


class Capabilities(Struct, frozen=True):
    """Everything that can be called."""

    capabilities: tuple[Contract, ...]


class CapabilityAnswer(Struct, frozen=True):
    """One contract."""

    capability: Contract


class SessionAnswer(Struct, frozen=True):
    """One session."""

    session: SessionRecord


class OpenedAnswer(Struct, frozen=True):
    """A session with the caller's resume token, a credential."""

    session: SessionRecord
    resume_token: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}(session={self.session!r})"


class ResumedAnswer(OpenedAnswer, frozen=True, omit_defaults=True):
    """A resumed session with the next token. `replay` are events after the cursor that was
    given; `replay_error` says why there are none: the token counts all the same."""

    replay: EventPage | UnsetType = UNSET
    replay_error: ActionError | UnsetType = UNSET


class Live(Struct, frozen=True):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Ready(Struct, frozen=True):
    """Whether new work is taken."""

    ready: bool
    draining: bool
