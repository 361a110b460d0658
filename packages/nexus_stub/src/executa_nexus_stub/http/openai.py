"""Any endpoint that speaks OpenAI's chat completions, streaming, with tool calls.

Owns the translation both ways. Tool names map reversibly: that API forbids dots (R-36).
The key comes from the environment, at the time of the call, and stands in no message.
"""

import os
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final, cast

import aiohttp

from executa_nexus_stub.config import ModelSpec
from executa_nexus_stub.models.base import (
    Completion,
    Message,
    ModelError,
    ModelInfo,
    ModelRequest,
    Stop,
    TextPiece,
    TokenUsage,
    ToolSpec,
    ToolUse,
    TurnEnd,
    TurnEvent,
)
from executa_nexus_stub.models.estimate import count_request, count_tokens
from executa_protocol import codec
from executa_protocol.errors import DecodeFailure, UsageError
from executa_protocol.limits import SAMPLING_TIMEOUT
from executa_protocol.sse import SseOverflow, SseParser

_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9_-]")
_NAME_CHARS: Final = 64
_STOPS: Final[dict[str, Stop]] = {"length": "maxTokens", "stop": "endTurn"}


class NameMap:
    """Tool names as the API allows them, and back."""

    def __init__(self, names: Iterable[str]) -> None:
        self._safe: dict[str, str] = {}
        self._real: dict[str, str] = {}
        for name in dict.fromkeys(names):
            base = _FORBIDDEN.sub("_", name)[:_NAME_CHARS]
            safe, number = base, 2
            while safe in self._real:
                tail = f"_{number}"
                safe, number = base[: _NAME_CHARS - len(tail)] + tail, number + 1
            self._safe[name], self._real[safe] = safe, name

    def safe(self, name: str) -> str:
        """What the API is told."""
        return self._safe[name]

    def real(self, safe: str) -> str:
        """What the API meant; a name that it made up stays as it is."""
        return self._real.get(safe, safe)


