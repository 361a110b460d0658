"""Agent sessions: minted, run, refreshed, deleted, and gone when their time is over.

Owns the sessions with their threads, which tools a run may use, and how many runs
there may be. *Stated* (seed agent-sessions): `kind`, `agent_submode`, `granted_tools`,
the four frames. *Observed*: lives, `quota_caps`, ten runs a user. One run is the
business of `runs`; tokens are `core`'s.
"""

import uuid
from collections.abc import AsyncGenerator, Callable
from typing import Final

from msgspec import UNSET

from executa_nexus_stub import attachments
from executa_nexus_stub.clock import Clock
from executa_nexus_stub.config import AgentLimits
from executa_nexus_stub.grants import ALL_TOOLS, PluginGrant, allows
from executa_nexus_stub.models.base import Message, Model, ToolSpec
from executa_nexus_stub.refusals import invalid, refused
from executa_nexus_stub.runs import AgentRunner, RunPlan
from executa_nexus_stub.tokens import Binding
from executa_protocol.limits import (
    AGENT_RECURSION_DEFAULT,
    AGENT_RECURSION_MAX,
    AGENT_RUN_MAX_TOKENS,
    AGENT_TTL_DEFAULT,
    AGENT_TTL_MAX,
)
from executa_protocol.methods.agent import AgentSessionCreateParams, QuotaCaps, check_create
from executa_protocol.methods.reading import InvalidParams
from executa_protocol.nexus import AgentRun

_SWEEP: Final = 60.0
_DAY: Final = 86_400


class AgentSession:
    """One agent session and its thread of earlier turns."""

    def __init__(self, binding: Binding, params: AgentSessionCreateParams, now: float) -> None:
        self.uuid = str(uuid.uuid4())
        self.thread_id = f"thread_{uuid.uuid4().hex}"
        self.binding = binding
        self.kind = params.kind
        self.submode = params.agent_submode if params.kind == "agent" else UNSET
        self.fixed_client_id = params.fixed_client_id if params.kind == "fixed" else UNSET
        self.label = params.label
        self.system_prompt = params.system_prompt or ""
        self.caps = params.quota_caps or QuotaCaps()
        self.ttl = params.ttl_seconds or AGENT_TTL_DEFAULT
        self.granted_tools: tuple[str, ...] = ()
        self.created = now
        self.expires_at = now
        self.thread: list[Message] = []
        self.runs: dict[str, AgentRunner] = {}
        self.run_days: tuple[int, int] = (0, 0)

    def touch(self, now: float, limits: AgentLimits) -> None:
        """Slide the session's end, as each run does (*observed*)."""
        idle = max(limits.idle, float(self.ttl))
        self.expires_at = min(now + idle, self.created + limits.max_life)


