"""`agent/*`: params of `complete` and of the agent session calls, and their checks.

Owns what a plugin may ask (seed agent-sessions, Reverse RPC methods). Results are in
`agent_results`; the cache of sessions, frames and nexus are other modules'.
"""

from typing import Annotated, Final

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from executa_protocol.limits import (
    AGENT_LABEL_CHARS,
    AGENT_MAX_ATTACHMENTS,
    AGENT_RECURSION_MAX,
    AGENT_RUN_MAX_TOKENS,
    AGENT_SYSTEM_PROMPT_CHARS,
    AGENT_TTL_MAX,
)
from executa_protocol.methods.common import Params, TextContent
from executa_protocol.methods.reading import (
    Alias,
    InvalidParams,
    Members,
    Shape,
    raw,
    single_text,
    text_of,
)
from executa_protocol.methods.sampling import (
    ModelPreferences,
    SamplingMessage,
    check_messages,
    fold_messages,
)
from executa_protocol.readings import TOLERANT, Reader

_FAULT: Final = "INVALID_PARAMS"
_HISTORY_MAX: Final = 200
_LIST_MAX: Final = 100

NonEmpty = Annotated[str, Meta(min_length=1)]
Ttl = Annotated[int, Meta(ge=1, le=AGENT_TTL_MAX)]
"""Seconds, 1 to 7,200."""


class CompleteParams(Params, kw_only=True):
    """The params of `agent/complete` (R-37): `messages`, or the seed's `prompt`.

    `max_tokens` is at least 1; the caps of the user's grant bound it (R-35). The seed's SDK
    spelling ``max_tokens`` is read as well.
    """

    messages: list[SamplingMessage]
    max_tokens: Annotated[int, Meta(ge=1)] = field(name="maxTokens")
    system_prompt: str | UnsetType = field(default=UNSET, name="systemPrompt")
    temperature: float | UnsetType = UNSET
    stop_sequences: list[str] | UnsetType = field(default=UNSET, name="stopSequences")
    model_preferences: ModelPreferences | UnsetType = field(default=UNSET, name="modelPreferences")


def check_complete(params: CompleteParams) -> None:
    """Raise `InvalidParams` (-32602) for what the types do not hold up."""
    check_messages(params.messages, _FAULT)


def _fold_complete(members: Members, reader: Reader) -> None:
    # Both spellings are the seed's own (its SDK call), so strict mode takes them too.
    if "max_tokens" in members:
        members.setdefault("maxTokens", members.pop("max_tokens"))
    if "prompt" in members and "messages" not in members:
        prompt = text_of(members.pop("prompt"))
        if prompt is None:
            raise InvalidParams(_FAULT, "prompt: expected a string", path="prompt")
        members["messages"] = raw([SamplingMessage("user", TextContent("text", prompt))])
    fold_messages(members, reader, _FAULT)


class QuotaCaps(Struct, omit_defaults=True, kw_only=True):
    """What the field lets `create` narrow down: the tools and the amount of work."""

    inherit_host_tools: bool | UnsetType = UNSET
    allowed_tools: list[str] | UnsetType = UNSET
    max_tokens_per_call: int | UnsetType = UNSET
    max_runs_per_day: int | UnsetType = UNSET
    max_concurrent_runs: int | UnsetType = UNSET


class AgentSessionCreateParams(Params, kw_only=True):
    """The params of `agent/session.create` (seed agent-sessions; R-38).

    `kind` is ``agent`` or ``fixed``; `agent_submode` only ``auto``; `fixed_client_id`
    has the form ``PLUGIN.TOOL``. The members after `label` are the field's.
    """

    kind: str
    agent_submode: str | UnsetType = UNSET
    fixed_client_id: str | UnsetType = UNSET
    label: Annotated[str, Meta(max_length=AGENT_LABEL_CHARS)] | UnsetType = UNSET
    quota_caps: QuotaCaps | UnsetType = UNSET
    system_prompt: Annotated[str, Meta(max_length=AGENT_SYSTEM_PROMPT_CHARS)] | UnsetType = UNSET
    ttl_seconds: Ttl | UnsetType = UNSET


def check_create(params: AgentSessionCreateParams) -> None:
    """Raise `InvalidParams`: -32602 for the kind, -32042 for the submode, -32043 for the tool."""
    if params.kind == "agent":
        if params.agent_submode != "auto":
            got = "absent" if params.agent_submode is UNSET else repr(params.agent_submode)
            raise InvalidParams(
                "AGENT_INVALID_SUBMODE",
                f'agent_submode: expected "auto", it is {got}',
                path="agent_submode",
            )
    elif params.kind == "fixed":
        if not params.fixed_client_id:
            raise InvalidParams(
                "AGENT_FIXED_REQUIRES_CLIENT_ID",
                'fixed_client_id: required with kind "fixed"',
                path="fixed_client_id",
            )
    else:
        message = f'kind: expected "agent" or "fixed", got {params.kind!r}'
        raise InvalidParams(_FAULT, message, path="kind")


def _fold_create(members: Members, reader: Reader) -> None:
    if "kind" not in members:
        reader.tolerate("AGNT-002", 'kind is absent and is read as "agent"')
        members["kind"] = raw("agent")


class Attachment(Struct, omit_defaults=True, kw_only=True):
    """A file that goes with a message: by `url`, or as base64 in `data`."""

    type: str
    url: str | UnsetType = UNSET
    data: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


