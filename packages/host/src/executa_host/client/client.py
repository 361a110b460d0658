"""The API as methods: what `actions.interface` offers, from anywhere.

Owns which method is which request, and which of them may be repeated. Records and errors are
those of durable work; who the caller is says the key.

::

    async with Client("http://127.0.0.1:8717", key) as client:
        submitted = await client.submit("notebook.recall", {"query": "tea"})
        async for event in client.follow(submitted.action.action_id):
            print(event.type, event.state)
        outcome = await client.result(submitted.action.action_id, wait=10)
"""

import asyncio
import random
import secrets
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

from msgspec import UNSET, Raw, UnsetType

from executa_host.actions.interface import ActionPage, EventPage, Outcome
from executa_host.actions.records import (
    ActionRecord,
    ActionView,
    AppContext,
    Callback,
    Context,
    Contract,
    EventRecord,
    Mode,
    Transaction,
)
from executa_host.actions.requests import (
    EVERY_ACTION,
    NOTHING,
    ActionQuery,
    Include,
    Submission,
)
from executa_host.api.shapes import Capabilities, CapabilityAnswer, Ready
from executa_host.client.errors import NotFound
from executa_host.client.follow import PATIENCE, SILENCE, Following
from executa_host.client.plugins import PluginsClient
from executa_host.client.sessions import SessionsClient
from executa_host.client.shapes import Submitted
from executa_host.client.transport import ATTEMPTS, TIMEOUT, Pause, Transport
from executa_protocol import codec
from executa_protocol.errors import UsageError
from executa_protocol.ids import is_session_id
from executa_protocol.limits import QUERY_DEFAULT

DEFAULT_URL: Final = "http://127.0.0.1:8717"
"""Where a host listens unless it is told otherwise."""

_READINESS: Final = frozenset({503})


