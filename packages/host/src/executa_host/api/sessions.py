"""Durable sessions over HTTP: the handshake, resume with replay, reading and closing.

Owns how a resume and the replay after it come in one answer. A resume token arrives in a
body and leaves in one, never in a URL, a header or a log (R-50).
"""

from aiohttp import web
from msgspec import UNSET

from executa_host.actions.faults import ActionsError, Code, NotFound
from executa_host.actions.interface import Actions, Opened
from executa_host.actions.requests import Scope, SessionQuery
from executa_host.api import auth
from executa_host.api.refusal import Refusal, answer
from executa_host.api.shapes import OpenedAnswer, ResumedAnswer, SessionAnswer
from executa_host.api.streams import Streams
from executa_host.api.visit import Lifeline, Visit
from executa_protocol.actions import ActionError
from executa_protocol.ids import is_session_id


class SessionHandlers:
    """The endpoints, by the names in `routes`."""

    def __init__(self, actions: Actions, lifeline: Lifeline, streams: Streams) -> None:
        self._actions = actions
        self._sessions = actions.sessions
        self._lifeline = lifeline
        self._streams = streams

    async def open(self, visit: Visit) -> web.Response:
        given = visit.body
        opening = self._sessions.open(visit.caller, responder=given.responder, label=given.label)
        return _opened(await self._lifeline.change(opening))

    async def attach(self, visit: Visit) -> web.Response:
        attaching = self._sessions.attach(visit.caller, _session_id(visit))
        return _opened(await self._lifeline.change(attaching))

    async def resume(self, visit: Visit) -> web.Response:
        """The token is spent when this answers: a replay that fails must not take it away."""
        given = visit.body
        resuming = self._sessions.resume(
            visit.caller, given.resume_token, attempt_id=given.attempt_id
        )
        opened = await self._lifeline.change(resuming)
        told = ResumedAnswer(opened.session, opened.resume_token)
        if given.after is not UNSET:
            told = await self._replayed(visit, opened)
        return answer(told)

    async def _replayed(self, visit: Visit, opened: Opened) -> ResumedAnswer:
        given = visit.body
        session, token = opened.session, opened.resume_token
        try:
            auth.check_scope(visit.caller.scopes, Scope.READ)
            page = await self._actions.events(
                visit.caller, session.session_id, given.after, limit=given.limit
            )
        except ActionsError as fault:
            return ResumedAnswer(session, token, replay_error=fault.as_error())
        except Refusal as fault:
            error = ActionError(fault.body.code, fault.body.message)
            return ResumedAnswer(session, token, replay_error=error)
        return ResumedAnswer(session, token, replay=page)

    async def list(self, visit: Visit) -> web.Response:
        given = visit.query
        query = SessionQuery(
            states=given.state,
            principal=given.principal,
            tenant=given.tenant,
            limit=given.limit,
            cursor=given.cursor,
            oldest_first=given.order == "oldest",
        )
        return answer(await self._sessions.list(visit.caller, query))

    async def get(self, visit: Visit) -> web.Response:
        session = await self._sessions.get(visit.caller, _session_id(visit))
        if session is None:
            raise _unknown()
        return answer(SessionAnswer(session))

    async def close(self, visit: Visit) -> web.Response:
        closing = self._sessions.close(visit.caller, _session_id(visit), visit.body.outcome)
        return answer(SessionAnswer(await self._lifeline.change(closing)))

    async def events(self, visit: Visit) -> web.StreamResponse:
        return await self._streams.answer(visit, _session_id(visit))


def _opened(opened: Opened) -> web.Response:
    return answer(OpenedAnswer(opened.session, opened.resume_token), status=201)


def _session_id(visit: Visit) -> str:
    session_id = visit.part("session_id")
    if not is_session_id(session_id):
        raise _unknown()
    return session_id


def _unknown() -> NotFound:
    return NotFound(Code.UNKNOWN_SESSION, "no such session, or not yours to see", path="session_id")
