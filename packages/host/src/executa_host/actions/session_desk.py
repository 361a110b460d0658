"""Sessions for callers: opened, attached to, resumed, closed (R-49, R-50).

Owns resume tokens as their holders see them: made here, given once, and never kept. A
rotated token comes of the old one, which only the client has, and a nonce, which only
the store has for a while: so the same request can be answered again, and nothing that
could be read gives a token.
"""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from typing import Final

from executa_host.actions import access
from executa_host.actions.board import Board
from executa_host.actions.decisions import check_words
from executa_host.actions.faults import Code, Invalid, NotFound
from executa_host.actions.feeds import check_limit
from executa_host.actions.interface import CloseOutcome, Opened, SessionPage
from executa_host.actions.limits import NAME_CHARS, RESUME_TOKEN_BYTES, RESUME_TOKEN_TTL
from executa_host.actions.operations import Attach, CloseSession, OpenSession, Rotate, TokenRecord
from executa_host.actions.records import SessionRecord, SessionState
from executa_host.actions.requests import EVERY_SESSION, Caller, Scope, SessionQuery
from executa_host.actions.validation import check_name
from executa_protocol.errors import UsageError
from executa_protocol.ids import is_session_id
from executa_protocol.limits import RESUME_WINDOW

_PURPOSE: Final = b"executa resume token\x00"
_ATTEMPT_CHARS: Final = 128

CancelOpen = Callable[[Caller, str], Awaitable[None]]
"""Asks the open actions of a session to end."""


class SessionDesk:
    """See `Sessions`."""

    def __init__(self, board: Board, cancel_open: CancelOpen) -> None:
        self._board = board
        self._cancel_open = cancel_open

    async def open(self, caller: Caller, *, responder: str, label: str = "") -> Opened:
        """See `Sessions.open`."""
        access.require(caller, Scope.SESSIONS)
        _check("responder", responder)
        check_words("label", label)
        token = secrets.token_urlsafe(RESUME_TOKEN_BYTES)
        opening = OpenSession(
            at_ms=self._board.now(),
            session_id=self._board.ids.session_id(),
            tenant=caller.tenant,
            initiator=caller.principal,
            responder=responder,
            label=label,
            token=self._record(caller, token),
        )
        return Opened(await self._board.store.apply(opening), token)

    async def attach(self, caller: Caller, session_id: str) -> Opened:
        """See `Sessions.attach`."""
        access.require(caller, Scope.SESSIONS)
        access.require_party(caller, await self._find(caller, session_id))
        token = secrets.token_urlsafe(RESUME_TOKEN_BYTES)
        attaching = Attach(
            at_ms=self._board.now(), session_id=session_id, token=self._record(caller, token)
        )
        return Opened(await self._board.store.apply(attaching), token)

    async def resume(self, caller: Caller, token: str, *, attempt_id: str) -> Opened:
        """See `Sessions.resume`."""
        access.require(caller, Scope.SESSIONS)
        _check("attempt_id", attempt_id, _ATTEMPT_CHARS)
        if not 1 <= len(token) <= NAME_CHARS or not token.isascii():
            raise NotFound(Code.RESUME_UNKNOWN, "no such resume token")
        now = self._board.now()
        nonce = secrets.token_hex(RESUME_TOKEN_BYTES)
        rotating = Rotate(
            at_ms=now,
            token_hash=_digest(token),
            tenant=caller.tenant,
            principal=caller.principal,
            attempt_hash=_digest(attempt_id),
            nonce=nonce,
            new_hash=_digest(_successor(token, nonce)),
            window_ms=int(RESUME_WINDOW * 1000),
            new_expires_at_ms=now + RESUME_TOKEN_TTL,
        )
        rotated = await self._board.store.apply(rotating)
        return Opened(rotated.session, _successor(token, rotated.nonce))

    async def get(self, caller: Caller, session_id: str) -> SessionRecord | None:
        """See `Sessions.get`."""
        access.require(caller, Scope.SESSIONS)
        try:
            return await self._find(caller, session_id)
        except NotFound:
            return None

    async def list(self, caller: Caller, query: SessionQuery = EVERY_SESSION) -> SessionPage:
        """See `Sessions.list`."""
        access.require(caller, Scope.SESSIONS)
        check_limit(query.limit)
        return await self._board.store.sessions(query, access.viewer(caller))

    async def close(
        self, caller: Caller, session_id: str, outcome: CloseOutcome = "completed"
    ) -> SessionRecord:
        """See `Sessions.close`."""
        access.require(caller, Scope.SESSIONS)
        await self._find(caller, session_id)
        closing = CloseSession(
            at_ms=self._board.now(), session_id=session_id, outcome=SessionState(outcome)
        )
        return await self._board.whole(self._close(caller, closing))

    async def _close(self, caller: Caller, closing: CloseSession) -> SessionRecord:
        closed = await self._board.store.apply(closing)
        if closing.outcome is not SessionState.COMPLETED:
            await self._cancel_open(caller, closing.session_id)
        return closed

    async def _find(self, caller: Caller, session_id: str) -> SessionRecord:
        found = await self._board.store.session(session_id) if is_session_id(session_id) else None
        return access.visible_session(caller, found, session_id)

    def _record(self, caller: Caller, token: str) -> TokenRecord:
        return TokenRecord(
            token_hash=_digest(token),
            chain=secrets.token_hex(16),
            principal=caller.principal,
            expires_at_ms=self._board.now() + RESUME_TOKEN_TTL,
        )


def _check(name: str, value: str, longest: int = NAME_CHARS) -> None:
    try:
        check_name(name, value, longest)
    except UsageError as fault:
        raise Invalid(Code.INVALID_REQUEST, str(fault), path=f"$.{name}") from fault


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _successor(token: str, nonce: str) -> str:
    """The token after `token`: 256 bits that take the old token and the nonce to know."""
    mac = hmac.new(token.encode(), _PURPOSE + bytes.fromhex(nonce), hashlib.sha256).digest()
    return urlsafe_b64encode(mac).rstrip(b"=").decode()
