"""One endpoint of the API, as a row of the table in `routes`."""

from typing import Any, Final, Literal

from msgspec import Struct

from executa_host.actions.requests import Scope
from executa_host.api.limits import BODY_BYTES
from executa_host.api.shapes import NoQuery

BASE: Final = "/v1"

Group = Literal["actions", "sessions", "plugins", "health"]


class Endpoint(Struct, frozen=True, kw_only=True):
    """One endpoint.

    `scope` is what a key needs; None lets everybody in, also without a key. `statuses` are
    those of success, all with the same `answer`. `stream`: the answer can also be a stream
    of server-sent events. `keyed`: the header `Idempotency-Key` stands for the member of the
    body. `most` bounds the body.
    """

    method: Literal["GET", "POST"]
    path: str
    group: Group
    handler: str
    summary: str
    scope: Scope | None = None
    body: type[Struct] | None = None
    query: type[Struct] = NoQuery
    answer: Any = None
    statuses: tuple[int, ...] = (200,)
    refusals: tuple[int, ...] = ()
    stream: bool = False
    keyed: bool = False
    most: int = BODY_BYTES


def full_path(endpoint: Endpoint) -> str:
    """The path as a server sees it; probes of liveness and readiness stand at the root, and
    under ``/v1`` like everything."""
    return endpoint.path if endpoint.group == "health" else BASE + endpoint.path
