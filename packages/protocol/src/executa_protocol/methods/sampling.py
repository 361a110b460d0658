"""`sampling/createMessage`: params and result, and the messages that the agent calls share.

Owns the structs and their bounds. Budgets, grants and models are the host's and
nexus's business.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from executa_protocol import codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.limits import SAMPLING_MAX_MESSAGES
from executa_protocol.methods.common import Params, TextContent
from executa_protocol.methods.reading import (
    InvalidParams,
    Members,
    Shape,
    items_of,
    members_of,
    raw,
    single_text,
    text_of,
)
from executa_protocol.methods.response_format import ResponseFormat, check_response_format
from executa_protocol.readings import TOLERANT, Reader

_FAULT: Final = "SAMPLING_INVALID_REQUEST"

Role = Literal["user", "assistant", "system"]
Priority = Annotated[float, Meta(ge=0, le=1)]
"""A weight from 0 to 1."""

StopReason = Literal["endTurn", "stopSequence", "maxTokens"]


class SamplingMessage(Struct):
    """One turn of the conversation."""

    role: Role
    content: TextContent


class ModelHint(Struct, omit_defaults=True):
    """A part of a model's name, in any case. The first hint that fits decides."""

    name: str | UnsetType = UNSET


class ModelPreferences(Struct, omit_defaults=True, rename="camel", kw_only=True):
    """Which model the plugin would like; the host may choose another."""

    hints: list[ModelHint] | UnsetType = UNSET
    cost_priority: Priority | UnsetType = UNSET
    speed_priority: Priority | UnsetType = UNSET
    intelligence_priority: Priority | UnsetType = UNSET


class SamplingParams(Params, kw_only=True):
    """The params of `sampling/createMessage` (field names: the sampling chapter).

    1 to 64 `messages`; `max_tokens` is at least 1, and how many one call may ask for is in
    the caps of the user's grant: 8,192 by default (R-35). `client_timeout_s` is private
    to SDKs of the field: a host clamps it and never passes it on.
    """

    messages: Annotated[list[SamplingMessage], Meta(min_length=1, max_length=SAMPLING_MAX_MESSAGES)]
    max_tokens: Annotated[int, Meta(ge=1)] = field(name="maxTokens")
    system_prompt: str | UnsetType = field(default=UNSET, name="systemPrompt")
    temperature: float | UnsetType = UNSET
    stop_sequences: list[str] | UnsetType = field(default=UNSET, name="stopSequences")
    model_preferences: ModelPreferences | UnsetType = field(default=UNSET, name="modelPreferences")
    include_context: Literal["none"] | UnsetType = field(default=UNSET, name="includeContext")
    response_format: ResponseFormat | UnsetType = field(default=UNSET, name="responseFormat")
    on_unsupported: Literal["error", "json_object", "text"] | UnsetType = field(
        default=UNSET, name="onUnsupported"
    )
    client_timeout_s: float | UnsetType = field(default=UNSET, name="_clientTimeoutS")


def check_sampling(params: SamplingParams) -> None:
    """Raise `InvalidParams` (-32004) for what the types do not hold up.

    Decoded params have been through the bounds of the types; params that were built
    by hand have not, so the counts are looked at again.
    """
    check_messages(params.messages, _FAULT)
    if params.max_tokens < 1:
        message = f"maxTokens: expected 1 or more, got {params.max_tokens}"
        raise InvalidParams(_FAULT, message, path="maxTokens")
    if params.response_format is not UNSET:
        check_response_format(params.response_format)


def check_messages(messages: list[SamplingMessage], fault: str) -> None:
    """Raise `InvalidParams` of row `fault` unless there are 1 to 64 messages."""
    if not 1 <= len(messages) <= SAMPLING_MAX_MESSAGES:
        message = f"messages: expected 1 to {SAMPLING_MAX_MESSAGES}, got {len(messages)}"
        raise InvalidParams(fault, message, path="messages")


