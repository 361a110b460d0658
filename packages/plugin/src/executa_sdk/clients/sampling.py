"""`SamplingClient`: one completion by the host's model (`sampling/createMessage`)."""

from typing import Any, Final, cast

from msgspec import Struct

from executa_protocol.codes import SAMPLING_NOT_NEGOTIATED, SAMPLING_TIMEOUT
from executa_protocol.errors import SamplingError
from executa_protocol.limits import SAMPLING_TIMEOUT as TIMEOUT
from executa_sdk.clients.base import Client, Object

DEFAULT_MAX_TOKENS: Final = 1024
"""Tokens asked for when a call does not say: enough for a page of text."""


class Completion(Struct, frozen=True):
    """What a model answered. `str` gives the text.

    `stop_reason` is ``endTurn``, ``stopSequence`` or ``maxTokens``; `usage` counts tokens as
    ``inputTokens`` and ``outputTokens``.
    """

    text: str
    model: str = ""
    stop_reason: str = ""
    usage: dict[str, Any] = {}

    def __str__(self) -> str:
        return self.text


class SamplingClient(Client):
    """Asks the host for completions.

    One client serves any number of calls at once. Failures are `SamplingError`.
    """

    error = SamplingError
    disabled_code = SAMPLING_NOT_NEGOTIATED
    timeout_code = SAMPLING_TIMEOUT

    async def create_message(
        self,
        *,
        messages: list[Object],
        max_tokens: int,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: list[str] | None = None,
        model_preferences: Object | None = None,
        include_context: str | None = None,
        metadata: Object | None = None,
        response_format: Object | None = None,
        on_unsupported: str | None = None,
        timeout: float = TIMEOUT,
    ) -> Object:
        """One completion, as the host's result: ``content``, ``model``, ``stopReason``, ``usage``.

        `messages` are 1 to 64 of ``{"role", "content": {"type": "text", "text"}}``;
        `max_tokens` is 1 to 8,192 and counts against the invoke's budget (R-35).
        `response_format` asks for JSON; `on_unsupported` says what to do when the model
        cannot: ``error``, ``json_object`` or ``text``. `timeout` is in seconds.
        Raises `SamplingError`, and ValueError for what no host would take.
        """
        if not messages:
            msg = "messages must not be empty"
            raise ValueError(msg)
        if type(max_tokens) is not int or max_tokens <= 0:
            msg = "max_tokens must be a positive integer"
            raise ValueError(msg)
        params: Object = {"messages": messages, "maxTokens": max_tokens}
        if system_prompt is not None:
            params["systemPrompt"] = system_prompt
        if temperature is not None:
            params["temperature"] = temperature
        if stop_sequences:
            params["stopSequences"] = stop_sequences
        if model_preferences:
            params["modelPreferences"] = model_preferences
        if include_context is not None:
            params["includeContext"] = include_context
        if metadata:
            params["metadata"] = metadata
        if response_format is not None:
            params["responseFormat"] = response_format
        if on_unsupported is not None:
            params["onUnsupported"] = on_unsupported
        return await self._made("sampling/createMessage", params, timeout, an_object=True)


def user_message(text: str) -> Object:
    """A message of the user."""
    return {"role": "user", "content": {"type": "text", "text": text}}


def text_of(result: Object) -> str:
    """The text of a sampling-shaped result; empty when it has none."""
    content: Any = result.get("content")
    text = cast("Object", content).get("text") if isinstance(content, dict) else content
    return text if isinstance(text, str) else ""


def completion(result: Object) -> Completion:
    """A sampling-shaped result in plain values."""
    usage: Any = result.get("usage")
    return Completion(
        text_of(result),
        str(result.get("model") or ""),
        str(result.get("stopReason") or ""),
        cast("Object", usage) if isinstance(usage, dict) else {},
    )
