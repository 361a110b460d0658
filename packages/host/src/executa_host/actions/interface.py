"""Durable actions and sessions as an API, a client or a program in the process sees them.

Owns the facade's promises; `engine` keeps them. What is asked and answered are the structs
of `requests` and `records`, what is refused the errors of `faults`. Callers are given,
already authenticated: keys are the API's own. Nothing here knows HTTP.

Common to all methods: a record that the caller may not see is as if it were not there. A
method that changes something has changed it durably when it returns. A wait is 0 to 30
seconds and a limit 1 to 1,000; outside is `Invalid` OUT_OF_RANGE, never clamped (R-48).
Cancelling an awaiting caller (a client that disconnects) never cancels an action (R-51).
"""

from collections.abc import AsyncIterator
from typing import Literal, Protocol

from msgspec import Struct

from executa_host.actions.records import (
    ActionRecord,
    ActionResult,
    ActionView,
    Contract,
    EventRecord,
    SessionRecord,
)
from executa_host.actions.requests import (
    EVERY_ACTION,
    EVERY_SESSION,
    NOTHING,
    ActionQuery,
    Caller,
    Include,
    SessionQuery,
    Submission,
)
from executa_protocol.limits import QUERY_DEFAULT


class Submitted(Struct, frozen=True):
    """The answer to a submission. `replayed`: the key had accepted this action before (R-43)."""

    action: ActionRecord
    replayed: bool = False


class ActionPage(Struct, frozen=True):
    """One page of a listing; `next_cursor` is empty on the last one."""

    records: tuple[ActionRecord, ...]
    next_cursor: str = ""


class SessionPage(Struct, frozen=True):
    """One page of a listing; `next_cursor` is empty on the last one."""

    records: tuple[SessionRecord, ...]
    next_cursor: str = ""


class EventPage(Struct, frozen=True):
    """Events after a cursor, in order and without a gap.

    `cursor` is what to read after next; without events it is the one that was given.
    `ended`: the log has ended and this page reaches its end, so nothing will ever follow.
    """

    events: tuple[EventRecord, ...]
    cursor: str
    ended: bool = False


class Outcome(Struct, frozen=True):
    """An action, and its result if there is one: also ``pending_approval`` is a result (R-54)."""

    action: ActionRecord
    result: ActionResult | None = None


class Opened(Struct, frozen=True):
    """A session with the caller's resume token, a credential: never log it, never in a URL."""

    session: SessionRecord
    resume_token: str

    def __repr__(self) -> str:
        return f"Opened(session={self.session!r})"


class Status(Struct, frozen=True):
    """How the engine is. `open` counts actions that have not ended, `running` those that
    hold a slot, `queued` those that wait for one, `callbacks` deliveries that are due."""

    ready: bool
    draining: bool
    open: int
    queued: int
    running: int
    callbacks: int


CloseOutcome = Literal["completed", "cancelled", "failed"]


class Sessions(Protocol):
    """Durable sessions (seed actions-and-sessions, Sessions; R-49, R-50). Scope `SESSIONS`."""

    async def open(self, caller: Caller, *, responder: str, label: str = "") -> Opened:
        """The handshake: a new session from the caller to `responder`, in state `new`."""
        ...

    async def attach(self, caller: Caller, session_id: str) -> Opened:
        """A resume token for a party that has none, or whose chain was revoked.

        Raises `NotFound`; `Conflict` SESSION_ENDED once the session is settled.
        """
        ...

    async def resume(self, caller: Caller, token: str, *, attempt_id: str) -> Opened:
        """Verify and rotate a resume token; the record's `cursor` is the head at that moment.

        Replay by `Actions.events` from the client's own cursor. The same token with the
        same `attempt_id` (1 to 128 characters, chosen by the client, new for each resume)
        within 60 s gives the same answer again. Raises `NotFound` RESUME_UNKNOWN (also for
        another principal's token), `Conflict` RESUME_CONFLICT (another attempt was first),
        `Gone` RESUME_SPENT or RESUME_REVOKED, `Conflict` SESSION_ENDED once it is settled.
        """
        ...

    async def get(self, caller: Caller, session_id: str) -> SessionRecord | None:
        """The record; None for what is not there or not the caller's to see."""
        ...

    async def list(self, caller: Caller, query: SessionQuery = EVERY_SESSION) -> SessionPage:
        """Sessions that the caller is a party of, or all of its tenant with that scope."""
        ...

    async def close(
        self, caller: Caller, session_id: str, outcome: CloseOutcome = "completed"
    ) -> SessionRecord:
        """End it; closing again the same way is harmless. Open actions go on if it was
        completed, and are asked to cancel otherwise.

        It is settled, and its tokens void, once it has no open action and a minute has
        passed. Raises `NotFound`, `Conflict` ILLEGAL_MOVE (a session that waits in its
        queue or for a person cannot be completed, R-49) or SESSION_ENDED.
        """
        ...