class AgentSessionRunParams(Params, kw_only=True):
    """The params of `agent/session.run` (seed agent-sessions; R-31).

    `run_id` is the caller's choice, so that it can cancel. `allowed_tools` narrows
    the granted ones, ``[]`` to none. `recursion_limit` is 1 to 32 model turns.
    """

    app_session_uuid: NonEmpty
    content: NonEmpty
    run_id: NonEmpty | UnsetType = UNSET
    attachments: Annotated[list[Attachment], Meta(max_length=AGENT_MAX_ATTACHMENTS)] | UnsetType = (
        UNSET
    )
    recursion_limit: Annotated[int, Meta(ge=1, le=AGENT_RECURSION_MAX)] | UnsetType = UNSET
    allowed_tools: list[str] | UnsetType = UNSET
    model_preferences: ModelPreferences | UnsetType = field(default=UNSET, name="modelPreferences")
    system_prompt: str | UnsetType = field(default=UNSET, name="systemPrompt")
    max_tokens: Annotated[int, Meta(ge=1, le=AGENT_RUN_MAX_TOKENS)] | UnsetType = field(
        default=UNSET, name="maxTokens"
    )


def check_run(params: AgentSessionRunParams) -> None:
    """Raise `InvalidParams` (-32602) for blank content or an attachment without content."""
    if not params.content.strip():
        raise InvalidParams(_FAULT, "content: expected some text", path="content")
    for index, item in enumerate(params.attachments or ()):
        if not item.url and not item.data:
            path = f"attachments[{index}]"
            raise InvalidParams(_FAULT, f"{path}: expected url or data", path=path)


def _fold_run(members: Members, reader: Reader) -> None:
    content = members.get("content")
    if content is not None and text_of(content) is None:
        text = single_text(content)
        if text is not None:
            reader.tolerate("AGNT-004", "content is a text part instead of a string")
            members["content"] = raw(text)


class AgentSessionCancelParams(Params, kw_only=True):
    """The params of `agent/session.cancel`: which run of which agent session (R-32)."""

    app_session_uuid: NonEmpty
    run_id: NonEmpty


class AgentSessionHistoryParams(Params, kw_only=True):
    """The params of `agent/session.history`; it answers ``[]`` until v2.2 (R-33)."""

    app_session_uuid: NonEmpty
    limit: Annotated[int, Meta(ge=1, le=_HISTORY_MAX)] | UnsetType = UNSET
    cursor: str | UnsetType = UNSET


class AgentSessionDeleteParams(Params, kw_only=True):
    """The params of `agent/session.delete` (R-30)."""

    app_session_uuid: NonEmpty


class AgentSessionListParams(Params, kw_only=True):
    """The params of `agent/session.list`, an extension (R-33)."""

    include_expired: bool = False
    limit: Annotated[int, Meta(ge=1, le=_LIST_MAX)] | UnsetType = UNSET


class AgentSessionRefreshParams(Params, kw_only=True):
    """The params of `agent/session.refresh`, an extension (R-33)."""

    app_session_uuid: NonEmpty
    ttl_seconds: Ttl | UnsetType = UNSET


_TTL: Final = Alias("expires_in", "ttl_seconds", "AGNT-003")
_COMPLETE: Final = Shape(
    CompleteParams,
    _FAULT,
    check=check_complete,
    fold=_fold_complete,
    hints=("prompt", "max_tokens"),
)
_CREATE: Final = Shape(
    AgentSessionCreateParams,
    _FAULT,
    check=check_create,
    aliases=(Alias("submode", "agent_submode", "AGNT-001"), _TTL),
    fold=_fold_create,
)
_RUN: Final = Shape(
    AgentSessionRunParams,
    _FAULT,
    check=check_run,
    aliases=(Alias("system", "systemPrompt", "AGNT-005"),),
    fold=_fold_run,
)
_CANCEL: Final = Shape(AgentSessionCancelParams, _FAULT)
_HISTORY: Final = Shape(AgentSessionHistoryParams, _FAULT)
_DELETE: Final = Shape(AgentSessionDeleteParams, _FAULT)
_LIST: Final = Shape(AgentSessionListParams, _FAULT)
_REFRESH: Final = Shape(AgentSessionRefreshParams, _FAULT, aliases=(_TTL,))

Data = bytes | Raw | UnsetType


def read_complete(data: Data, reader: Reader = TOLERANT) -> CompleteParams:
    """Read the params of `agent/complete`. Raises `InvalidParams`."""
    return _COMPLETE.read(data, reader)


def read_create(data: Data, reader: Reader = TOLERANT) -> AgentSessionCreateParams:
    """Read the params of `agent/session.create` (R-38). Raises `InvalidParams`."""
    return _CREATE.read(data, reader)


def read_run(data: Data, reader: Reader = TOLERANT) -> AgentSessionRunParams:
    """Read the params of `agent/session.run`. Raises `InvalidParams`."""
    return _RUN.read(data, reader)


def read_cancel_run(data: Data, reader: Reader = TOLERANT) -> AgentSessionCancelParams:
    """Read the params of `agent/session.cancel`. Raises `InvalidParams`."""
    return _CANCEL.read(data, reader)


def read_history(data: Data, reader: Reader = TOLERANT) -> AgentSessionHistoryParams:
    """Read the params of `agent/session.history`. Raises `InvalidParams`."""
    return _HISTORY.read(data, reader)


def read_delete(data: Data, reader: Reader = TOLERANT) -> AgentSessionDeleteParams:
    """Read the params of `agent/session.delete`. Raises `InvalidParams`."""
    return _DELETE.read(data, reader)


def read_list(data: Data, reader: Reader = TOLERANT) -> AgentSessionListParams:
    """Read the params of `agent/session.list`. Raises `InvalidParams`."""
    return _LIST.read(data, reader)


def read_refresh(data: Data, reader: Reader = TOLERANT) -> AgentSessionRefreshParams:
    """Read the params of `agent/session.refresh`. Raises `InvalidParams`."""
    return _REFRESH.read(data, reader)
