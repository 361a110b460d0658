"""The way of a reverse call, read from top to bottom (R-22).

negotiated → manifest → correlate → grant → token → scope → budget → nexus: the
first step that says no answers. Every request is answered exactly once (R-04): by its
result, by the step that refused it, or by what ended its invoke.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, cast

from msgspec import UNSET, Raw, UnsetType

from executa_host.connection import Connection
from executa_host.phases import ms_since
from executa_host.reverse.call import Failed, Refused, ReverseCall, insist
from executa_host.reverse.correlate import correlate
from executa_host.reverse.upstream import upstream_error
from executa_protocol import gate, transcript
from executa_protocol.codes import ErrorObject, find, wire_error
from executa_protocol.envelope import Id, Message
from executa_protocol.errors import DecodeFailure, RpcError, StrictRefusal, UsageError
from executa_protocol.gate import Refusal
from executa_protocol.limits import TOKEN_RENEW_BEFORE
from executa_protocol.methods import METHODS, canonical_name
from executa_protocol.methods.info import MethodInfo
from executa_protocol.methods.progress import METHOD as PROGRESS
from executa_protocol.methods.progress import read_progress
from executa_protocol.methods.reading import refusal as invalid_params
from executa_protocol.nexus import InvokeGrant, Nexus, NexusError, Token

Serve = Callable[[ReverseCall], Awaitable[bytes]]
"""Serves a call that has passed the gate; gives the encoded result."""


class Trouble(Protocol):
    """Where a fault of the host itself is told in full."""

    def __call__(self, what: str, fault: BaseException) -> None: ...


class Gateway:
    """Lets reverse calls through or turns them down. `routes` serve what passes, by method."""

    def __init__(
        self, nexus: Nexus, routes: Mapping[str, Serve], *, strict: bool, trouble: Trouble
    ) -> None:
        self._nexus = nexus
        self._routes = routes
        self._strict = strict
        self._trouble = trouble

    def take(self, connection: Connection, request: Message) -> None:
        """Begin to serve a request; it is answered whenever it is ready."""
        serving = self._answer(connection, request)
        task = asyncio.get_running_loop().create_task(serving)
        connection.reverse_tasks.add(task)
        task.add_done_callback(connection.reverse_tasks.discard)

    def note(self, connection: Connection, notification: Message) -> None:
        """Pass progress on to whoever follows its invoke; drop any other notification.

        A notification is never answered, so what is wrong with one is dropped too.
        """
        reader = connection.reader()
        if canonical_name(str(notification.method), reader) != PROGRESS:
            return
        invoke = correlate(notification.params, connection.invokes)
        if isinstance(invoke, Refusal) or isinstance(notification.params, UnsetType):
            return
        try:
            params = read_progress(notification.params, reader)
        except (DecodeFailure, StrictRefusal):
            return
        data = Raw(b"null") if params.data is UNSET else params.data
        event = transcript.Progress(
            at=time.time(), plugin=connection.name, invoke_id=invoke.invoke_id, params=data
        )
        connection.emit(event)
        if invoke.on_progress is not None:
            invoke.on_progress(data)

    async def _answer(self, connection: Connection, request: Message) -> None:
        """Serve one request and answer it, whatever happens."""
        identity: Id = None if request.id is UNSET else request.id
        record = _Record(connection, str(request.method))
        try:
            method = self._known(canonical_name(record.name, connection.reader()))
            record.begin(self._correlated(connection, method, request))
            result = await self._served(record.correlated)
        except Refused as turned_down:
            record.end(turned_down.refusal.error, turned_down.refusal)
            connection.peer.fail(identity, turned_down.refusal.error)
        except asyncio.CancelledError:
            error = wire_error("INVOKE_CANCELLED", "the invoke that this call belongs to has ended")
            record.end(error)
            connection.peer.fail(identity, error)
            raise
        except Exception as fault:  # noqa: BLE001 - every request is answered (R-04)
            error = self._error_of(record.name, fault)
            record.end(error)
            connection.peer.fail(identity, error)
        else:
            record.end(None)
            connection.peer.reply(identity, result)

    # --- The chain ----------------------------------------------------------------------

    def _known(self, name: str) -> MethodInfo:
        method = METHODS.get(name)
        if method is None or method.direction != "plugin_to_host" or method.kind != "request":
            raise Failed(wire_error("METHOD_NOT_FOUND", f"this host has no method {name[:80]!r}"))
        if name not in self._routes:
            raise Failed(wire_error("UNMAPPED_METHOD", f"this host does not serve {name}"))
        return method

    def _correlated(
        self, connection: Connection, method: MethodInfo, request: Message
    ) -> ReverseCall:
        manifest = connection.manifest
        declared = manifest.declared() if manifest else ()
        insist(gate.check_negotiated(method, connection.negotiated, strict=self._strict))
        insist(gate.check_manifest(method, declared, strict=self._strict))
        invoke = correlate(request.params, connection.invokes)
        if isinstance(invoke, Refusal):
            raise Refused(invoke)
        return ReverseCall(connection, method, request.params, invoke)

    async def _served(self, call: ReverseCall) -> bytes:
        method, invoke = call.method, call.invoke
        insist(gate.check_grant(method, invoke.grant.grants))
        token = await self._fresh_token(call)
        insist(gate.check_token(method, token, time.time()))
        if method.read is not None:
            call.params = method.read(call.raw, call.connection.reader())
        scope = getattr(call.params, "scope", UNSET)
        insist(gate.check_scope(method, None if scope is UNSET else scope, token))
        return await self._routes[method.name](call)

    async def _fresh_token(self, call: ReverseCall) -> Token | None:
        """The invoke's token, renewed if it is about to expire (R-39)."""
        invoke = call.invoke
        token = _token_of(call.method, invoke.grant)
        if token is None or token.expires_at - time.time() > TOKEN_RENEW_BEFORE:
            return token
        if invoke.renewing is None:
            # One renewal for all calls that find the token old at the same time.
            renewal = self._nexus.renew_invoke(invoke.invoke_id)
            invoke.renewing = asyncio.ensure_future(renewal)
        try:
            invoke.grant = await asyncio.shield(invoke.renewing)
        finally:
            invoke.renewing = None
        return _token_of(call.method, invoke.grant)

    # --- Answers and trace -----------------------------------------------------------------

    def _error_of(self, name: str, fault: Exception) -> ErrorObject:
        method = METHODS.get(name)
        if isinstance(fault, Failed):
            return fault.error
        if isinstance(fault, DecodeFailure | StrictRefusal):
            return invalid_params(fault, "INVALID_PARAMS" if method is None else method.invalid)
        if isinstance(fault, NexusError):
            return upstream_error("" if method is None else method.chapter, fault)
        if isinstance(fault, RpcError):
            return ErrorObject(fault.code, fault.message, fault.data or UNSET)
        self._trouble(f"serving {name}", fault)
        return wire_error("INTERNAL_ERROR", "the host failed to serve this call")