class Client:
    """A host's API under one key. Everything raises `ApiError`, `Unreachable`.

    A request is tried `attempts` times, each for `timeout` seconds. `pause` and `jitter` are
    for tests. Raises `UsageError` for an address or a key that is none.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        key: str = "",
        *,
        attempts: int = ATTEMPTS,
        timeout: float = TIMEOUT,
        pause: Pause = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._transport = Transport(
            url, key, attempts=attempts, timeout=timeout, pause=pause, jitter=jitter
        )
        self.sessions = SessionsClient(self._transport)
        self.plugins = PluginsClient(self._transport)

    def __repr__(self) -> str:
        return f"Client({str(self._transport.base)!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._transport.close()

    # --- Capabilities ------------------------------------------------------------------------

    async def capabilities(self) -> tuple[Contract, ...]:
        """The contracts of everything that can be called."""
        found = await self._transport.ask(Capabilities, "GET", "/v1/capabilities")
        return found.capabilities

    async def capability(self, name: str) -> Contract | None:
        """One contract; None if nothing has this name."""
        try:
            found = await self._transport.ask(
                CapabilityAnswer, "GET", f"/v1/capabilities/{_segment(name)}"
            )
        except NotFound:
            return None
        return found.capability

    # --- Submitting --------------------------------------------------------------------------

    async def submit(
        self,
        capability: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        mode: Mode = Mode.ASYNC,
        idempotency_key: str | None = None,
        session_id: str = "",
        timeout_ms: int | UnsetType = UNSET,
        expires_in_ms: int | UnsetType = UNSET,
        context: Context | UnsetType = UNSET,
        callback: Callback | UnsetType = UNSET,
        delegation: tuple[str, ...] = (),
        approval: str = "",
        app: AppContext | UnsetType = UNSET,
        transaction: Transaction | UnsetType = UNSET,
    ) -> Submitted:
        """Submit an action; what its members mean says `Submission`.

        Without an `idempotency_key` it gets one of its own, so that a lost answer can be
        asked for again; `""` means none.
        """
        key = secrets.token_urlsafe(16) if idempotency_key is None else idempotency_key
        return await self.submit_exactly(
            Submission(
                capability=capability,
                input=Raw(codec.encode(dict(arguments or {}))),
                mode=mode,
                idempotency_key=key,
                session_id=session_id,
                timeout_ms=timeout_ms,
                expires_in_ms=expires_in_ms,
                context=context,
                callback=callback,
                delegation=delegation,
                approval=approval,
                app=app,
                transaction=transaction,
            )
        )

    async def submit_exactly(self, wanted: Submission) -> Submitted:
        """Submit what is written. Repeated after a lost answer only if it has a key (R-43)."""
        return await self._transport.ask(
            Submitted, "POST", "/v1/actions", body=wanted, safe=bool(wanted.idempotency_key)
        )

    async def redrive(self, action_id: str, *, idempotency_key: str = "") -> Submitted:
        """Make a new action of a dead letter; again gives the same one."""
        body = {"idempotency_key": idempotency_key}
        return await self._transport.ask(
            Submitted, "POST", _action(action_id, "/redrive"), body=body
        )

    # --- Reading -------------------------------------------------------------------------------

    async def get(
        self, action_id: str, include: Collection[Include] = NOTHING
    ) -> ActionView | None:
        """An action. None means `unknown`: not there, or not this key's to see (R-41)."""
        query = {"include": ",".join(sorted(include))} if include else {}
        try:
            return await self._transport.ask(ActionView, "GET", _action(action_id), query=query)
        except NotFound:
            return None

    async def list(self, query: ActionQuery = EVERY_ACTION) -> ActionPage:
        """Actions that fit, without input and result."""
        given = {
            "state": ",".join(query.states),
            "capability": query.capability,
            "session": query.session_id,
            "principal": query.principal,
            "approval": query.approval or "",
            "transaction": query.transaction_id,
            "tenant": query.tenant,
            "cursor": query.cursor,
            "limit": str(query.limit),
            "order": "oldest" if query.oldest_first else "newest",
        }
        asked = {name: value for name, value in given.items() if value}
        return await self._transport.ask(ActionPage, "GET", "/v1/actions", query=asked)

    async def result(self, action_id: str, wait: float = 0.0) -> Outcome:
        """The result, waiting at most `wait` seconds (0 to 30) for a terminal one."""
        query = {"wait": f"{wait:g}"}
        return await self._transport.ask(Outcome, "GET", _action(action_id, "/result"), query=query)

    async def events(
        self, subject: str, after: str = "", *, limit: int = QUERY_DEFAULT, wait: float = 0.0
    ) -> EventPage:
        """Events of an action (``act_``) or session (``ses_``) after a cursor: one page."""
        query = {"after": after, "limit": str(limit), "wait": f"{wait:g}"}
        return await self._transport.ask(EventPage, "GET", _events(subject), query=query)

    def follow(
        self, subject: str, after: str = "", *, patience: float = PATIENCE, silence: float = SILENCE
    ) -> AsyncGenerator[EventRecord, None]:
        """Every event after a cursor until the log ends, over lost connections and restarts.

        Each once, in order, none left out. `patience` is how many seconds the host may be
        gone, `silence` after how many without a sign of life a connection is given up. Who
        leaves before the end closes the generator (`contextlib.aclosing`).
        """
        following = Following(
            self._transport, _events(subject), after, patience=patience, silence=silence
        )
        return following.events()

    # --- Deciding --------------------------------------------------------------------------------

    async def cancel(self, action_id: str, reason: str = "") -> ActionRecord:
        """Ask an action to end: a request, not a proof (R-45)."""
        return await self._changed(action_id, "cancel", {"reason": reason})

    async def approve(self, action_id: str, *, content: str = "", note: str = "") -> ActionRecord:
        """Allow what awaits approval. `content`: the digest of what was looked at (R-46)."""
        return await self._changed(action_id, "approve", {"content": content, "note": note})

    async def deny(self, action_id: str, *, content: str = "", note: str = "") -> ActionRecord:
        """Refuse what awaits approval; the action fails."""
        return await self._changed(action_id, "deny", {"content": content, "note": note})

    async def _changed(self, action_id: str, verb: str, body: dict[str, str]) -> ActionRecord:
        view = await self._transport.ask(
            ActionView, "POST", _action(action_id, f"/{verb}"), body=body
        )
        return view.action

    # --- The host ---------------------------------------------------------------------------

    async def ready(self) -> Ready:
        """Whether the host takes new work. Needs no key."""
        return await self._transport.ask(Ready, "GET", "/readyz", accept=_READINESS)

    async def openapi(self) -> Raw:
        """The document that describes the API, as JSON. Needs no key."""
        return await self._transport.ask(Raw, "GET", "/v1/openapi.json")


def _segment(text: str) -> str:
    """One part of a path. Raises `UsageError` for what a path would not keep."""
    if not text or text in (".", ".."):
        msg = f"{text!r} is no name or id"
        raise UsageError(msg)
    return quote(text, safe="")


def _action(action_id: str, rest: str = "") -> str:
    return f"/v1/actions/{_segment(action_id)}{rest}"


def _events(subject: str) -> str:
    if is_session_id(subject):
        return f"/v1/sessions/{subject}/events"
    return _action(subject, "/events")
