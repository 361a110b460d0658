"""The stub itself: the nexus interface over tokens, grants, models, runs and stores.

Owns how the parts are put together, and the endpoints of invokes, sampling and
storage, each with its checks in the order token, grant, cap, quota. Each method is one
endpoint of the HTTP form; that door calls the same methods. *Assumed*: ``POST
/executa/invokes`` and what it answers (R-39).
"""

import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from executa_nexus_stub.agent_desk import AgentDesk
from executa_nexus_stub.blobs import BlobDoor
from executa_nexus_stub.clock import Clock, SystemClock
from executa_nexus_stub.config import StubConfig, read_config
from executa_nexus_stub.desk import Desk
from executa_nexus_stub.faults import Faults, SkewedClock
from executa_nexus_stub.grants import Directory
from executa_nexus_stub.invokes import Invokes, OpenInvoke
from executa_nexus_stub.ledger import Ledger
from executa_nexus_stub.models.base import Model
from executa_nexus_stub.models.build import build_models
from executa_nexus_stub.models.catalogue import Catalogue
from executa_nexus_stub.refusals import refused
from executa_nexus_stub.sampling import Sampling
from executa_nexus_stub.state import StateFolder
from executa_nexus_stub.stores import APP_SCOPE, SCOPES, Stores
from executa_nexus_stub.tokens import SAMPLING, STORAGE, TokenAuthority
from executa_protocol import capabilities
from executa_protocol.limits import TOKEN_LEEWAY
from executa_protocol.methods.agent import AgentSessionCreateParams
from executa_protocol.methods.sampling import SamplingParams, SamplingResult
from executa_protocol.nexus import (
    AgentRun,
    InvokeGrant,
    InvokeOpening,
    MintedAgentSession,
    ToolOutcome,
)


