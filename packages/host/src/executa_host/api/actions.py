"""Actions and capabilities over HTTP: each endpoint asks the engine one thing.

Owns what a method's outcome is as an answer: its status, its headers, and `unknown` for what
the caller may not see (R-41). Every rule about actions is the engine's.
"""

from typing import Final

from aiohttp import web
from msgspec import UNSET, structs

from executa_host.actions.faults import Code, NotFound
from executa_host.actions.interface import Actions, Outcome, Submitted
from executa_host.actions.records import ActionResult, ActionView, Mode
from executa_host.actions.requests import ActionQuery, Caller, Scope
from executa_host.api import auth
from executa_host.api.endpoint import BASE
from executa_host.api.refusal import Refusal, answer, body_of, refused
from executa_host.api.shapes import Capabilities, CapabilityAnswer, SubmitAnswer
from executa_host.api.streams import Streams
from executa_host.api.visit import Closing, Lifeline, Pace, Visit
from executa_protocol.actions import TERMINAL, UNKNOWN
from executa_protocol.ids import is_action_id

_REPLAYED: Final = {"Idempotency-Replayed": "true"}


class ActionHandlers:
    """The endpoints, by the names in `routes`."""

    def __init__(self, actions: Actions, lifeline: Lifeline, streams: Streams, pace: Pace) -> None:
        self._actions = actions
        self._lifeline = lifeline
        self._streams = streams
        self._pace = pace

    # --- Capabilities --------------------------------------------------------------------

    async def capabilities(self, visit: Visit) -> web.Response:
        return answer(Capabilities(await self._actions.capabilities(visit.caller)))

    async def capability(self, visit: Visit) -> web.Response:
        contract = await self._actions.capability(visit.caller, visit.part("name"))
        if contract is None:
            raise Refusal(404, Code.UNKNOWN_CAPABILITY, "no capability has this name", path="name")
        return answer(CapabilityAnswer(contract))

    # --- Submitting ------------------------------------------------------------------------

    async def submit(self, visit: Visit) -> web.Response:
        """202 once the action is on disk; a `sync` one is waited for, and 200 if it ended."""
        sync = visit.body.mode is Mode.SYNC
        if sync:  # whoever waits for a result reads it
            auth.check_scope(visit.caller.scopes, Scope.READ)
        submitted = await self._lifeline.change(self._actions.submit(visit.caller, visit.body))
        result: ActionResult | None = None
        if sync:
            outcome = await self._outcome(visit.caller, submitted.action.action_id, self._pace.sync)
            submitted = structs.replace(submitted, action=outcome.action)
            result = outcome.result
        return _submitted(submitted, result)

    async def redrive(self, visit: Visit) -> web.Response:
        again = self._actions.redrive(
            visit.caller, _action_id(visit), idempotency_key=visit.body.idempotency_key
        )
        return _submitted(await self._lifeline.change(again), None)

    # --- Reading -----------------------------------------------------------------------------

    async def list(self, visit: Visit) -> web.Response:
        given = visit.query
        query = ActionQuery(
            states=given.state,
            capability=given.capability,
            session_id=given.session,
            principal=given.principal,
            approval=given.approval,
            transaction_id=given.transaction,
            tenant=given.tenant,
            limit=given.limit,
            cursor=given.cursor,
            oldest_first=given.order == "oldest",
        )
        return answer(await self._actions.list(visit.caller, query))

    async def get(self, visit: Visit) -> web.Response:
        """An action that is not there reads as `unknown`, with the refusal beside it (R-41)."""
        action_id = visit.part("action_id")
        view: ActionView | None = None
        if is_action_id(action_id):
            include = frozenset(visit.query.include)
            view = await self._actions.get(visit.caller, action_id, include)
        if view is None:
            sentinel = {"action_id": action_id[:64], "state": UNKNOWN}
            return refused(404, body_of(_unknown()), action=sentinel)
        return answer(view)

    async def result(self, visit: Visit) -> web.Response:
        return answer(await self._outcome(visit.caller, _action_id(visit), visit.query.wait))

    async def events(self, visit: Visit) -> web.StreamResponse:
        return await self._streams.answer(visit, _action_id(visit))

    # --- Deciding ------------------------------------------------------------------------------

    async def cancel(self, visit: Visit) -> web.Response:
        asked = self._actions.cancel(visit.caller, _action_id(visit), visit.body.reason)
        return answer(ActionView(await self._lifeline.change(asked)))

    async def approve(self, visit: Visit) -> web.Response:
        return await self._decide(visit, approve=True)

    async def deny(self, visit: Visit) -> web.Response:
        return await self._decide(visit, approve=False)

    async def _decide(self, visit: Visit, *, approve: bool) -> web.Response:
        decide = self._actions.approve if approve else self._actions.deny
        given = visit.body
        decision = decide(visit.caller, _action_id(visit), content=given.content, note=given.note)
        return answer(ActionView(await self._lifeline.change(decision)))

    async def _outcome(self, caller: Caller, action_id: str, wait: float) -> Outcome:
        """A wait ends when the server goes away: then the record as it is answers (R-51)."""
        try:
            return await self._lifeline.wait(self._actions.result(caller, action_id, wait))
        except Closing:
            return await self._actions.result(caller, action_id, 0.0)


def _submitted(submitted: Submitted, result: ActionResult | None) -> web.Response:
    action = submitted.action
    headers = {"Location": f"{BASE}/actions/{action.action_id}"}
    if submitted.replayed:
        headers |= _REPLAYED
    body = SubmitAnswer(action, submitted.replayed, UNSET if result is None else result)
    return answer(body, status=200 if action.state in TERMINAL else 202, headers=headers)


def _action_id(visit: Visit) -> str:
    """The id in the path. What has no id's form is unknown without a look into the store."""
    action_id = visit.part("action_id")
    if not is_action_id(action_id):
        raise _unknown()
    return action_id


def _unknown() -> NotFound:
    return NotFound(Code.UNKNOWN_ACTION, "no such action, or not yours to see", path="action_id")
