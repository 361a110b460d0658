"""One invoke from its opening at nexus to its outcome.

Owns what goes into the request and what is cleaned up after it, whatever ends it. Which
plugin answers, and how it is kept running, is decided above.
"""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from executa_host.connection import Connection
from executa_host.invocation import ActiveInvoke, InvokeOutcome, InvokeRefused, InvokeTimeout
from executa_host.phases import ms_since
from executa_host.reverse.budget import Budget
from executa_host.reverse.upstream import upstream_error
from executa_protocol import codec, transcript
from executa_protocol.aio.calls import Call
from executa_protocol.codes import wire_error
from executa_protocol.errors import CallTimeout, ExecutaError, RpcError
from executa_protocol.limits import MAX_INLINE_RESULT
from executa_protocol.manifest import Manifest, Tool
from executa_protocol.methods.invoke import InvokeContext, InvokeParams, read_invoke_result
from executa_protocol.nexus import InvokeOpening, Nexus, NexusError

Background = Callable[[Any], None]
"""Runs a coroutine to its end, tracked by the host."""


class Invoker:
    """Runs invokes on connections that are ready."""

    def __init__(self, nexus: Nexus, background: Background) -> None:
        self._nexus = nexus
        self._background = background

    async def invoke(
        self, connection: Connection, tool: Tool, arguments: bytes, active: ActiveInvoke
    ) -> InvokeOutcome:
        """Run one tool.

        Raises `InvokeTimeout`, `ConnectionLost` and other `CallFailed`, `RpcError` for what
        the plugin answers with an error, `InvokeRefused` for what the host refuses.
        """
        started = time.monotonic()
        outcome = "INTERNAL_ERROR"
        opened = await self._open(connection, active)
        connection.invokes[active.invoke_id] = active
        connection.emit(
            transcript.InvokeStarted(
                at=time.time(),
                plugin=connection.name,
                invoke_id=active.invoke_id,
                tool=tool.name,
                parent="" if active.parent is None else active.parent.invoke_id,
            )
        )
        try:
            result = await self._call(connection, tool, arguments, active)
            outcome = "ok" if result.success else "tool_failed"
        except RpcError as fault:
            outcome = fault.symbol or str(fault.code)
            raise
        except (ExecutaError, asyncio.CancelledError) as fault:
            outcome = type(fault).__name__
            raise
        finally:
            self._end(connection, active, tool.name, outcome, started)
            if opened:
                self._background(self._nexus.close_invoke(active.invoke_id))
        return result

    # --- Before ----------------------------------------------------------------------------

    async def _open(self, connection: Connection, active: ActiveInvoke) -> bool:
        """Ask nexus for tokens and grants, if the manifest wants any (R-39)."""
        manifest = connection.manifest
        if manifest is None or not (manifest.declared() or manifest.credentials):
            return False
        opening = InvokeOpening(
            user_id=active.user_id,
            executa_tool_id=connection.spec.tool_id,
            plugin=connection.name,
            tool=active.tool,
            invoke_id=active.invoke_id,
            capabilities=tuple(sorted(manifest.declared())),
            credentials=tuple(credential.name for credential in manifest.credentials),
            app=active.app,
        )
        try:
            async with asyncio.timeout(max(0.0, active.remaining)):
                active.grant = await self._nexus.open_invoke(opening)
        except NexusError as fault:
            error = upstream_error("", fault)
            text = f"nexus did not open the invoke: {fault}"
            raise InvokeRefused(error.code, text, error.data) from fault
        except TimeoutError:
            raise InvokeTimeout("nexus did not open the invoke in time", written=False) from None
        if active.parent is None:
            active.budget = Budget(active.grant.caps)
        return True

    def _context(self, connection: Connection, active: ActiveInvoke) -> InvokeContext:
        grant = active.grant
        context = InvokeContext(
            invoke_id=active.invoke_id,
            deadline_ms=int((time.time() + active.remaining) * 1000),
            credentials=self._credentials(connection, active),
        )
        if connection.negotiated.is_v2:  # v1 invokes carry no tokens
            if grant.sampling_token is not None:
                context.sampling_token = grant.sampling_token.value
            if grant.storage_token is not None:
                context.storage_token = grant.storage_token.value
        if active.parent is not None:
            context.parent_invoke_id = active.parent.invoke_id
        return context

    def _credentials(
        self, connection: Connection, active: ActiveInvoke
    ) -> dict[str, str] | UnsetType:
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

    # --- The call ------------------------------------------------------------------------

    async def _call(
        self, connection: Connection, tool: Tool, arguments: bytes, active: ActiveInvoke
    ) -> InvokeOutcome:
        started = time.monotonic()
        params = InvokeParams(
            tool=tool.name,
            arguments=Raw(arguments),
            context=self._context(connection, active),
            invoke_id=active.invoke_id,
        )
        call = connection.peer.call("invoke", codec.encode(params), max(0.0, active.remaining))
        try:
            raw = await call.future
        except CallTimeout:
            text = f"{connection.name}.{tool.name} took longer than its limit"
            raise InvokeTimeout(text, written=connection.peer.was_written(call)) from None
        except asyncio.CancelledError:
            connection.peer.forget(call)
            raise
        _check_size(call, raw)
        result = read_invoke_result(raw, connection.reader())
        return InvokeOutcome(
            invoke_id=active.invoke_id,
            plugin=connection.name,
            tool=tool.name,
            success=result.success,
            raw=result.data,
            error="" if result.error is UNSET else result.error,
            duration_ms=ms_since(started),
            ledger=active.ledger,
        )

    # --- After ---------------------------------------------------------------------------

    def _end(
        self, connection: Connection, active: ActiveInvoke, tool: str, outcome: str, started: float
    ) -> None:
        """Nothing of the invoke stays behind: its reverse calls end with it."""
        active.ended = True
        connection.invokes.pop(active.invoke_id, None)
        for task in list(active.tasks):
            task.cancel()
        if active.renewing is not None:
            active.renewing.cancel()
        ledger = active.ledger
        if active.parent is not None:
            active.parent.ledger.add(ledger)
        connection.emit(
            transcript.InvokeEnded(
                at=time.time(),
                plugin=connection.name,
                invoke_id=active.invoke_id,
                tool=tool,
                outcome=outcome,
                ms=ms_since(started),
                sampling_calls=ledger.sampling_calls,
                tokens=ledger.tokens,
                storage_calls=ledger.storage_calls,
                agent_runs=ledger.agent_runs,
                frames=ledger.frames,
                denied=ledger.denied,
                calls=active.budget.calls,
                calls_cap=active.budget.caps.sampling_calls,
                tokens_used=active.budget.tokens,
                tokens_cap=active.budget.caps.tokens,
            )
        )


def new_invoke_id() -> str:
    """32 hexadecimal digits (seed lifecycle, Per-invoke context; R-13)."""
    return os.urandom(16).hex()


def find_tool(manifest: Manifest, plugin: str, name: str) -> Tool:
    """The tool, or an `InvokeRefused` that names those there are."""
    tool = manifest.tool(name)
    if tool is None:
        names = [each.name for each in manifest.tools]
        text = f"{plugin} has no tool {name[:80]!r}; it has {', '.join(names)}"
        error = wire_error("METHOD_NOT_FOUND", text, available_tools=names)
        raise InvokeRefused(error.code, text, error.data)
    return tool


def _check_size(call: Call, raw: Raw) -> None:
    size = len(memoryview(raw))
    if size > MAX_INLINE_RESULT and not call.by_file:
        text = f"the result has {size:,} bytes and at most {MAX_INLINE_RESULT:,} go inline"
        error = wire_error(
            "RESULT_TOO_LARGE", text, result_size_bytes=size, max_payload_bytes=MAX_INLINE_RESULT
        )
        raise InvokeRefused(error.code, text, error.data)
