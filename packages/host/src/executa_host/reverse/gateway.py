"""The way of a reverse call, read from top to bottom (R-22).

negotiated → manifest → correlate → grant → token → scope → budget → nexus: the
first step that says no answers. Every request is answered exactly once (R-04): by its
result, by the step that refused it, or by what ended its invoke.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from msgspec import UNSET

from executa_host.connection import Connection
from executa_host.invocation import ActiveInvoke
from executa_host.reverse import records
from executa_host.reverse.call import Failed, Refused, ReverseCall, insist
from executa_host.reverse.correlate import correlate, find
from executa_host.reverse.progress import take_progress
from executa_host.reverse.tokens import Tokens, is_old, token_of
from executa_host.reverse.upstream import upstream_error
from executa_host.runtime import Runtime
from executa_protocol import gate
from executa_protocol.codes import ErrorObject, wire_error
from executa_protocol.envelope import Id, Message
from executa_protocol.errors import DecodeFailure, RpcError, StrictRefusal
from executa_protocol.gate import Refusal
from executa_protocol.limits import OPEN_REVERSE_CALLS
from executa_protocol.methods import METHODS, canonical_name
from executa_protocol.methods.info import MethodInfo
from executa_protocol.methods.progress import METHOD as PROGRESS
from executa_protocol.methods.reading import refusal as invalid_params
from executa_protocol.methods.sampling import glance_at_sampling
from executa_protocol.nexus import NexusError, Token

_log: Final = logging.getLogger(__name__)

_NAME_CHARS: Final = 80
"""Of a method that a plugin made up: what followers get to see."""

_GLANCES: Final = {"sampling/createMessage": glance_at_sampling}
"""Methods whose params are read once, for their invoke's id and for what they ask."""

Serve = Callable[[ReverseCall], Awaitable[bytes]]
"""Serves a call that has passed the gate; gives the encoded result."""


