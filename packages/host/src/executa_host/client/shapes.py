"""What the client's methods give beside the records of durable work."""

from msgspec import UNSET, Struct, UnsetType

from executa_host.actions.interface import EventPage
from executa_host.actions.records import ActionRecord, ActionResult, SessionRecord
from executa_protocol.actions import ActionError


class Submitted(Struct, frozen=True):
    """An accepted action. `result` comes with mode `sync` if the action ended in time.

    `replayed`: the idempotency key had accepted this action before (R-43).
    """

    action: ActionRecord
    replayed: bool = False
    result: ActionResult | UnsetType = UNSET


class Opened(Struct, frozen=True):
    """A session with the resume token, a credential: never log it, never in a URL."""

    session: SessionRecord
    resume_token: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}(session={self.session!r})"


class Resumed(Opened, frozen=True):
    """A resumed session with the next token; the one before is void.

    `replay` are events after the cursor that was given. If they cannot be had, `replay_error`
    says why, and the token counts all the same.
    """

    replay: EventPage | UnsetType = UNSET
    replay_error: ActionError | UnsetType = UNSET