class _Record:
    """What the trace and the ledger get to know of one reverse call."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.name = name
        self._connection = connection
        self._call: ReverseCall | None = None
        self._number = 0
        self._started = time.monotonic()

    @property
    def correlated(self) -> ReverseCall:
        """The call; it has begun."""
        if self._call is None:
            msg = f"{self.name} has not been correlated"
            raise UsageError(msg)
        return self._call

    def begin(self, call: ReverseCall) -> None:
        """The call belongs to an invoke now, and ends with it."""
        self._call = call
        invoke = call.invoke
        invoke.reverse_count += 1
        self._number = invoke.reverse_count
        task = asyncio.current_task()
        if task is not None:
            invoke.tasks.add(task)
            task.add_done_callback(invoke.tasks.discard)
        self._connection.emit(
            transcript.ReverseStarted(
                at=time.time(),
                plugin=self._connection.name,
                method=self.name,
                call=self._number,
                invoke_id=invoke.invoke_id,
            )
        )

    def end(self, error: ErrorObject | None, refusal: Refusal | None = None) -> None:
        """The call is about to be answered."""
        call = self._call
        if refusal is not None and call is not None:
            call.invoke.ledger.denied += 1
        row = None if error is None else find(error.code, _symbol_of(error))
        self._connection.emit(
            transcript.ReverseEnded(
                at=time.time(),
                plugin=self._connection.name,
                method=self.name,
                call=self._number,
                verdict="served" if error is None else "refused" if refusal else "failed",
                ms=ms_since(self._started),
                invoke_id="" if call is None else call.invoke.invoke_id,
                step="" if refusal is None else refusal.step,
                code=0 if error is None else error.code,
                symbol="" if row is None else row.symbol,
                message="" if error is None else error.message,
                tokens=0 if call is None else call.tokens,
            )
        )


def _token_of(method: MethodInfo, grant: InvokeGrant) -> Token | None:
    return grant.storage_token if method.chapter == "storage" else grant.sampling_token


def _symbol_of(error: ErrorObject) -> str:
    data: object = error.data
    symbol = cast("dict[str, object]", data).get("errorCode") if isinstance(data, dict) else None
    return symbol if isinstance(symbol, str) else ""
