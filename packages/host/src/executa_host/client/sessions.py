"""Durable sessions from anywhere (R-49, R-50).

Owns the attempt ids of resumes: the client chooses one for each resume and keeps it while it
asks again, so that a lost answer loses no token.
"""

import secrets
from typing import Any
from urllib.parse import quote

from executa_host.actions.interface import CloseOutcome, SessionPage
from executa_host.actions.records import SessionRecord
from executa_host.actions.requests import EVERY_SESSION, SessionQuery
from executa_host.api.shapes import SessionAnswer
from executa_host.client.errors import NotFound
from executa_host.client.shapes import Opened, Resumed
from executa_host.client.transport import Transport
from executa_protocol.limits import QUERY_DEFAULT


class SessionsClient:
    """`Client.sessions`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def open(self, responder: str, *, label: str = "") -> Opened:
        """A new session with `responder`. Not repeated after a lost answer."""
        body = {"responder": responder, "label": label}
        return await self._transport.ask(Opened, "POST", "/v1/handshake", body=body, safe=False)

    async def attach(self, session_id: str) -> Opened:
        """A resume token for a party that has none."""
        return await self._transport.ask(Opened, "POST", _session(session_id, "/attach"), body={})

    async def resume(
        self,
        resume_token: str,
        *,
        attempt_id: str = "",
        after: str | None = None,
        limit: int = QUERY_DEFAULT,
    ) -> Resumed:
        """Spend a token for the next one; with `after` the events since that cursor come too.

        Asked again after a lost answer it is the same attempt. Whoever asks again in another
        process gives the `attempt_id` of the first time.
        """
        body: dict[str, Any] = {
            "resume_token": resume_token,
            "attempt_id": attempt_id or secrets.token_urlsafe(16),
        }
        if after is not None:
            body |= {"after": after, "limit": limit}
        return await self._transport.ask(Resumed, "POST", "/v1/resume", body=body)

    async def get(self, session_id: str) -> SessionRecord | None:
        """The record; None for what is not there, or not this key's to see."""
        try:
            found = await self._transport.ask(SessionAnswer, "GET", _session(session_id))
        except NotFound:
            return None
        return found.session

    async def list(self, query: SessionQuery = EVERY_SESSION) -> SessionPage:
        """Sessions that fit."""
        given = {
            "state": ",".join(query.states),
            "principal": query.principal,
            "tenant": query.tenant,
            "cursor": query.cursor,
            "limit": str(query.limit),
            "order": "oldest" if query.oldest_first else "newest",
        }
        asked = {name: value for name, value in given.items() if value}
        return await self._transport.ask(SessionPage, "GET", "/v1/sessions", query=asked)

    async def close(self, session_id: str, outcome: CloseOutcome = "completed") -> SessionRecord:
        """End a session; again the same way is harmless."""
        found = await self._transport.ask(
            SessionAnswer, "POST", _session(session_id, "/close"), body={"outcome": outcome}
        )
        return found.session


def _session(session_id: str, rest: str = "") -> str:
    return f"/v1/sessions/{quote(session_id, safe='') or '-'}{rest}"
