"""What nexus and the plugin are told of an invoke (seed lifecycle, Per-invoke context; R-39).

Owns its id, its opening, the params on the wire and which credentials are in them. The
common case, an invoke that needs nothing of nexus, is written with its route's template: it
is on the hot path.
"""

import os
import time

from msgspec import UNSET, UnsetType

from executa_host.connection import Connection
from executa_host.invocation import ActiveInvoke, InvokeRefused
from executa_host.routing import ToolRoute
from executa_protocol import codec
from executa_protocol.aio.calls import Call
from executa_protocol.codes import wire_error
from executa_protocol.methods.invoke import InvokeContext
from executa_protocol.nexus import AppContext, InvokeOpening

_FULL = b'%b%b,"context":%b,"invoke_id":"%b"}'

_DIGITS = 13  # of a deadline
_DIGITS_HOLD = 10**_DIGITS

_AT_ONCE = 64
_FRESH: list[str] = []  # ids that nobody has used; a fork must not use them too
os.register_at_fork(after_in_child=_FRESH.clear)


def new_invoke_id() -> str:
    """32 hexadecimal digits (seed lifecycle, Per-invoke context; R-13)."""
    if not _FRESH:
        drawn = os.urandom(16 * _AT_ONCE).hex()  # a system call for each costs ten times as much
        _FRESH.extend(drawn[start : start + 32] for start in range(0, len(drawn), 32))
    return _FRESH.pop()


def opening_of(
    connection: Connection, tool: str, invoke_id: str, app: AppContext | None = None
) -> InvokeOpening:
    """What nexus is told before an invoke begins."""
    return InvokeOpening(
        user_id=connection.user_id,
        executa_tool_id=connection.spec.tool_id,
        plugin=connection.name,
        tool=tool,
        invoke_id=invoke_id,
        capabilities=connection.declared,
        credentials=connection.credentials,
        app=app,
    )


def invoke_params(
    connection: Connection,
    route: ToolRoute,
    arguments: bytes,
    active: ActiveInvoke,
    remaining: float,
) -> bytes:
    """The encoded params of `invoke`. `arguments` are encoded, `remaining` is in seconds.

    The id also stands beside the tool, where old samples read it (R-23). Raises
    `InvokeRefused` for a required credential that is not set.
    """
    deadline_ms = int((time.time() + remaining) * 1000)
    context = InvokeContext(
        invoke_id=active.invoke_id,
        deadline_ms=deadline_ms,
        credentials=_credentials(connection, active),
    )
    if connection.negotiated.is_v2:  # v1 invokes carry no tokens
        grant = active.grant
        if grant.sampling_token is not None:
            context.sampling_token = grant.sampling_token.value
        if grant.storage_token is not None:
            context.storage_token = grant.storage_token.value
    if active.parent is not None:
        context.parent_invoke_id = active.parent.invoke_id
    return _FULL % (route.head, arguments, codec.encode(context), active.invoke_id.encode())


def call_plainly(
    connection: Connection,
    route: ToolRoute,
    arguments: bytes,
    active: ActiveInvoke,
    remaining: float,
) -> Call:
    """Call a tool that needs nothing of nexus, for an invoke that is nested in no other."""
    name = active.invoke_id.encode()
    deadline_ms = int((time.time() + remaining) * 1000)
    parts = (arguments, name, deadline_ms, name)
    call = connection.peer.call_prepared(route.line, parts, remaining)
    digits = _DIGITS if deadline_ms < _DIGITS_HOLD else len(str(deadline_ms))
    active.ledger.bytes_out += route.around + len(arguments) + 2 * len(name) + digits
    return call


def _credentials(connection: Connection, active: ActiveInvoke) -> dict[str, str] | UnsetType:
    """The credentials that the manifest names; the spec's own win over nexus's."""
    manifest = connection.manifest
    if manifest is None or not manifest.credentials:
        return UNSET
    known = active.grant.credentials | connection.spec.credentials
    found: dict[str, str] = {}
    for credential in manifest.credentials:
        value = known.get(credential.name)
        if value is None and credential.default is not UNSET:
            value = credential.default
        if value is not None:
            found[credential.name] = value
        elif credential.required:
            text = f"{connection.name} needs the credential {credential.name}, which is not set"
            error = wire_error("INVALID_PARAMS", text, credential=credential.name)
            raise InvokeRefused(error.code, text, error.data)
    return found
