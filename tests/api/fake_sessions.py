"""The sessions of the engine in memory."""

import secrets
from typing import TYPE_CHECKING

from msgspec import structs

from executa_host.actions import faults
from executa_host.actions.faults import Code
from executa_host.actions.interface import CloseOutcome, Opened, SessionPage
from executa_host.actions.records import SessionRecord, SessionState
from executa_host.actions.requests import EVERY_SESSION, Caller, Scope, SessionQuery
from tests.api.fake_log import Log, need

if TYPE_CHECKING:
    from tests.api.fake import FakeActions


class FakeSessions:
    """Implements `executa_host.actions.interface.Sessions`."""

    def __init__(self, actions: "FakeActions") -> None:
        self._actions = actions
        self.records: dict[str, SessionRecord] = {}
        self.tokens: dict[str, tuple[str, str]] = {}
        self.attempts: dict[str, tuple[str, str]] = {}

    def seen(self, caller: Caller, session_id: str) -> SessionRecord:
        record = self.records.get(session_id)
        if record is not None:
            party = caller.principal in (record.initiator, record.responder)
            same = record.tenant == caller.tenant and (party or Scope.TENANT in caller.scopes)
            if same or Scope.ADMIN in caller.scopes:
                return record
        raise faults.NotFound(Code.UNKNOWN_SESSION, "no such session")

    def _token(self, caller: Caller, session_id: str) -> Opened:
        token = secrets.token_urlsafe(32)
        self.tokens[token] = (session_id, caller.principal)
        return Opened(self.records[session_id], token)

    async def open(self, caller: Caller, *, responder: str, label: str = "") -> Opened:
        need(caller, Scope.SESSIONS)
        session_id = self._actions.ids.session_id()
        self._actions.logs[session_id] = Log()
        self.records[session_id] = SessionRecord(
            session_id=session_id,
            tenant=caller.tenant,
            initiator=caller.principal,
            responder=responder,
            state=SessionState.NEW,
            created_at_ms=1,
            updated_at_ms=1,
            cursor="",
            floor="",
            label=label,
        )
        return self._token(caller, session_id)

    async def attach(self, caller: Caller, session_id: str) -> Opened:
        need(caller, Scope.SESSIONS)
        return self._token(caller, self.seen(caller, session_id).session_id)

    async def resume(self, caller: Caller, token: str, *, attempt_id: str) -> Opened:
        need(caller, Scope.SESSIONS)
        if token in self.attempts:
            attempt, new = self.attempts[token]
            if attempt != attempt_id:
                raise faults.Conflict(Code.RESUME_CONFLICT, "another attempt was first")
            return Opened(self.records[self.tokens[new][0]], new)
        session_id, principal = self.tokens.get(token, ("", ""))
        if principal != caller.principal:
            raise faults.NotFound(Code.RESUME_UNKNOWN, "no such token")
        opened = self._token(caller, session_id)
        self.attempts[token] = (attempt_id, opened.resume_token)
        return opened

    async def get(self, caller: Caller, session_id: str) -> SessionRecord | None:
        need(caller, Scope.SESSIONS)
        try:
            return self.seen(caller, session_id)
        except faults.NotFound:
            return None

    async def list(self, caller: Caller, query: SessionQuery = EVERY_SESSION) -> SessionPage:
        need(caller, Scope.SESSIONS)
        if query.cursor:
            raise faults.Invalid(Code.CURSOR_INVALID, "no cursor of this", path="query.cursor")
        found = [each for each in self.records.values() if self._sees(caller, each)]
        return SessionPage(tuple(found[: query.limit]))

    def _sees(self, caller: Caller, record: SessionRecord) -> bool:
        try:
            return self.seen(caller, record.session_id) is record
        except faults.NotFound:
            return False

    async def close(
        self, caller: Caller, session_id: str, outcome: CloseOutcome = "completed"
    ) -> SessionRecord:
        need(caller, Scope.SESSIONS)
        record = self.seen(caller, session_id)
        if record.outcome and record.outcome != outcome:
            raise faults.Conflict(Code.SESSION_ENDED, "it was closed another way")
        closed = structs.replace(record, state=SessionState(outcome), outcome=outcome)
        self.records[session_id] = closed
        return closed
