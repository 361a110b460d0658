"""What a host needs of nexus, the cloud side: one interface and its structs.

Any object with these methods can stand behind a host: the stub in the same
process, or a client of the HTTP interface. Tokens are opaque here; the host gates
on the claims that come beside them (R-39). Endpoints in the docstrings are those
of the HTTP form, under ``/api/v1``.
"""

from collections.abc import AsyncIterator
from typing import Any, Protocol

from msgspec import UNSET, Raw, Struct, UnsetType

from executa_protocol.errors import ExecutaError
from executa_protocol.limits import (
    INVOKE_MAX_TOKENS,
    SAMPLING_MAX_CALLS,
    SAMPLING_MAX_TOKENS,
    STORAGE_MAX_CALLS,
)
from executa_protocol.methods.agent import AgentSessionCreateParams
from executa_protocol.methods.sampling import SamplingParams, SamplingResult


class NexusError(ExecutaError):
    """Nexus refused or failed.

    `status` is the HTTP status (0: not reached), `code` the wire code that nexus named
    and `symbol` its ``errorCode``, where it did; `retry_after` is in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: int | None = None,
        symbol: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.symbol = symbol
        self.retry_after = retry_after


class AppContext(Struct, frozen=True):
    """The Anna App that an invoke comes from, attested by the host (R-29)."""

    app_id: str
    app_slug: str


class Caps(Struct, frozen=True):
    """What one root invoke may use; the user's grant may set other numbers (R-35)."""

    sampling_calls: int = SAMPLING_MAX_CALLS
    tokens_per_call: int = SAMPLING_MAX_TOKENS
    tokens: int = INVOKE_MAX_TOKENS
    storage_calls: int = STORAGE_MAX_CALLS


class Grants(Struct, frozen=True):
    """What the user allowed this plugin, chapter by chapter."""

    sampling: bool = False
    agent: bool = False
    storage: bool = False
    files: bool = False


class Token(Struct, frozen=True):
    """A bearer token with the claims that the host may rely on.

    `expires_at` is epoch seconds. `scopes` are the storage scopes it opens.
    """

    value: str
    expires_at: float
    scopes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return _shown(self, "expires_at", "scopes")

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """What pretty printers show, which look at all members otherwise."""
        return _pairs(self, "expires_at", "scopes")


class InvokeOpening(Struct, frozen=True):
    """Body of ``POST /executa/invokes``: which invoke is about to begin (R-39, assumed)."""

    user_id: str
    executa_tool_id: str
    plugin: str
    tool: str
    invoke_id: str
    capabilities: tuple[str, ...] = ()
    credentials: tuple[str, ...] = ()
    app: AppContext | None = None


class InvokeGrant(Struct, frozen=True):
    """Answer to an `InvokeOpening`: tokens, grants, caps and credentials of that invoke.

    A token is None when the manifest does not unlock it. `granted_tools` are
    ``PLUGIN.TOOL`` names, or ``*`` for all. Credentials never reach a log.
    """

    grants: Grants = Grants()
    caps: Caps = Caps()
    sampling_token: Token | None = None
    storage_token: Token | None = None
    granted_tools: tuple[str, ...] = ()
    credentials: dict[str, str] = {}

    def __repr__(self) -> str:
        return _shown(self, "grants", "granted_tools")

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """See `Token`."""
        return _pairs(self, "grants", "granted_tools")


class MintedAgentSession(Struct, frozen=True):
    """Answer to ``POST /copilot/app/sessions/from_sampling``.

    `token` stays in the host. `expires_at` is epoch seconds.
    """

    app_session_uuid: str
    token: str
    thread_id: str
    expires_at: float
    kind: str = "agent"
    agent_submode: str | UnsetType = UNSET
    fixed_client_id: str | UnsetType = UNSET
    granted_tools: tuple[str, ...] = ()
    label: str | UnsetType = UNSET

    def __repr__(self) -> str:
        return _shown(self, "app_session_uuid", "thread_id")

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """See `Token`."""
        return _pairs(self, "app_session_uuid", "thread_id")