class Gateway:
    """Lets reverse calls through or turns them down. `serve` says what serves what passes."""

    def __init__(self, runtime: Runtime, tokens: Tokens) -> None:
        self._runtime = runtime
        self._strict = runtime.strict
        self._now, self._monotonic = runtime.clock.now, runtime.clock.monotonic
        self._shared = runtime.background.shared
        self._tokens = tokens
        self._routes: Mapping[str, Serve] = {}
        self._served: Mapping[str, MethodInfo] = {}
        """What a plugin may call, by its proper name."""

    def serve(self, routes: Mapping[str, Serve]) -> None:
        """Serve these methods."""
        self._routes = routes
        self._served = {name: METHODS[name] for name in routes}

    def note(self, connection: Connection, notification: Message) -> None:
        """Take progress, and drop any other notification: none is ever answered."""
        try:
            name = canonical_name(str(notification.method), connection.reader)
        except StrictRefusal:
            return
        if name == PROGRESS:
            take_progress(connection, notification, self._runtime.clock)

    def take(self, connection: Connection, request: Message) -> None:
        """Turn a request down at once, or begin to serve it.

        Which invoke it belongs to is decided now, in the order in which lines came. Only a
        call that comes before its plugin is up waits a turn: the answer to the handshake may
        have come with it.
        """
        if connection.manifest is None:
            asyncio.get_running_loop().call_soon(self._take, connection, request)
        else:
            self._take(connection, request)

    def _take(self, connection: Connection, request: Message) -> None:
        name = str(request.method)
        started = self._monotonic()
        glance = _GLANCES.get(name)
        params = None if glance is None else glance(request.params)
        if (
            params is not None
            and params.context is not UNSET
            and (named := params.context.invoke_id) is not UNSET
        ):
            owner = find(named, connection.invokes)
        else:
            owner = correlate(request.params, connection.invokes)
        identity: Id = None if request.id is UNSET else request.id
        try:
            method = self._served.get(name)
            if method is None:
                method = self._known(canonical_name(name, connection.reader))
            insist(self._of_plugin(connection, method))
            invoke = _correlated(owner)
            _check_open(connection)
        except (Refused, Failed, StrictRefusal) as no:
            error = _error_of(name, no)
            whose = None if isinstance(owner, Refusal) else owner
            records.turned_down(connection, name[:_NAME_CHARS], whose, error, no)
            connection.peer.fail(identity, error)
            return
        invoke.reverse_count += 1
        call = ReverseCall(
            connection=connection,
            identity=identity,
            name=name,
            method=method,
            raw=request.params,
            invoke=invoke,
            number=invoke.reverse_count,
            started=started,
            params=params,
        )
        self._shared.run(self._serve, call, _waits)

    async def _serve(self, call: ReverseCall) -> None:
        """Serve one call and answer it, whatever happens."""
        connection, method, invoke = call.connection, call.method, call.invoke
        if connection.followers.callbacks:
            records.began(call)
        if invoke.ended or invoke.cancelling is not None or connection.peer.closed:
            self._fail(call, _ended_error())
            return
        try:
            token = token_of(method, invoke.grant)
            if token is None or is_old(token, self._now()):
                token = await self._renewed(call, token)
            else:  # and so it has not expired
                insist(gate.check_grant(method, invoke.grant.grants))
            if call.params is None and method.read is not None:
                call.params = method.read(call.raw, connection.reader)
            if method.chapter == "storage":
                scope = getattr(call.params, "scope", UNSET)
                insist(gate.check_scope(method, None if scope is UNSET else scope, token))
            result = await self._routes[method.name](call)
        except asyncio.CancelledError:
            self._fail(call, _ended_error())
            raise
        except Exception as fault:  # noqa: BLE001 - every request is answered (R-04)
            refusal = fault.refusal if isinstance(fault, Refused) else None
            self._fail(call, _error_of(method.name, fault), refusal)
        else:
            records.ended(call, None, None, len(result), self._monotonic)
            connection.peer.reply(call.identity, result)

    def _fail(self, call: ReverseCall, error: ErrorObject, refusal: Refusal | None = None) -> None:
        records.ended(call, error, refusal, 0, self._monotonic)
        call.connection.peer.fail(call.identity, error)

    # --- The chain ----------------------------------------------------------------------

    def _known(self, name: str) -> MethodInfo:
        method = METHODS.get(name)
        if method is None or method.direction != "plugin_to_host" or method.kind != "request":
            raise Failed(wire_error("METHOD_NOT_FOUND", f"this host has no method {name[:80]!r}"))
        if name not in self._routes:
            raise Failed(wire_error("UNMAPPED_METHOD", f"this host does not serve {name}"))
        return method

    def _of_plugin(self, connection: Connection, method: MethodInfo) -> Refusal | None:
        """What the handshake and the manifest say, which holds for the life of the process."""
        name = method.name
        if name not in connection.gate:
            strict = self._strict
            connection.gate[name] = gate.check_negotiated(
                method, connection.negotiated, strict=strict
            ) or gate.check_manifest(method, connection.declared, strict=strict)
        return connection.gate[name]

    async def _renewed(self, call: ReverseCall, token: Token | None) -> Token | None:
        """Grant and token of a call whose token is old, if there is one."""
        method, invoke = call.method, call.invoke
        insist(gate.check_grant(method, invoke.grant.grants))
        if token is not None:
            token = await self._tokens.renewed(method, invoke, token)
            # The user may have changed his mind.
            insist(gate.check_grant(method, invoke.grant.grants))
        insist(gate.check_token(method, token, self._now()))
        return token


def _waits(call: ReverseCall, task: "asyncio.Task[None]") -> None:
    """The call is not answered at once: it ends with its process and its invoke."""
    tasks = call.connection.reverse_tasks
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    call.invoke.serve(task)


def _correlated(owner: ActiveInvoke | Refusal) -> ActiveInvoke:
    if isinstance(owner, Refusal):
        raise Refused(owner)
    return owner


def _check_open(connection: Connection) -> None:
    if connection.peer.open_requests > OPEN_REVERSE_CALLS:  # itself among them
        text = f"{OPEN_REVERSE_CALLS:,} calls are open; wait for answers"
        raise Failed(wire_error("TOO_MANY_CALLS", text))


def _ended_error() -> ErrorObject:
    return wire_error("INVOKE_CANCELLED", "the invoke that this call belongs to has ended")


def _error_of(name: str, fault: Exception) -> ErrorObject:
    """The answer that a fault means. The full story of one of our own goes to the log."""
    method = METHODS.get(name)
    if isinstance(fault, Refused):
        return fault.refusal.error
    if isinstance(fault, Failed):
        return fault.error
    if isinstance(fault, DecodeFailure | StrictRefusal):
        return invalid_params(fault, "INVALID_PARAMS" if method is None else method.invalid)
    if isinstance(fault, NexusError):
        return upstream_error("" if method is None else method.chapter, fault)
    if isinstance(fault, RpcError):
        return ErrorObject(fault.code, fault.message, fault.data or UNSET)
    _log.error("serving %s failed", name, exc_info=fault)
    return wire_error("INTERNAL_ERROR", "the host failed to serve this call")
