"""A nexus of which each plugin is granted less: what the configuration of a host takes away.

Nexus tells what the user granted; whoever runs the host may allow a plugin less than that,
never more. Everything else passes through.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping

from msgspec import Struct, structs

from executa_protocol.limits import AGENT_CACHE_SIZE
from executa_protocol.methods.agent import AgentSessionCreateParams
from executa_protocol.methods.sampling import SamplingParams, SamplingResult
from executa_protocol.nexus import (
    AgentRun,
    Caps,
    Grants,
    InvokeGrant,
    InvokeOpening,
    MintedAgentSession,
    Nexus,
    ToolOutcome,
)


class Narrowing(Struct, frozen=True, kw_only=True):
    """The most that one plugin gets. None leaves the tools or a cap as nexus has them."""

    sampling: bool = True
    agent: bool = True
    storage: bool = True
    files: bool = True
    tools: tuple[str, ...] | None = None
    sampling_calls: int | None = None
    tokens_per_call: int | None = None
    tokens: int | None = None
    storage_calls: int | None = None

    def apply(self, grant: InvokeGrant) -> InvokeGrant:
        """The lesser of what nexus granted and this."""
        given, caps = grant.grants, grant.caps
        return structs.replace(
            grant,
            grants=Grants(
                sampling=given.sampling and self.sampling,
                agent=given.agent and self.agent,
                storage=given.storage and self.storage,
                files=given.files and self.files,
            ),
            caps=Caps(
                sampling_calls=_least(caps.sampling_calls, self.sampling_calls),
                tokens_per_call=_least(caps.tokens_per_call, self.tokens_per_call),
                tokens=_least(caps.tokens, self.tokens),
                storage_calls=_least(caps.storage_calls, self.storage_calls),
            ),
            granted_tools=self.covered(grant.granted_tools),
        )

    def covered(self, granted: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the granted tools that are in `tools` too."""
        if self.tools is None or "*" in self.tools:
            return granted
        return tuple(tool for tool in self.tools if "*" in granted or tool in granted)


class _Open(Struct):
    """An invoke that is going on, and the sampling tokens that it was given."""

    narrowing: Narrowing
    tokens: set[str]


class NarrowedNexus:
    """Implements `executa_protocol.nexus.Nexus` over another one; `plugins` by plugin name."""

    def __init__(self, nexus: Nexus, plugins: Mapping[str, Narrowing]) -> None:
        self._nexus = nexus
        self._plugins = dict(plugins)
        self._open: dict[str, _Open] = {}
        self._by_token: dict[str, Narrowing] = {}
        self._by_session: OrderedDict[str, Narrowing] = OrderedDict()

    def __repr__(self) -> str:
        return f"NarrowedNexus({self._nexus!r}, plugins={sorted(self._plugins)!r})"

    # --- Invokes -----------------------------------------------------------------------

    async def open_invoke(self, opening: InvokeOpening) -> InvokeGrant:
        """As nexus grants it, or less."""
        grant = await self._nexus.open_invoke(opening)
        narrowing = self._plugins.get(opening.plugin)
        if narrowing is not None:
            self._open.setdefault(opening.invoke_id, _Open(narrowing, set()))
        return self._narrowed(opening.invoke_id, grant)

    async def renew_invoke(self, invoke_id: str) -> InvokeGrant:
        """As nexus grants it, or less."""
        return self._narrowed(invoke_id, await self._nexus.renew_invoke(invoke_id))

    async def close_invoke(self, invoke_id: str) -> None:
        """Forgets the invoke's tokens here too."""
        ended = self._open.pop(invoke_id, None)
        for token in () if ended is None else ended.tokens:
            self._by_token.pop(token, None)
        await self._nexus.close_invoke(invoke_id)

    def _narrowed(self, invoke_id: str, grant: InvokeGrant) -> InvokeGrant:
        opened = self._open.get(invoke_id)
        if opened is None:
            return grant
        if grant.sampling_token is not None:
            opened.tokens.add(grant.sampling_token.value)
            self._by_token[grant.sampling_token.value] = opened.narrowing
        return opened.narrowing.apply(grant)

    # --- Agent sessions ------------------------------------------------------------------

    async def create_agent_session(
        self, token: str, params: AgentSessionCreateParams
    ) -> MintedAgentSession:
        """An agent session has no more tools than the invoke that made it."""
        minted = await self._nexus.create_agent_session(token, params)
        narrowing = self._by_token.get(token)
        if narrowing is None:
            return minted
        self._by_session[minted.app_session_uuid] = narrowing
        if len(self._by_session) > AGENT_CACHE_SIZE:  # the host has forgotten it as well
            self._by_session.popitem(last=False)
        return _with_fewer_tools(minted, narrowing)

    async def refresh_agent_session(
        self, token: str, app_session_uuid: str, ttl_seconds: int | None
    ) -> MintedAgentSession:
        """Has no more tools afterwards."""
        minted = await self._nexus.refresh_agent_session(token, app_session_uuid, ttl_seconds)
        narrowing = self._by_session.get(app_session_uuid)
        return minted if narrowing is None else _with_fewer_tools(minted, narrowing)

    async def delete_agent_session(self, token: str, app_session_uuid: str) -> None:
        """Passes through."""
        self._by_session.pop(app_session_uuid, None)
        await self._nexus.delete_agent_session(token, app_session_uuid)

    def run_agent(self, token: str, run: AgentRun) -> AsyncIterator[bytes]:
        """Passes through; the host offers a run the tools of its agent session alone."""
        return self._nexus.run_agent(token, run)

    async def cancel_run(self, token: str, run_id: str) -> bool:
        """Passes through."""
        return await self._nexus.cancel_run(token, run_id)

    async def post_tool_result(self, token: str, outcome: ToolOutcome) -> None:
        """Passes through."""
        await self._nexus.post_tool_result(token, outcome)

    # --- The rest ------------------------------------------------------------------------

    async def sample(self, token: str, params: SamplingParams) -> SamplingResult:
        """Passes through; the host's gate and budget know the narrowed grant."""
        return await self._nexus.sample(token, params)

    async def storage(self, token: str, method: str, params: bytes) -> bytes:
        """Passes through."""
        return await self._nexus.storage(token, method, params)

    async def aclose(self) -> None:
        """Closes the nexus beneath."""
        await self._nexus.aclose()


def _least(granted: int, allowed: int | None) -> int:
    return granted if allowed is None else min(granted, allowed)


def _with_fewer_tools(minted: MintedAgentSession, narrowing: Narrowing) -> MintedAgentSession:
    return structs.replace(minted, granted_tools=narrowing.covered(minted.granted_tools))
