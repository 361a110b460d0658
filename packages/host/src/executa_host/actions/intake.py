"""How actions come in: submitted, or made anew of a dead letter (R-43, R-47)."""

from msgspec import UnsetType

from executa_host.actions import access
from executa_host.actions.acceptance import prepare
from executa_host.actions.board import Board
from executa_host.actions.contracts import Capability
from executa_host.actions.dispatch import Dispatcher
from executa_host.actions.faults import Code, Conflict, Gone, Invalid, NotFound, Unavailable
from executa_host.actions.interface import Submitted
from executa_host.actions.operations import Stored
from executa_host.actions.records import DeadLetter
from executa_host.actions.requests import EMPTY_INPUT, Caller, Scope, Submission
from executa_protocol.errors import UsageError


class Intake:
    """Accepts."""

    def __init__(self, board: Board, dispatcher: Dispatcher) -> None:
        self._board = board
        self._dispatcher = dispatcher

    async def submit(self, caller: Caller, submission: Submission) -> Submitted:
        """See `Actions.submit`."""
        access.require(caller, Scope.SUBMIT)
        return await self._accept(caller, submission)

    async def redrive(self, caller: Caller, action_id: str, idempotency_key: str) -> Submitted:
        """See `Actions.redrive`."""
        access.require(caller, Scope.REDRIVE)
        found = await self._board.store.action(action_id, input=True)
        stored = access.visible(caller, found, action_id)
        letter = stored.record.dead_letter
        if not isinstance(letter, DeadLetter):
            msg = f"{action_id} is no dead letter: it is {stored.record.state}"
            raise Conflict(Code.NOT_DEAD_LETTERED, msg)
        if letter.redriven_as:
            return await self._replayed(letter.redriven_as)
        terms = stored.terms
        again = Submission(
            capability=stored.record.capability,
            input=EMPTY_INPUT
            if isinstance(stored.record.input, UnsetType)
            else stored.record.input,
            mode=terms.mode,
            idempotency_key=idempotency_key,
            timeout_ms=terms.timeout_ms,
            session_id=await self._open_session(stored),
            context=terms.context,
            callback=terms.callback,
            approval="" if isinstance(stored.record.approval, UnsetType) else "ask",
            transaction=terms.transaction,
        )
        return await self._accept(caller, again, stored)

    async def _open_session(self, stored: Stored) -> str:
        """The old action's session, if it still takes actions."""
        session_id = stored.record.session_id
        found = await self._board.store.session(session_id) if session_id else None
        ended = found is None or getattr(found, "outcome", "gone")
        return "" if ended else session_id

    async def _accept(
        self, caller: Caller, submission: Submission, origin: Stored | None = None
    ) -> Submitted:
        self._check_room()
        user_id = caller.user_id if origin is None else origin.terms.user_id
        capability = await self._capability(submission.capability, user_id)
        parties: tuple[str, ...] = ()
        if submission.session_id:
            parties = await self._parties(caller, submission.session_id, origin)
        try:
            prepared = prepare(
                caller,
                submission,
                capability,
                self._board.settings,
                action_id=self._board.ids.action_id(),
                at_ms=self._board.now(),
                origin=origin,
            )
            if origin is not None:
                prepared.accept.step = "redrive"
            accepted = await self._board.store.apply(prepared.accept)
        except UsageError as fault:
            raise Invalid(Code.INVALID_REQUEST, str(fault)) from fault
        if accepted.replayed:
            return await self._replayed(accepted.action_id)
        stored = prepared.stored
        stored.parties = parties
        record = stored.record
        item = self._board.add(stored)
        item.input = self._board.kept(submission.input)
        self._dispatcher.admit(item)
        return Submitted(record)

    async def _replayed(self, action_id: str) -> Submitted:
        known = self._board.items.get(action_id)
        if known is not None:
            return Submitted(known.stored.record, replayed=True)
        found = await self._board.store.action(action_id)
        if not isinstance(found, Stored):
            raise Gone(Code.REMOVED, f"retention removed {action_id}")
        return Submitted(found.record, replayed=True)

    def _check_room(self) -> None:
        if self._board.draining:
            raise Unavailable(Code.DRAINING, "the host is stopping; submit again later")
        if len(self._board.items) >= self._board.settings.open_actions:
            msg = f"{len(self._board.items):,} actions are open already; submit again later"
            raise Unavailable(Code.QUEUE_FULL, msg)

    async def _capability(self, name: str, user_id: str) -> Capability:
        found = await self._board.catalog.find(name, user_id)
        if found is None:
            msg = f"there is no capability {name[:80]!r}"
            raise Invalid(Code.UNKNOWN_CAPABILITY, msg, path="$.capability")
        return found

    async def _parties(
        self, caller: Caller, session_id: str, origin: Stored | None
    ) -> tuple[str, ...]:
        """The parties of a session that the caller may put actions into, or had one in."""
        if origin is not None:
            return origin.parties
        found = await self._board.store.session(session_id)
        session = access.visible_session(caller, found, session_id)
        if session.tenant != caller.tenant:
            raise NotFound(Code.UNKNOWN_SESSION, f"there is no session {session_id}")
        access.require_party(caller, session)
        return session.initiator, session.responder