class OpenAIModel:
    """One model behind one endpoint."""

    def __init__(self, spec: ModelSpec, info: ModelInfo) -> None:
        if not spec.base_url:
            msg = f"model {spec.name!r}: kind openai needs base_url"
            raise UsageError(msg)
        self._spec = spec
        self._info = info
        self._session: aiohttp.ClientSession | None = None

    @property
    def info(self) -> ModelInfo:
        """Its entry in the catalogue."""
        return self._info

    async def complete(self, request: ModelRequest) -> Completion:
        """One answer, streamed and joined."""
        text: list[str] = []
        async for event in self.turn(request, ()):
            if isinstance(event, TextPiece):
                text.append(event.text)
            elif isinstance(event, TurnEnd):
                return Completion("".join(text), event.stop, event.usage)
        raise ModelError("the provider broke off")

    async def turn(
        self, request: ModelRequest, tools: Sequence[ToolSpec]
    ) -> AsyncIterator[TurnEvent]:
        """One turn, its text as it comes, its tool calls once they are whole."""
        used = [use.name for message in request.messages for use in message.calls]
        names = NameMap([*(tool.name for tool in tools), *used])
        calls: dict[int, dict[str, str]] = {}
        said: list[str] = []
        usage: TokenUsage | None = None
        stop: Stop = "endTurn"
        async for chunk in self._chunks(request_body(self._spec, request, tools, names)):
            usage = _usage(chunk.get("usage")) or usage
            for choice in cast("list[dict[str, Any]]", chunk.get("choices") or []):
                delta = cast("dict[str, Any]", choice.get("delta") or {})
                stop = _STOPS.get(str(choice.get("finish_reason")), stop)
                if isinstance(delta.get("content"), str) and delta["content"]:
                    said.append(delta["content"])
                    yield TextPiece(delta["content"])
                _collect(cast("list[dict[str, Any]]", delta.get("tool_calls") or []), calls)
        for call in calls.values():
            yield ToolUse(names.real(call["name"]), _arguments(call["arguments"]), call["id"])
        if usage is None:
            usage = TokenUsage(count_request(request, tools), count_tokens("".join(said)))
        yield TurnEnd(stop, usage)

    async def aclose(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _chunks(self, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_read=SAMPLING_TIMEOUT)
            self._session = aiohttp.ClientSession(timeout=timeout)
        url = self._spec.base_url.rstrip("/") + "/chat/completions"
        try:
            async with self._session.post(
                url,
                data=codec.encode(body),
                headers={"Content-Type": "application/json", **self._authorization()},
            ) as response:
                if response.status != 200:
                    raise _failure(response)
                parser = SseParser()
                async for data in response.content.iter_any():
                    for event in parser.feed(data):
                        if event.data == b"[DONE]":
                            return
                        yield cast("dict[str, Any]", codec.decode_any(event.data))
        except (aiohttp.ClientError, TimeoutError) as fault:
            msg = f"the provider could not be reached: {type(fault).__name__}"
            raise ModelError(msg) from None
        except (DecodeFailure, SseOverflow):
            raise ModelError("the provider sent what is no stream of chunks") from None

    def _authorization(self) -> dict[str, str]:
        key = os.environ.get(self._spec.key_env, "") if self._spec.key_env else ""
        return {"Authorization": f"Bearer {key}"} if key else {}


def request_body(
    spec: ModelSpec, request: ModelRequest, tools: Sequence[ToolSpec], names: NameMap
) -> dict[str, Any]:
    """The body of one call."""
    messages = [_message(message, names) for message in request.messages]
    if request.system:
        messages.insert(0, {"role": "system", "content": request.system})
    body: dict[str, Any] = {
        "model": spec.upstream_model or spec.name,
        "messages": messages,
        "max_tokens": request.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.stop:
        body["stop"] = list(request.stop)
    if request.format == "json_object":
        body["response_format"] = {"type": "json_object"}
    elif request.format == "json_schema":
        wanted = {"name": request.schema_name or "answer", "schema": request.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": wanted}
    if tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": names.safe(tool.name),
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in tools
        ]
        if request.tool_choice == "required":
            body["tool_choice"] = "required"
    return body


def _message(message: Message, names: NameMap) -> dict[str, Any]:
    body: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        body["tool_calls"] = [
            {
                "id": use.call_id,
                "type": "function",
                "function": {
                    "name": names.safe(use.name),
                    "arguments": codec.encode(use.args).decode(),
                },
            }
            for use in message.calls
        ]
    if message.role == "tool":
        body["tool_call_id"] = message.call_id
    return body


def _collect(parts: list[dict[str, Any]], calls: dict[int, dict[str, str]]) -> None:
    """Join the pieces in which tool calls come, by their index."""
    for part in parts:
        call = calls.setdefault(int(part.get("index", 0)), {"id": "", "name": "", "arguments": ""})
        function = cast("dict[str, Any]", part.get("function") or {})
        call["id"] += str(part.get("id") or "")
        call["name"] += str(function.get("name") or "")
        call["arguments"] += str(function.get("arguments") or "")


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = codec.decode_any(text.encode() if text.strip() else b"{}")
    except DecodeFailure:
        value = None
    if not isinstance(value, dict):
        raise ModelError("the model called a tool with arguments that are no object")
    return cast("dict[str, Any]", value)


def _usage(value: Any) -> TokenUsage | None:
    if not isinstance(value, dict):
        return None
    counts = cast("dict[str, Any]", value)
    return TokenUsage(
        int(counts.get("prompt_tokens") or 0), int(counts.get("completion_tokens") or 0)
    )


def _failure(response: aiohttp.ClientResponse) -> ModelError:
    pause = response.headers.get("Retry-After", "")
    return ModelError(
        f"the provider answered with status {response.status}",
        status=response.status,
        retry_after=float(pause) if pause.isdecimal() else None,
    )
