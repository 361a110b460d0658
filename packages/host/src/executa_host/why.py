"""Which step would refuse a reverse call: the gate walked without a call (R-22)."""

import asyncio
from functools import partial

from executa_host.connection import Connection
from executa_host.request import new_invoke_id, opening_of
from executa_host.reverse.tokens import token_of
from executa_host.runtime import Runtime
from executa_protocol import gate
from executa_protocol.errors import UsageError
from executa_protocol.gate import Verdict
from executa_protocol.methods import METHODS
from executa_protocol.methods.info import MethodInfo
from executa_protocol.nexus import Grants, InvokeGrant, Nexus, NexusError


def method_of(name: str) -> MethodInfo:
    """A method that plugins can call. Raises `UsageError` for any other."""
    info = METHODS.get(name)
    if info is None or info.direction != "plugin_to_host" or info.kind != "request":
        msg = f"{name!r} is no method that a plugin can call"
        raise UsageError(msg)
    return info


def explain(
    method: MethodInfo,
    connection: Connection,
    now: float,
    *,
    grants: Grants | None = None,
    fresh: InvokeGrant | None = None,
) -> list[Verdict]:
    """One verdict a step.

    `grants` are what the user allowed when an invoke was last opened, `fresh` is what nexus
    says now, which also decides the token. `now` is epoch seconds.
    """
    known = grants if fresh is None else fresh.grants
    verdicts = gate.explain(
        method,
        connection.negotiated,
        connection.declared,
        grants=known,
        strict=connection.reader.strict,
    )
    if fresh is None:
        return verdicts
    refusal = gate.check_token(method, token_of(method, fresh), now)
    detail = "" if refusal is None else refusal.message
    token = Verdict("token", refusal is None, detail, refusal)
    return [token if each.step == "token" else each for each in verdicts]


async def ask_grant(nexus: Nexus, connection: Connection, runtime: Runtime) -> InvokeGrant:
    """What nexus would grant an invoke of this plugin now: opens one, and closes it.

    Raises `NexusError`.
    """
    probe = opening_of(connection, next(iter(connection.routes), ""), new_invoke_id())
    try:
        async with asyncio.timeout(runtime.patience.cleanup):
            return await nexus.open_invoke(probe)
    except TimeoutError:
        raise NexusError("nexus did not answer in time") from None
    finally:
        closing = partial(nexus.close_invoke, probe.invoke_id)
        runtime.background.run(closing, "closing a probe invoke", runtime.patience.cleanup)