class HostTool(Struct, frozen=True):
    """A tool that the host offers to a run: name ``PLUGIN.TOOL`` and JSON Schema (R-36)."""

    name: str
    description: str
    parameters: dict[str, Any]


class AgentRun(Struct, frozen=True, omit_defaults=True):
    """Body of ``POST /copilot/app/agent``: one run of an agent session."""

    run_id: str
    content: str
    tools: tuple[HostTool, ...] = ()
    allowed_tools: tuple[str, ...] | UnsetType = UNSET
    recursion_limit: int | UnsetType = UNSET
    max_tokens: int | UnsetType = UNSET
    system: str | UnsetType = UNSET
    model_preferences: Raw | UnsetType = UNSET
    attachments: Raw | UnsetType = UNSET


class ToolOutcome(Struct, frozen=True):
    """Body of ``POST /copilot/app/agent/tool_result``: what a host-executed tool gave (R-36)."""

    run_id: str
    call_id: str
    ok: bool
    data: Raw


class Nexus(Protocol):
    """The cloud side, as a host sees it. Every method raises `NexusError`."""

    async def open_invoke(self, opening: InvokeOpening) -> InvokeGrant:
        """Tokens, grants and credentials for one invoke. ``POST /executa/invokes``."""
        ...

    async def renew_invoke(self, invoke_id: str) -> InvokeGrant:
        """New tokens for an invoke that runs long. ``POST /executa/invokes/{id}/renew``."""
        ...

    async def close_invoke(self, invoke_id: str) -> None:
        """End the invoke's tokens. Idempotent. ``DELETE /executa/invokes/{id}``."""
        ...

    async def sample(self, token: str, params: SamplingParams) -> SamplingResult:
        """One completion under a sampling token. ``POST /copilot/sampling``."""
        ...

    async def create_agent_session(
        self, token: str, params: AgentSessionCreateParams
    ) -> MintedAgentSession:
        """Mint under a sampling token. ``POST /copilot/app/sessions/from_sampling``."""
        ...

    async def refresh_agent_session(
        self, token: str, app_session_uuid: str, ttl_seconds: int | None
    ) -> MintedAgentSession:
        """Prolong under its own token. ``POST /copilot/app/sessions/{uuid}/refresh``."""
        ...

    async def delete_agent_session(self, token: str, app_session_uuid: str) -> None:
        """End it. Idempotent. ``DELETE /copilot/app/sessions/{uuid}``."""
        ...

    def run_agent(self, token: str, run: AgentRun) -> AsyncIterator[bytes]:
        """The run's frames, each one JSON object, as they come. ``POST /copilot/app/agent``.

        Closing the iterator ends the upstream stream.
        """
        ...

    async def cancel_run(self, token: str, run_id: str) -> bool:
        """Ask a run to end; False if it had ended. ``POST /copilot/app/agent/cancel``."""
        ...

    async def post_tool_result(self, token: str, outcome: ToolOutcome) -> None:
        """Answer a host-executed tool call. ``POST /copilot/app/agent/tool_result``."""
        ...

    async def storage(self, token: str, method: str, params: bytes) -> bytes:
        """A ``storage/*`` or ``files/*`` call under a storage token.

        `method` is the wire name, `params` and the answer are encoded JSON objects in
        the wire's shapes, without `context`.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections. Idempotent."""
        ...


def _pairs(struct: Struct, *names: str) -> list[tuple[str, Any]]:
    """The members that may be shown; never a token or a credential."""
    return [(name, getattr(struct, name)) for name in names]


def _shown(struct: Struct, *names: str) -> str:
    members = ", ".join(f"{name}={value!r}" for name, value in _pairs(struct, *names))
    return f"{type(struct).__name__}({members})"
