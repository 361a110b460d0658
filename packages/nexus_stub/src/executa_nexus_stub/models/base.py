"""What a model is to the stub: messages in, text or tool calls out.

Owns the interface and its structs. It knows no wire method, no token and no budget:
`sampling` and `agent` turn their params into a `ModelRequest` and charge what came back.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from executa_protocol.errors import ExecutaError

Format = Literal["text", "json_object", "json_schema"]
"""What the answer has to be."""

Stop = Literal["endTurn", "stopSequence", "maxTokens"]
"""Why a model stopped, as the sampling chapter spells it (*observed*)."""


class ModelError(ExecutaError):
    """The model's provider failed. `status` is HTTP's; `retry_after` is in seconds."""

    def __init__(
        self, message: str, *, status: int = 502, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class ToolSpec(Struct, frozen=True):
    """A tool that a turn may call; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolUse(Struct, frozen=True):
    """The model wants a tool called. `call_id` is the model's own id, empty if it has none."""

    name: str
    args: dict[str, Any]
    call_id: str = ""


class Message(Struct, frozen=True, kw_only=True):
    """One message of a conversation.

    `calls` stand in an assistant's message; a message of role ``tool`` answers one of
    them, with JSON in `text`.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    calls: tuple[ToolUse, ...] = ()
    call_id: str = ""
    ok: bool = True


class ModelRequest(Struct, frozen=True, kw_only=True):
    """What a model is asked. `schema` goes with the format ``json_schema``; `tool_choice`
    ``required`` asks a turn to call a tool before it answers. `tool_id` is the Executa tool id
    of the plugin that asks."""

    messages: tuple[Message, ...]
    max_tokens: int
    system: str = ""
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    format: Format = "text"
    schema: dict[str, Any] | None = None
    schema_name: str = ""
    tool_choice: Literal["auto", "required"] = "auto"
    tool_id: str = ""


class TokenUsage(Struct, frozen=True):
    """Tokens that one answer cost."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens
        )

    @property
    def total(self) -> int:
        """Both together."""
        return self.input_tokens + self.output_tokens


class Completion(Struct, frozen=True):
    """A whole answer."""

    text: str
    stop: Stop
    usage: TokenUsage


class TextPiece(Struct, frozen=True):
    """The next piece of a turn's text."""

    text: str


class RawFrame(Struct, frozen=True):
    """A run frame that goes to the host as it is, in whatever dialect it was recorded."""

    data: bytes


class TurnEnd(Struct, frozen=True):
    """The end of a turn, always its last event."""

    stop: Stop
    usage: TokenUsage


TurnEvent = TextPiece | ToolUse | RawFrame | TurnEnd


class ModelInfo(Struct, frozen=True, kw_only=True):
    """What the catalogue knows of a model. `cost` orders models, cheapest first."""

    name: str
    provider: str = "stub"
    cost: float = 1.0
    formats: tuple[Format, ...] = ("text", "json_object", "json_schema")
    active: bool = True


class Model(Protocol):
    """A language model."""

    @property
    def info(self) -> ModelInfo:
        """Its entry in the catalogue."""
        ...

    async def complete(self, request: ModelRequest) -> Completion:
        """One answer. Raises `ModelError`."""
        ...

    def turn(self, request: ModelRequest, tools: Sequence[ToolSpec]) -> AsyncIterator[TurnEvent]:
        """One turn of an agent run, as it comes. Raises `ModelError`."""
        ...

    async def aclose(self) -> None:
        """Let go of connections. Idempotent."""
        ...
