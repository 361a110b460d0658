"""The endpoints of the HTTP door as a table: what the application serves and OpenAPI tells.

Owns paths, bodies, answers and where each comes from: *stated* in a seed, *observed* in
the field, or *assumed* by this project (R-39). Handlers are named here and live in
`handlers` and `admin`.
"""

from typing import Any, Final, Literal

from msgspec import Raw, Struct

from executa_protocol.methods import files, storage
from executa_protocol.methods.agent import AgentSessionCreateParams
from executa_protocol.methods.sampling import SamplingParams, SamplingResult
from executa_protocol.nexus import (
    AgentRun,
    InvokeGrant,
    InvokeOpening,
    MintedAgentSession,
    ToolOutcome,
)

BASE: Final = "/api/v1"

Source = Literal["stated", "observed", "assumed"]
Bearer = Literal["host key", "sampling token", "session token", "storage token", "none"]


class RefreshBody(Struct):
    """Body of a refresh. Seconds, 1 to 7,200; absent or null: as before."""

    ttl_seconds: int | None = None


class RunRef(Struct):
    """Which run of the token's agent session."""

    run_id: str


class Cancelled(Struct):
    """Whether there was a run to cancel (R-32)."""

    cancelled: bool


class ErrorBody(Struct):
    """What went wrong: the wire code, its symbol and a sentence."""

    code: int | None
    errorCode: str  # noqa: N815 - the wire's spelling
    message: str


class ErrorAnswer(Struct):
    """The body of every refusal."""

    error: ErrorBody


class GrantChange(Struct):
    """Members of one grant to change while the stub runs, such as ``{"sampling": false}``."""

    user_id: str
    plugin: str
    changes: dict[str, Any]


class Endpoint(Struct, frozen=True, kw_only=True):
    """One endpoint. `answer` None is an empty answer (204); `stream` is server-sent events."""

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    handler: str
    bearer: Bearer
    source: Source
    summary: str
    body: type[Struct] | None = None
    answer: Any = None
    stream: bool = False


_COPILOT: Final = (
    Endpoint(
        method="POST",
        path="/copilot/sampling",
        handler="sample",
        bearer="sampling token",
        source="assumed",
        summary="One completion (sampling/createMessage).",
        body=SamplingParams,
        answer=SamplingResult,
    ),
    Endpoint(
        method="POST",
        path="/copilot/app/sessions/from_sampling",
        handler="create_session",
        bearer="sampling token",
        source="stated",
        summary="Mint an agent session from a sampling token.",
        body=AgentSessionCreateParams,
        answer=MintedAgentSession,
    ),
    Endpoint(
        method="POST",
        path="/copilot/app/sessions/{uuid}/refresh",
        handler="refresh_session",
        bearer="session token",
        source="observed",
        summary="Prolong an agent session; its owner's sampling token will do as well.",
        body=RefreshBody,
        answer=MintedAgentSession,
    ),
    Endpoint(
        method="DELETE",
        path="/copilot/app/sessions/{uuid}",
        handler="delete_session",
        bearer="session token",
        source="observed",
        summary="End an agent session and its runs. Idempotent.",
    ),
    Endpoint(
        method="POST",
        path="/copilot/app/agent",
        handler="run_agent",
        bearer="session token",
        source="observed",
        summary="One run: the seed's frames as events, then `end` with `done`.",
        body=AgentRun,
        stream=True,
    ),
    Endpoint(
        method="POST",
        path="/copilot/app/agent/cancel",
        handler="cancel_run",
        bearer="session token",
        source="observed",
        summary="Ask a run to end.",
        body=RunRef,
        answer=Cancelled,
    ),
    Endpoint(
        method="POST",
        path="/copilot/app/agent/tool_result",
        handler="tool_result",
        bearer="session token",
        source="assumed",
        summary="Answer a tool call that the host executed (R-36).",
        body=ToolOutcome,
    ),
)

_INVOKES: Final = (
    Endpoint(
        method="POST",
        path="/executa/invokes",
        handler="open_invoke",
        bearer="host key",
        source="assumed",
        summary="Tokens, grants, caps and credentials for an invoke that begins (R-39).",
        body=InvokeOpening,
        answer=InvokeGrant,
    ),
    Endpoint(
        method="POST",
        path="/executa/invokes/{id}/renew",
        handler="renew_invoke",
        bearer="host key",
        source="assumed",
        summary="New tokens for an invoke that runs long.",
        answer=InvokeGrant,
    ),
    Endpoint(
        method="DELETE",
        path="/executa/invokes/{id}",
        handler="close_invoke",
        bearer="host key",
        source="assumed",
        summary="End the invoke's tokens. Idempotent.",
    ),
)


def _store(path: str, params: type[Struct], answer: type[Struct], summary: str) -> Endpoint:
    return Endpoint(
        method="POST",
        path=f"/storage/{path}",
        handler="storage",
        bearer="storage token",
        source="assumed",
        summary=summary,
        body=params,
        answer=answer,
    )


_STORAGE: Final = (
    _store("kv/get", storage.StorageGetParams, storage.StorageGetResult, "One value."),
    _store("kv/set", storage.StorageSetParams, storage.StorageSetResult, "Store a value."),
    _store("kv/delete", storage.StorageDeleteParams, storage.DeleteResult, "Take a key away."),
    _store("kv/list", storage.StorageListParams, storage.StorageListResult, "A page of keys."),
    _store(
        "files/upload_begin",
        files.UploadBeginParams,
        files.UploadBeginResult,
        "Where to PUT a file.",
    ),
    _store(
        "files/upload_complete",
        files.UploadCompleteParams,
        files.UploadCompleteResult,
        "Make what was PUT the file.",
    ),
    _store(
        "files/download_url",
        files.DownloadUrlParams,
        files.DownloadUrlResult,
        "Where to GET a file.",
    ),
    _store("files/list", files.FilesListParams, files.FilesListResult, "A page of files."),
    _store("files/delete", files.FilesDeleteParams, storage.DeleteResult, "Take a file away."),
)


def _admin(
    method: Literal["GET", "POST", "PUT"],
    path: str,
    summary: str,
    *,
    body: type[Struct] | None = None,
) -> Endpoint:
    handler = f"{path.replace('/', '_')}_{method.lower()}"
    return Endpoint(
        method=method,
        path=f"/admin/{path}",
        handler=handler,
        bearer="none",
        source="assumed",
        summary=f"{summary} Answers callers on this machine only.",
        body=body,
        answer=Raw,
    )


_ADMIN: Final = (
    _admin("GET", "ledger", "What each user, plugin and invoke consumed."),
    _admin("GET", "state", "What is open and in flight."),
    _admin("GET", "faults", "The faults in force, their seed and what they struck."),
    _admin("PUT", "faults", "Other faults from now on."),
    _admin("PUT", "grants", "Change members of one grant.", body=GrantChange),
    _admin("POST", "keys/rotate", "Sign tokens with a new key from now on."),
)

ENDPOINTS: Final = (*_INVOKES, *_COPILOT, *_STORAGE, *_ADMIN)
"""Everything but the signed file URLs, which `blobs` serves, and the OpenAPI document."""
