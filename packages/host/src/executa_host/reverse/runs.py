"""Serves `agent/session.run`: checks, reserves, and answers with the buffered frames.

Buffered (seed agent-sessions, Streaming choice): the plugin gets all frames in one
answer. Runs of one agent session follow each other, those of different ones go side by
side. What happens while one streams is `live_run`'s.
"""

import os
from collections.abc import Iterable
from typing import Final

from msgspec import UNSET

from executa_host.agent_sessions import AgentSessionEntry, AgentSessions
from executa_host.reverse.agent import owner_of, refresh
from executa_host.reverse.call import Failed, Refused, ReverseCall
from executa_host.reverse.live_run import BufferedRun
from executa_host.reverse.nested import ToolRunner
from executa_host.runtime import Runtime
from executa_protocol.codes import wire_error
from executa_protocol.gate import Refusal
from executa_protocol.methods.agent import AgentSessionRunParams
from executa_protocol.nexus import Nexus, NexusError

_GONE: Final = (401, 404, 410)


class AgentRuns:
    """Runs of agent sessions, over the cache, `nexus`, and the host's own tools."""

    def __init__(
        self, nexus: Nexus, cache: AgentSessions, runner: ToolRunner, runtime: Runtime
    ) -> None:
        self._nexus = nexus
        self._cache = cache
        self._runner = runner
        self._runtime = runtime

    async def run(self, call: ReverseCall) -> bytes:
        """`agent/session.run` (R-31 to R-36)."""
        params: AgentSessionRunParams = call.params
        entry = self._cache.find(params.app_session_uuid, owner_of(call))
        run_id = os.urandom(16).hex() if params.run_id is UNSET else params.run_id
        _check(call, entry, params, run_id)
        budget = call.invoke.budget
        asked = budget.caps.tokens_per_call if params.max_tokens is UNSET else params.max_tokens
        reserved = budget.reserve_run(asked)
        if isinstance(reserved, Refusal):
            raise Refused(reserved)
        for ledger in call.invoke.ledgers():
            ledger.agent_runs += 1
        run = BufferedRun(
            call,
            entry,
            run_id,
            reserved,
            nexus=self._nexus,
            runner=self._runner,
            runtime=self._runtime,
        )
        entry.runs[run_id] = run
        try:
            if entry.token_expires_soon(self._runtime.clock.now()):
                await refresh(self._nexus, self._runtime, entry, call)
            await self._runner.learn(call.invoke.user_id, _named_tools(entry, params))
            await run.to_the_end()
        except NexusError as fault:
            if fault.status in _GONE:
                self._cache.discard(entry)
            raise
        finally:
            run.over()
            del entry.runs[run_id]
            budget.settle(reserved, run.tokens)
            call.tokens = run.tokens
        self._cache.slide(entry)
        return run.buffer.encode(strict=call.connection.reader.strict)


def _named_tools(entry: AgentSessionEntry, params: AgentSessionRunParams) -> Iterable[str]:
    """The tools that this run may use and that are granted by name, not by ``*``."""
    if params.allowed_tools is not UNSET:
        return params.allowed_tools
    fixed = entry.minted.fixed_client_id
    return entry.minted.granted_tools if fixed is UNSET else (fixed,)


def _check(
    call: ReverseCall, entry: AgentSessionEntry, params: AgentSessionRunParams, run_id: str
) -> None:
    """What the cache and the grant say before anything is spent."""
    if run_id in entry.runs:
        raise Failed(wire_error("INVALID_PARAMS", f"run_id: {run_id[:80]!r} is running already"))
    if entry.run_inside(call.invoke):
        text = "an invoke that this one is nested in is running this agent session"
        raise Failed(wire_error("AGENT_RUN_RECURSION", text))
    for tool in params.allowed_tools or ():
        if not entry.covers(tool):
            text = f"allowed_tools: {tool[:80]!r} is not granted to this agent session"
            raise Failed(wire_error("AGENT_TOOL_NOT_GRANTED", text))