class Actions(Protocol):
    """Durable actions (seed actions-and-sessions; R-40 to R-54)."""

    @property
    def sessions(self) -> Sessions:
        """Durable sessions."""
        ...

    async def capabilities(self, caller: Caller) -> tuple[Contract, ...]:
        """The contracts of everything that can be called, sorted by name. Scope `READ`.

        A plugin that cannot be started is left out.
        """
        ...

    async def capability(self, caller: Caller, name: str) -> Contract | None:
        """One contract. Raises `Unavailable` if its plugin cannot be started."""
        ...

    async def submit(self, caller: Caller, submission: Submission) -> Submitted:
        """Accept an action. Scope `SUBMIT`. When this returns, the action is on disk.

        Raises `Invalid`: UNKNOWN_CAPABILITY, MODE_NOT_OFFERED, INVALID_INPUT (`path` such as
        ``$.input.text``, `data.faults` for all of them), INVALID_REQUEST, CALLBACK_REFUSED.
        `Forbidden`: FORBIDDEN, DELEGATION_REFUSED, APPROVAL_NOT_YOURS. `NotFound`
        UNKNOWN_SESSION. `Conflict`: IDEMPOTENCY_CONFLICT, SESSION_ENDED. `Gone` REMOVED: the
        key's action fell to retention. `Unavailable`: CAPABILITY_UNAVAILABLE, QUEUE_FULL,
        DRAINING.
        """
        ...

    async def get(
        self, caller: Caller, action_id: str, include: frozenset[Include] = NOTHING
    ) -> ActionView | None:
        """An action. None means `unknown`: not there or not the caller's to see (R-41).

        Scope `READ`. Raises `Gone` REMOVED for what retention took.
        """
        ...

    async def list(self, caller: Caller, query: ActionQuery = EVERY_ACTION) -> ActionPage:
        """Actions that fit, without input and result. Scope `READ`.

        Raises `Invalid` OUT_OF_RANGE or CURSOR_INVALID.
        """
        ...

    async def result(self, caller: Caller, action_id: str, wait: float = 0.0) -> Outcome:
        """The result, waiting at most `wait` seconds for a terminal one. Scope `READ`.

        Without one the outcome is the record as it is then: that is no error (R-51).
        Raises `NotFound` UNKNOWN_ACTION, `Gone` REMOVED.
        """
        ...

    async def events(
        self,
        caller: Caller,
        subject: str,
        after: str = "",
        *,
        limit: int = QUERY_DEFAULT,
        wait: float = 0.0,
    ) -> EventPage:
        """Events of an action (``act_``) or session (``ses_``) after a cursor. Scope `READ`.

        Waits at most `wait` seconds for the first one. ``""`` is the beginning. Raises
        `NotFound`, `Gone` REMOVED; `Invalid` CURSOR_INVALID (no cursor of this log) or
        CURSOR_AHEAD (of the future); `Gone` CURSOR_GONE (retention removed what follows
        it; `data.floor` is the oldest cursor that works).
        """
        ...

    def follow(
        self, caller: Caller, subject: str, after: str = "", *, heartbeat: float = 15.0
    ) -> AsyncIterator[EventPage]:
        """Backlog and live tail without loss: `events` again and again, until the log ends.

        A page without events comes after `heartbeat` seconds of silence. Raises as `events`,
        and `Unavailable` DRAINING when the engine stops: the client reconnects later.
        """
        ...

    async def cancel(self, caller: Caller, action_id: str, reason: str = "") -> ActionRecord:
        """Ask an action to end; a request, not a proof (R-45). Scope `CANCEL`.

        Gives the record at once; how it went stands in `cancellation.outcome` of the final
        one. Harmless for what has ended or is being cancelled. Raises `NotFound`, `Gone`.
        """
        ...

    async def approve(
        self, caller: Caller, action_id: str, *, content: str = "", note: str = ""
    ) -> ActionRecord:
        """Allow what awaits approval; deciding twice the same way is harmless. Scope `APPROVE`.

        `content`, if given, must be the approval's digest: what was looked at is what is
        approved. Raises `NotFound`, `Gone`; `Forbidden` APPROVAL_NOT_YOURS; `Conflict`
        NOT_PENDING_APPROVAL, ALREADY_DECIDED (the other way, or expired), CONTENT_CHANGED.
        """
        ...

    async def deny(
        self, caller: Caller, action_id: str, *, content: str = "", note: str = ""
    ) -> ActionRecord:
        """Refuse what awaits approval; the action fails. Otherwise as `approve`."""
        ...

    async def redrive(
        self, caller: Caller, action_id: str, *, idempotency_key: str = ""
    ) -> Submitted:
        """A new action of a dead letter, that names the old one. Scope `REDRIVE`.

        Once: again gives the same new action as `replayed`. Raises `NotFound`, `Gone`,
        `Conflict` NOT_DEAD_LETTERED, and as `submit`.
        """
        ...

    async def status(self) -> Status:
        """For liveness and readiness."""
        ...

    async def drain(self, grace: float) -> None:
        """Take no new work, let what runs end within `grace` seconds, leave the rest to
        recovery, and tell followers. Idempotent; reads go on until the engine is closed."""
        ...