class AgentSessions:
    """All agent sessions of the stub."""

    def __init__(self, limits: AgentLimits, clock: Clock, on_end: Callable[[str], None]) -> None:
        self._limits = limits
        self._clock = clock
        self._on_end = on_end  # its tokens go with a session
        self._sessions: dict[str, AgentSession] = {}
        self._running: dict[str, int] = {}  # by user
        self._swept = clock.now()

    @property
    def in_flight(self) -> int:
        """Runs that have begun and not ended."""
        return sum(self._running.values())

    @property
    def pending_count(self) -> int:
        """Tool results that runs wait for."""
        return sum(run.pending_count for s in self._sessions.values() for run in s.runs.values())

    def __len__(self) -> int:
        return len(self._sessions)

    def create(
        self, binding: Binding, params: AgentSessionCreateParams, grant: PluginGrant, most: int
    ) -> AgentSession:
        """A new session (R-38). Raises `NexusError`."""
        try:
            check_create(params)
        except InvalidParams as fault:
            raise invalid(fault) from None
        ttl = params.ttl_seconds or AGENT_TTL_DEFAULT
        if not 1 <= ttl <= AGENT_TTL_MAX:
            raise refused("INVALID_PARAMS", f"ttl_seconds: {ttl} is not in 1..{AGENT_TTL_MAX}")
        now = self._clock.now()
        self._sweep(now)
        owned = sum(s.binding.user_id == binding.user_id for s in self._sessions.values())
        if owned >= most:
            raise refused("AGENT_NEXUS_ERROR", f"at most {most} agent sessions a user", status=429)
        session = AgentSession(binding, params, now)
        session.granted_tools = _granted(params, grant)
        session.touch(now, self._limits)
        self._sessions[session.uuid] = session
        return session

    def get(self, session_uuid: str) -> AgentSession:
        """A live session. Raises `NexusError`: EXPIRED (410) or AGENT_UNKNOWN_SESSION (404)."""
        session = self._sessions.get(session_uuid)
        if session is None:
            raise refused("AGENT_UNKNOWN_SESSION", "there is no such agent session")
        if self._clock.now() >= session.expires_at and not session.runs:
            self.delete(session_uuid)
            raise refused("APP_SESSION_EXPIRED", "the agent session has expired")
        return session

    def refresh(self, session_uuid: str, ttl_seconds: int | None) -> AgentSession:
        """Slide the session's end, with a new life of its token if `ttl_seconds` says so."""
        session = self.get(session_uuid)
        if ttl_seconds is not None:
            if not 1 <= ttl_seconds <= AGENT_TTL_MAX:
                reason = f"ttl_seconds: {ttl_seconds} is not in 1..{AGENT_TTL_MAX}"
                raise refused("INVALID_PARAMS", reason)
            session.ttl = ttl_seconds
        session.touch(self._clock.now(), self._limits)
        return session

    def token_life(self, session: AgentSession) -> float:
        """Seconds for a token minted now: its ttl, and never past the session's longest life."""
        end = session.created + self._limits.max_life
        return min(float(session.ttl), end - self._clock.now())

    def delete(self, session_uuid: str) -> bool:
        """End a session and cancel its runs (R-30). False if there was none."""
        session = self._sessions.pop(session_uuid, None)
        if session is None:
            return False
        self._on_end(session_uuid)
        for run in list(session.runs.values()):
            run.cancel()
        return True

    def close(self) -> None:
        """End every session and run."""
        for session_uuid in list(self._sessions):
            self.delete(session_uuid)

    def plan(
        self, session: AgentSession, run: AgentRun, grant: PluginGrant, model: Model
    ) -> RunPlan:
        """What this run may do. Raises `NexusError`, -32048 for tools that are not granted."""
        turns = run.recursion_limit or AGENT_RECURSION_DEFAULT
        most = run.max_tokens or self._limits.run_max_tokens
        if not run.run_id or not run.content.strip():
            raise refused("INVALID_PARAMS", "run_id and content: expected some text")
        if not 1 <= turns <= AGENT_RECURSION_MAX or run.recursion_limit == 0:
            raise refused("INVALID_PARAMS", f"recursion_limit: not in 1..{AGENT_RECURSION_MAX}")
        if not 1 <= most <= AGENT_RUN_MAX_TOKENS or run.max_tokens == 0:
            raise refused("INVALID_PARAMS", f"max_tokens: not in 1..{AGENT_RUN_MAX_TOKENS}")

        def granted(name: str) -> bool:
            return allows(session.granted_tools, name) and allows(grant.granted_tools, name)

        narrowed = None if run.allowed_tools is UNSET else frozenset(run.allowed_tools)
        for name in narrowed or ():
            if name != ALL_TOOLS and not granted(name):
                raise refused("AGENT_TOOL_NOT_GRANTED", f"allowed_tools: {name} is not granted")

        def may_call(name: str) -> bool:
            return granted(name) and (narrowed is None or allows(narrowed, name))

        return RunPlan(
            run_id=run.run_id,
            thread=tuple(session.thread),
            content="\n\n".join([run.content, *attachments.texts(run.attachments)]),
            system="\n\n".join(filter(None, [session.system_prompt, run.system or ""])),
            model=model,
            tools=tuple(
                ToolSpec(tool.name, tool.description, tool.parameters)
                for tool in run.tools
                if may_call(tool.name)
            ),
            may_call=may_call,
            turns=turns,
            max_tokens=min(most, session.caps.max_tokens_per_call or most),
            tool_wait=self._limits.tool_wait,
            must_call=session.kind == "fixed",
            tool_id=session.binding.executa_tool_id,
        )

    async def run(
        self, session: AgentSession, runner: AgentRunner, most: int
    ) -> AsyncGenerator[bytes, None]:
        """Stream a run's frames; the thread remembers it once it has ended."""
        self._admit(session, runner.plan.run_id, most)
        user, run_id = session.binding.user_id, runner.plan.run_id
        session.runs[run_id] = runner
        self._running[user] = self._running.get(user, 0) + 1
        session.touch(self._clock.now(), self._limits)
        stream = runner.stream()
        try:
            async for frame in stream:
                if runner.finished:
                    self._remember(session, runner)
                yield frame
        finally:
            session.runs.pop(run_id, None)
            self._running[user] -= 1
            if not self._running[user]:
                del self._running[user]
            await stream.aclose()

    def _admit(self, session: AgentSession, run_id: str, most: int) -> None:
        user = session.binding.user_id
        allowed = min(most, session.caps.max_concurrent_runs or most)
        running = self._running.get(user, 0)
        if running >= most or len(session.runs) >= allowed:
            raise refused(
                "AGENT_NEXUS_ERROR",
                f"at most {allowed} runs at a time",
                status=429,
                symbol="APP_CONCURRENCY_LIMIT",
                retry_after=1.0,
            )
        if run_id in session.runs:
            raise refused("INVALID_PARAMS", "run_id: a run of this id is going on", status=409)
        today = int(self._clock.now()) // _DAY
        day, count = session.run_days
        count = count + 1 if day == today else 1
        daily = session.caps.max_runs_per_day or count
        if count > daily:
            raise refused("SAMPLING_QUOTA_EXCEEDED", f"at most {daily} runs a day")
        session.run_days = (today, count)

    def _remember(self, session: AgentSession, runner: AgentRunner) -> None:
        thread = session.thread
        thread += runner.remembered()
        excess = len(thread) - self._limits.thread_messages
        if excess > 0:  # whole exchanges only: a tool's result needs the call before it
            cut = next((i for i in range(excess, len(thread)) if thread[i].role == "user"), excess)
            del thread[:cut]

    def _sweep(self, now: float) -> None:
        if now < self._swept + _SWEEP:
            return
        self._swept = now
        over = [s.uuid for s in self._sessions.values() if now >= s.expires_at and not s.runs]
        for session_uuid in over:
            self.delete(session_uuid)


def _granted(params: AgentSessionCreateParams, grant: PluginGrant) -> tuple[str, ...]:
    """The tools of a new session (R-34). Raises `NexusError` (-32048)."""
    if params.kind == "fixed":
        wanted: tuple[str, ...] = (params.fixed_client_id or "",)
    else:
        caps = params.quota_caps or QuotaCaps()
        if caps.allowed_tools is UNSET:
            return () if caps.inherit_host_tools is False else grant.granted_tools
        wanted = tuple(caps.allowed_tools)
    for name in wanted:
        if not allows(grant.granted_tools, name):
            raise refused("AGENT_TOOL_NOT_GRANTED", f"{name} is not in granted_tools")
    return wanted
