"""Serves `agent/session.*` except the run itself: create, cancel, history, delete, list, refresh.

The token that nexus mints stays in the cache; what a plugin gets is the uuid (seed
agent-sessions, Auth chain).
"""

import asyncio
import contextlib
from functools import partial
from typing import Final

from msgspec import UNSET

from executa_host.agent_sessions import AgentSessionEntry, AgentSessions, Owner
from executa_host.reverse.call import Failed, ReverseCall
from executa_host.reverse.upstream import ask
from executa_host.runtime import Runtime
from executa_protocol import codec
from executa_protocol.codes import wire_error
from executa_protocol.limits import AGENT_CREATE_TIMEOUT, AGENT_OTHER_TIMEOUT
from executa_protocol.methods.agent import (
    AgentSessionCancelParams,
    AgentSessionCreateParams,
    AgentSessionDeleteParams,
    AgentSessionHistoryParams,
    AgentSessionListParams,
    AgentSessionRefreshParams,
)
from executa_protocol.methods.agent_results import (
    AgentSessionCreateResult,
    AgentSessionDeleteResult,
    AgentSessionListResult,
    AgentSessionRefreshResult,
    AgentSessionRow,
    CancelRunResult,
)
from executa_protocol.nexus import MintedAgentSession, Nexus, NexusError

_LIST_DEFAULT: Final = 50

_DELETES_AT_ONCE: Final = 16
"""Deletes under way at nexus; what does not get its turn in time ends there by itself."""


class AgentCalls:
    """The calls about agent sessions, over the cache and `nexus`."""

    def __init__(self, nexus: Nexus, cache: AgentSessions, runtime: Runtime) -> None:
        self._nexus = nexus
        self._cache = cache
        self._runtime = runtime
        self._deleting = asyncio.Semaphore(_DELETES_AT_ONCE)

    async def create(self, call: ReverseCall) -> bytes:
        """`agent/session.create` (R-38)."""
        params: AgentSessionCreateParams = call.params
        granted = call.invoke.grant.granted_tools
        wanted = params.fixed_client_id if params.kind == "fixed" else UNSET
        if wanted is not UNSET and "*" not in granted and wanted not in granted:
            text = f"fixed_client_id: {wanted!r} is not in the granted tools"
            raise Failed(wire_error("AGENT_TOOL_NOT_GRANTED", text))
        params.context = UNSET
        creating = self._nexus.create_agent_session(sampling_token(call), params)
        minted = await ask(self._runtime.bounds, creating, "agent", AGENT_CREATE_TIMEOUT)
        self._cache.add(minted, owner_of(call))
        return codec.encode(_created(minted))

    async def cancel(self, call: ReverseCall) -> bytes:
        """`agent/session.cancel`: ends the upstream run; the pending `run` answers (R-32)."""
        params: AgentSessionCancelParams = call.params
        entry = self._cache.find(params.app_session_uuid, owner_of(call), even_expired=True)
        run = entry.runs.get(params.run_id)
        cancelled = run is not None and await run.cancel()
        return codec.encode(CancelRunResult(cancelled=cancelled, run_id=params.run_id))

    async def history(self, call: ReverseCall) -> bytes:
        """`agent/session.history`: empty until v2.2 (R-33)."""
        params: AgentSessionHistoryParams = call.params
        self._cache.find(params.app_session_uuid, owner_of(call))
        return b"[]"

    async def delete(self, call: ReverseCall) -> bytes:
        """`agent/session.delete`: cancels live runs and evicts; the same answer twice (R-30)."""
        params: AgentSessionDeleteParams = call.params
        owner = owner_of(call)
        uuid = params.app_session_uuid
        if self._cache.knows(uuid):
            entry = self._cache.find(uuid, owner, even_expired=True)
            self._cache.discard(entry)  # before anything can be begun on it
            await asyncio.wait((self.forget(entry),))
        return codec.encode(AgentSessionDeleteResult())

    async def list_own(self, call: ReverseCall) -> bytes:
        """`agent/session.list`, an extension: what this cache holds of the caller's (R-33)."""
        params: AgentSessionListParams = call.params
        limit = _LIST_DEFAULT if params.limit is UNSET else params.limit
        entries = [
            entry
            for entry in self._cache.of(owner_of(call))
            if params.include_expired or not self._cache.expired(entry)
        ]
        return codec.encode(AgentSessionListResult([_listed(entry) for entry in entries[-limit:]]))

    async def refresh(self, call: ReverseCall) -> bytes:
        """`agent/session.refresh`, an extension (R-33)."""
        params: AgentSessionRefreshParams = call.params
        entry = self._cache.find(params.app_session_uuid, owner_of(call))
        ttl = None if params.ttl_seconds is UNSET else params.ttl_seconds
        await refresh(self._nexus, self._runtime, entry, call, ttl)
        return codec.encode(
            AgentSessionRefreshResult(
                app_session_uuid=params.app_session_uuid, expires_at=entry.expires_at
            )
        )

    def forget(self, entry: AgentSessionEntry) -> "asyncio.Task[None]":
        """Cancel its live runs and end it upstream, whoever waits for that.

        Where it cannot be ended it ends with its life.
        """
        within = self._runtime.patience.cleanup
        what = "deleting an agent session at nexus"
        return self._runtime.background.run(partial(self._forget, entry), what, within)

    async def _forget(self, entry: AgentSessionEntry) -> None:
        await asyncio.gather(*(run.cancel() for run in list(entry.runs.values())))
        uuid = entry.minted.app_session_uuid
        async with self._deleting:  # a process that ends may leave thousands
            with contextlib.suppress(NexusError):
                await self._nexus.delete_agent_session(entry.minted.token, uuid)


async def refresh(
    nexus: Nexus,
    runtime: Runtime,
    entry: AgentSessionEntry,
    call: ReverseCall,
    ttl_seconds: int | None = None,
) -> None:
    """Get a new token for an agent session whose own may be old.

    One that has expired opens nothing any more; the invoke's sampling token does (*observed*).
    """
    now = runtime.clock.now()
    token = sampling_token(call) if entry.token_expires_soon(now) else entry.minted.token
    uuid = entry.minted.app_session_uuid
    asking = nexus.refresh_agent_session(token, uuid, ttl_seconds)
    minted = await ask(runtime.bounds, asking, "agent", AGENT_OTHER_TIMEOUT)
    entry.renew(minted, runtime.clock.now())


def owner_of(call: ReverseCall) -> Owner:
    """Who calls: an agent session belongs to a user and a plugin."""
    return call.invoke.user_id, call.connection.name


def sampling_token(call: ReverseCall) -> str:
    """The value of the invoke's token; the gate has seen that it is there."""
    token = call.invoke.grant.sampling_token
    return "" if token is None else token.value


def _created(minted: MintedAgentSession) -> AgentSessionCreateResult:
    return AgentSessionCreateResult(
        app_session_uuid=minted.app_session_uuid,
        thread_id=minted.thread_id,
        agent_submode=minted.agent_submode,
        granted_tools=list(minted.granted_tools),
        kind=minted.kind,
        fixed_client_id=minted.fixed_client_id,
        expires_at=minted.expires_at,
    )


def _listed(entry: AgentSessionEntry) -> AgentSessionRow:
    minted = entry.minted
    return AgentSessionRow(
        app_session_uuid=minted.app_session_uuid,
        kind=minted.kind,
        submode=minted.agent_submode,
        fixed_client_id=minted.fixed_client_id,
        label=minted.label,
        created_at=entry.created_at,
        last_active_at=entry.last_active_at,
        expires_at=entry.expires_at,
    )
