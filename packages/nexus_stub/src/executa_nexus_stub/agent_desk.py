"""The agent endpoints: tokens in, agent sessions and runs out.

Owns the checks before each of them. *Stated* (seed agent-sessions, Auth chain): a
session is minted from a sampling token and has a token of its own. *Observed*: a
sampling token of its owner may refresh or delete it. The sessions themselves are
`agent`'s business, a run that of `runs`.
"""

import contextlib
from collections.abc import AsyncGenerator

import msgspec
from msgspec import UNSET, Raw, UnsetType

from executa_nexus_stub.agent import AgentSession, AgentSessions
from executa_nexus_stub.config import AgentLimits
from executa_nexus_stub.desk import Desk, binding_of
from executa_nexus_stub.grants import PluginGrant
from executa_nexus_stub.models.base import Model, ModelError
from executa_nexus_stub.refusals import refused
from executa_nexus_stub.runs import AgentRunner, checked_outcome
from executa_nexus_stub.sampling import provider_refusal
from executa_nexus_stub.tokens import SAMPLING, SESSION, SESSION_TYPE, Binding, Claims, bound_to
from executa_protocol import capabilities, codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.methods.agent import AgentSessionCreateParams
from executa_protocol.methods.sampling import ModelPreferences
from executa_protocol.nexus import AgentRun, MintedAgentSession, NexusError, ToolOutcome

_PREFERENCES = msgspec.json.Decoder(ModelPreferences)
_FIXED_NEED = (("llm.sample",), ("llm.agent.auto", "llm.agent.fixed"))
"""For ``kind`` ``fixed`` the field's own string unlocks as well (*observed*)."""


class AgentDesk:
    """Serves the agent endpoints of `NexusStub`."""

    def __init__(self, desk: Desk, limits: AgentLimits) -> None:
        self._desk = desk
        self.sessions = AgentSessions(limits, desk.clock, desk.tokens.end)

    def create(self, token: str, params: AgentSessionCreateParams) -> MintedAgentSession:
        """``POST /copilot/app/sessions/from_sampling``."""
        desk = self._desk
        claims = desk.tokens.verify(token, SAMPLING, chapter="AGENT_NOT_GRANTED")
        declared = desk.invokes.get(claims.tool_invoke_id).opening.capabilities
        need = _FIXED_NEED if params.kind == "fixed" else capabilities.AGENT
        missing = capabilities.missing(declared, need)
        if missing:
            reason = f"the manifest does not declare {' and '.join(missing)}"
            raise refused("AGENT_NOT_GRANTED", reason)
        most = desk.directory.plan(claims.user_id).agent_sessions
        session = self.sessions.create(binding_of(claims), params, self._grant(claims), most)
        desk.charge(claims, agent_sessions=1)
        return self._minted(session)

    def refresh(self, token: str, session_uuid: str, ttl_seconds: int | None) -> MintedAgentSession:
        """``POST /copilot/app/sessions/{uuid}/refresh``: a longer life and a new token."""
        session = self._owned(token, session_uuid)
        self._grant(session.binding)
        return self._minted(self.sessions.refresh(session.uuid, ttl_seconds))

    def delete(self, token: str, session_uuid: str) -> None:
        """``DELETE /copilot/app/sessions/{uuid}``. What is gone is gone (R-30)."""
        try:
            session = self._owned(token, session_uuid)
        except NexusError as fault:
            if fault.status in (404, 410):
                return
            raise
        self.sessions.delete(session.uuid)

    async def run(self, token: str, run: AgentRun) -> AsyncGenerator[bytes, None]:
        """``POST /copilot/app/agent``: the run's frames as they come."""
        desk = self._desk
        claims = desk.tokens.verify(token, SESSION)
        session = self.sessions.get(claims.app_session_uuid)
        grant = self._grant(claims)
        desk.check_day(claims.user_id)
        model = self._model(run.model_preferences, claims.user_id)
        runner = AgentRunner(self.sessions.plan(session, run, grant, model), desk.clock)
        most = desk.directory.plan(claims.user_id).concurrent_runs
        try:
            async with contextlib.aclosing(self.sessions.run(session, runner, most)) as stream:
                async for frame in stream:
                    yield frame
        finally:
            if runner.frames:
                usage = runner.usage
                desk.spend(
                    claims,
                    usage.input_tokens,
                    usage.output_tokens,
                    agent_runs=1,
                    tool_calls=runner.tool_calls,
                    frames=runner.frames,
                )

    def cancel(self, token: str, run_id: str) -> bool:
        """``POST /copilot/app/agent/cancel``: False if the session has no such run."""
        claims = self._desk.tokens.verify(token, SESSION)
        run = self.sessions.get(claims.app_session_uuid).runs.get(run_id)
        return run is not None and run.cancel()

    def post(self, token: str, outcome: ToolOutcome) -> None:
        """``POST /copilot/app/agent/tool_result``. For an ended run it is dropped (R-36)."""
        claims = self._desk.tokens.verify(token, SESSION)
        run = self.sessions.get(claims.app_session_uuid).runs.get(outcome.run_id)
        if run is not None:
            run.post(checked_outcome(outcome))

    def _grant(self, owner: Claims | Binding) -> PluginGrant:
        grant = self._desk.grant(owner)
        if not grant.agent:
            reason = "the user does not allow this plugin agent sessions"
            raise refused("AGENT_NOT_GRANTED", reason)
        return grant

    def _owned(self, token: str, session_uuid: str) -> AgentSession:
        """The session, if the token is its own or a sampling token of its owner."""
        tokens = self._desk.tokens
        if tokens.audience(token) == SAMPLING:
            claims = tokens.verify(token, SAMPLING, chapter="AGENT_INVALID_UUID")
        else:
            claims = tokens.verify(token, SESSION)
            bound_to(claims, "AGENT_INVALID_UUID", app_session_uuid=session_uuid)
        session = self.sessions.get(session_uuid)
        owner = session.binding
        bound_to(
            claims,
            "AGENT_INVALID_UUID",
            user_id=owner.user_id,
            executa_tool_id=owner.executa_tool_id,
        )
        return session

    def _minted(self, session: AgentSession) -> MintedAgentSession:
        token = self._desk.tokens.mint(
            SESSION,
            session.binding,
            ttl=self.sessions.token_life(session),
            type=SESSION_TYPE,
            app_session_uuid=session.uuid,
        )
        return MintedAgentSession(
            app_session_uuid=session.uuid,
            token=token.value,
            thread_id=session.thread_id,
            expires_at=token.expires_at,
            kind=session.kind,
            agent_submode=session.submode,
            fixed_client_id=session.fixed_client_id,
            granted_tools=session.granted_tools,
            label=session.label,
        )

    def _model(self, raw: Raw | UnsetType, user_id: str) -> Model:
        preferences: ModelPreferences | UnsetType = UNSET
        try:
            if raw:
                preferences = codec.decode(raw, _PREFERENCES)
            return self._desk.catalogue.choose(
                preferences, self._desk.directory.user(user_id).model
            )
        except DecodeFailure as fault:
            raise refused("INVALID_PARAMS", f"modelPreferences: {fault}") from None
        except ModelError as fault:
            raise provider_refusal(fault, "AGENT_NEXUS_ERROR") from None