class NexusStub:
    """Nexus in this process. Implements `executa_protocol.nexus.Nexus`.

    `models` replaces the configured catalogue. `directory` (users and grants), `tokens`,
    `ledger`, `stores` and `faults` may be looked at and changed while it runs.
    """

    def __init__(
        self,
        config: StubConfig | None = None,
        *,
        clock: Clock | None = None,
        models: Sequence[Model] | None = None,
    ) -> None:
        config = config or StubConfig()
        self.config = config
        plain = clock or SystemClock()
        skew = config.faults.clock_skew
        self.clock: Clock = SkewedClock(plain, skew) if skew else plain
        self.faults = Faults(plain, config.faults)
        self.directory = Directory(
            users=config.users,
            plans=config.plans,
            default=config.grant,
            open_to_all=config.open_to_all,
        )
        self.tokens = TokenAuthority(self.clock, ttl=config.token_ttl, lookup=config.lookup_tokens)
        self.catalogue = Catalogue(models or build_models(config.models))
        life = config.token_ttl + TOKEN_LEEWAY
        self._invokes = Invokes(self.clock, life, self.tokens.end)
        self._desk = Desk(self.clock, self.directory, self.tokens, self._invokes, self.catalogue)
        self._sampling = Sampling(self.catalogue, self.clock)
        self._agent = AgentDesk(self._desk, config.agent)
        self._door = BlobDoor(config.public_url)
        self.stores = Stores(
            self.clock,
            lambda user: self.directory.plan(user).storage_bytes,
            lambda: self._door.base(self.stores.files),
        )

        folder = config.data_dir
        self._state = StateFolder(folder, self.stores, self.clock) if folder else None

    def __repr__(self) -> str:
        return f"NexusStub(invokes={self.open_invokes}, agent_sessions={self.agent_sessions})"

    @property
    def ledger(self) -> Ledger:
        """What each user, plugin and invoke consumed."""
        return self._desk.ledger

    @property
    def in_flight(self) -> int:
        """Calls that are being served and runs that have not ended."""
        return self._desk.calls + self._agent.sessions.in_flight

    @property
    def pending_count(self) -> int:
        """Tool results that runs wait for."""
        return self._agent.sessions.pending_count

    @property
    def open_invokes(self) -> int:
        """Invokes that have been opened and not closed."""
        return len(self._invokes)

    @property
    def agent_sessions(self) -> int:
        """Agent sessions that are kept, live or not yet swept."""
        return len(self._agent.sessions)

    def serve_files_at(self, url: str) -> None:
        """Let signed file URLs lead to `url`, unless the configuration names an address."""
        self._door.use(url)

    # --- Invokes (R-39) ----------------------------------------------------------------

    async def open_invoke(self, opening: InvokeOpening) -> InvokeGrant:
        """Tokens, grants, caps and credentials for one invoke."""
        await self.faults.before("open_invoke")
        if not self.directory.knows(opening.user_id):
            raise refused("INVALID_PARAMS", "user_id: this user may not come in", status=403)
        return self._grant_for(self._invokes.open(opening))

    async def renew_invoke(self, invoke_id: str) -> InvokeGrant:
        """New tokens for an open invoke; the older ones live until they expire."""
        await self.faults.before("renew_invoke")
        return self._grant_for(self._invokes.touch(self._invokes.get(invoke_id)))

    async def close_invoke(self, invoke_id: str) -> None:
        """End the invoke and its tokens. Idempotent."""
        await self.faults.before("close_invoke")
        self._invokes.close(invoke_id)

    def _grant_for(self, invoke: OpenInvoke) -> InvokeGrant:
        """A token is minted if the manifest unlocks it and the user grants it."""
        opening, binding = invoke.opening, invoke.binding
        grant = self.directory.grant(opening.user_id, opening.plugin)
        kinds = capabilities.tokens(opening.capabilities)
        app = opening.app
        sampling = storage = None
        if "sampling" in kinds and (grant.sampling or grant.agent):
            sampling = self.tokens.mint(SAMPLING, binding)
        if "storage" in kinds and (grant.storage or grant.files):
            storage = self.tokens.mint(
                STORAGE,
                binding,
                allowed_scopes=(*SCOPES, APP_SCOPE) if app is not None else SCOPES,
                max_calls=grant.caps.storage_calls,
                app_id=app.app_id if app is not None else "",
                app_slug=app.app_slug if app is not None else "",
            )
        return InvokeGrant(
            grants=grant.chapters(),
            caps=grant.caps,
            sampling_token=sampling,
            storage_token=storage,
            granted_tools=grant.granted_tools,
            credentials=self.directory.credentials(
                opening.user_id, opening.plugin, opening.credentials
            ),
        )

    # --- Sampling ----------------------------------------------------------------------

    async def sample(self, token: str, params: SamplingParams) -> SamplingResult:
        """One completion under a sampling token."""
        await self.faults.before("sample")
        claims = self.tokens.verify(token, SAMPLING)
        invoke = self._invokes.get(claims.tool_invoke_id)
        grant = self._desk.grant(claims)
        if not grant.sampling:
            raise refused("SAMPLING_NOT_GRANTED", "the user does not allow this plugin to sample")
        caps = grant.caps
        if invoke.sampling_calls >= caps.sampling_calls:
            reason = f"at most {caps.sampling_calls} sampling calls an invoke"
            raise refused("SAMPLING_MAX_CALLS_EXCEEDED", reason)
        if params.max_tokens > caps.tokens_per_call or invoke.tokens >= caps.tokens:
            reason = f"at most {caps.tokens_per_call} tokens a call and {caps.tokens} an invoke"
            raise refused("SAMPLING_MAX_TOKENS_EXCEEDED", reason)
        self._desk.check_day(claims.user_id)
        user = self.directory.user(claims.user_id)
        invoke.sampling_calls += 1  # now, so that calls side by side cannot pass the cap
        with self._desk.serving():
            try:
                result = await self._sampling.complete(params, user.model, claims.executa_tool_id)
            except BaseException:
                invoke.sampling_calls -= 1
                raise
        if result.usage is not UNSET:
            used = result.usage
            invoke.tokens += used.output_tokens  # as hosts count them
            self._desk.spend(claims, used.input_tokens, used.output_tokens, sampling_calls=1)
        return result

    # --- Agent sessions ----------------------------------------------------------------

    async def create_agent_session(
        self, token: str, params: AgentSessionCreateParams
    ) -> MintedAgentSession:
        """Mint an agent session under a sampling token (seed agent-sessions, Auth chain)."""
        await self.faults.before("create_agent_session")
        return self._agent.create(token, params)

    async def refresh_agent_session(
        self, token: str, app_session_uuid: str, ttl_seconds: int | None
    ) -> MintedAgentSession:
        """Prolong a session and mint a new token for it."""
        await self.faults.before("refresh_agent_session")
        return self._agent.refresh(token, app_session_uuid, ttl_seconds)

    async def delete_agent_session(self, token: str, app_session_uuid: str) -> None:
        """End a session and its runs. Idempotent."""
        await self.faults.before("delete_agent_session")
        self._agent.delete(token, app_session_uuid)

    async def run_agent(self, token: str, run: AgentRun) -> AsyncGenerator[bytes, None]:
        """A run's frames as they come. Closing the iterator ends the run."""
        await self.faults.before("run_agent")
        stream = self.faults.stream(self._agent.run(token, run), "run_agent")
        async with contextlib.aclosing(stream):
            async for frame in stream:
                yield frame

    async def cancel_run(self, token: str, run_id: str) -> bool:
        """Ask a run of this session to end; False if there is none."""
        await self.faults.before("cancel_run")
        return self._agent.cancel(token, run_id)

    async def post_tool_result(self, token: str, outcome: ToolOutcome) -> None:
        """Answer a host-executed tool call, once (R-36)."""
        await self.faults.before("post_tool_result")
        self._agent.post(token, outcome)

    # --- Storage and files -------------------------------------------------------------

    async def storage(self, token: str, method: str, params: bytes) -> bytes:
        """A ``storage/*`` or ``files/*`` call under a storage token."""
        await self.faults.before("storage", method)
        claims = self.tokens.verify(token, STORAGE)
        if not self.stores.knows(method):
            raise refused("UNMAPPED_METHOD", "this storage method is not served")
        invoke = self._invokes.get(claims.tool_invoke_id)
        files = method.startswith("files/")
        need = capabilities.FILES if files else capabilities.KV
        missing = capabilities.missing(invoke.opening.capabilities, need)
        if missing:
            raise refused("STORAGE_NOT_GRANTED", f"the manifest does not declare {missing[0]}")
        grant = self._desk.grant(claims)
        if not (grant.files if files else grant.storage):
            raise refused("STORAGE_NOT_GRANTED", "the user does not allow this plugin to store")
        if invoke.storage_calls >= claims.max_calls:
            reason = f"at most {claims.max_calls} storage calls an invoke"
            raise refused("STORAGE_RATE_LIMITED", reason)
        invoke.storage_calls += 1
        with self._desk.serving():
            answer = await self.stores.call(claims, method, params)
        self._desk.charge(claims, storage_calls=1)
        return answer

    async def aclose(self) -> None:
        """Cancel what runs and let go of connections. Idempotent."""
        self._agent.sessions.close()
        if self._state is not None:
            self._state.close()
        await self._door.aclose()
        await self.catalogue.aclose()


def create(config: Mapping[str, Any] | StubConfig | None = None) -> NexusStub:
    """The stub for a configuration, as hosts find it (entry point ``executa.nexus``).

    Raises `UsageError` for a setting that is unknown or of the wrong type.
    """
    return NexusStub(read_config(config))