_MESSAGE: Final = msgspec.json.Decoder(SamplingMessage)


def fold_messages(members: Members, reader: Reader, fault: str = _FAULT) -> None:
    """Bring each message's content to the one form it has, naming the first that has none."""
    items = items_of(members["messages"]) if "messages" in members else None
    if items is None or len(items) > SAMPLING_MAX_MESSAGES:
        return
    for index, item in enumerate(items):
        try:
            codec.decode(item, _MESSAGE)
        except DecodeFailure as failure:
            path = f"messages[{index}]"
            items[index] = fixed = _with_plain_content(item, path, reader)
            try:
                codec.decode(fixed, _MESSAGE)
            except DecodeFailure:
                where = f"{path}.{failure.path}" if failure.path else path
                text = str(failure).removeprefix(f"{failure.path}: ")
                raise InvalidParams(fault, f"{where}: {text}", path=where) from None
    members["messages"] = raw(items)


def _with_plain_content(item: Raw, path: str, reader: Reader) -> Raw:
    message = members_of(item)
    if message is None or "content" not in message:
        return item
    content = message["content"]
    text = text_of(content)
    if text is not None:
        reader.tolerate("SAMP-001", f"{path}.content is a bare string")
    elif items_of(content) is not None and (text := single_text(content)) is not None:
        reader.tolerate("SAMP-002", f"{path}.content is a list of one text part")
    if text is None:
        return item
    return raw({**message, "content": TextContent("text", text)})


_SAMPLING: Final = Shape(SamplingParams, _FAULT, check=check_sampling, fold=fold_messages)


def read_sampling(data: bytes | Raw | UnsetType, reader: Reader = TOLERANT) -> SamplingParams:
    """Read the params of `sampling/createMessage`. Raises `InvalidParams` with -32004."""
    return _SAMPLING.read(data, reader)


_PROPER: Final = msgspec.json.Decoder(SamplingParams)


def glance_at_sampling(data: bytes | Raw | UnsetType) -> SamplingParams | None:
    """Params that fit as they stand and need no check; None for all that `read_sampling` must see.

    Whoever wants a member of them before it is time to refuse them need not read them twice.
    """
    if data is UNSET:
        return None
    try:
        params = _PROPER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return params if params.response_format is UNSET else None


class Usage(Struct, omit_defaults=True, rename="camel", kw_only=True):
    """Tokens that a call used."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int | UnsetType = UNSET


class FormatReport(Struct, omit_defaults=True, rename="camel", kw_only=True):
    """What became of a requested response format."""

    requested: str | UnsetType = UNSET
    applied: str | UnsetType = UNSET
    structured_valid: bool | UnsetType = UNSET
    downgraded: bool | UnsetType = UNSET


class SamplingMeta(Struct, omit_defaults=True, rename="camel", kw_only=True):
    """About the call rather than the answer. `latency_ms` is milliseconds."""

    provider: str | UnsetType = UNSET
    latency_ms: float | UnsetType = UNSET
    quota_consumed: Any = UNSET
    response_format: FormatReport | UnsetType = UNSET


class SamplingResult(Struct, omit_defaults=True, kw_only=True):
    """The answer to `sampling/createMessage`, and to `agent/complete` (R-37)."""

    role: Literal["assistant"] = field(default_factory=lambda: "assistant")
    content: TextContent
    model: str
    stop_reason: StopReason | str = field(name="stopReason")
    usage: Usage | UnsetType = UNSET
    meta: SamplingMeta | UnsetType = field(default=UNSET, name="_meta")


_RESULT: Final = Shape(SamplingResult, "SAMPLING_PROVIDER_ERROR")


def read_sampling_result(data: bytes | Raw, reader: Reader = TOLERANT) -> SamplingResult:
    """Read a sampling-shaped answer. Raises `InvalidParams`."""
    return _RESULT.read(data, reader)
