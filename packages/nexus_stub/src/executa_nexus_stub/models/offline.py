"""The offline model: deterministic, extractive, and real work on real text.

Owns the order of its steps; reading, choosing and filling are other modules'. Same
input, same answer: no time, no randomness, no network. In an agent run it calls the
tools that the prompt asks for, each once, then answers from what they gave.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

from executa_nexus_stub.models import extract, structured
from executa_nexus_stub.models.base import (
    Completion,
    Message,
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
from executa_nexus_stub.models.estimate import count_request, count_tokens, pieces
from executa_nexus_stub.models.prompt import last_user_text, read_prompt
from executa_nexus_stub.models.text import key_stems, matches
from executa_nexus_stub.models.tool_rules import arguments, wanted_tools
from executa_nexus_stub.models.values import as_sentence, decoded, is_empty, texts_in
from executa_protocol import codec

DEFAULT = ModelInfo(name="offline-extractive", provider="offline", cost=0.0)
"""The catalogue's entry when the configuration names no model."""

_FACTS = 5
"""Most findings of one tool that an answer repeats."""


class OfflineModel:
    """Answers with the best sentences of what it was given."""

    def __init__(self, info: ModelInfo = DEFAULT) -> None:
        self._info = info

    @property
    def info(self) -> ModelInfo:
        """Its entry in the catalogue."""
        return self._info

    async def complete(self, request: ModelRequest) -> Completion:
        """Summarize, answer or fill, as the messages ask."""
        prompt = read_prompt(request)
        if request.format == "text":
            text = extract.answer(prompt, request.max_tokens)
        else:
            schema = request.schema if request.format == "json_schema" else None
            text = structured.fill_text(schema, prompt, request.max_tokens)
        return _completion(text, request, ())

    async def turn(
        self, request: ModelRequest, tools: Sequence[ToolSpec]
    ) -> AsyncIterator[TurnEvent]:
        """Call the next tool that the prompt asks for, or answer from what was found."""
        asked = last_user_text(request.messages)
        results = _results(request.messages)
        done = {use.name for use, _ in results}
        forced = _forced(request, tools)
        wanted = [forced] if forced else wanted_tools(asked, tools)
        for use in wanted:
            if use.name not in done:
                yield use
                usage = TokenUsage(count_request(request, tools), count_tokens(_as_text(use.args)))
                yield TurnEnd("endTurn", usage)
                return
        prompt = read_prompt(request)
        text = _from_results(asked, results)
        if not text or prompt.brought:
            left = max(1, request.max_tokens - count_tokens(text))
            text = f"{text} {extract.answer(prompt, left)}".lstrip()
        completion = _completion(text, request, tools)
        for piece in pieces(completion.text):
            yield TextPiece(piece)
        yield TurnEnd(completion.stop, completion.usage)

    async def aclose(self) -> None:
        """Nothing to let go of."""


def _completion(text: str, request: ModelRequest, tools: Sequence[ToolSpec]) -> Completion:
    text, stop = extract.finish(text, request.max_tokens, request.stop)
    usage = TokenUsage(count_request(request, tools), count_tokens(text))
    return Completion(text, cast("Stop", stop), usage)


def _forced(request: ModelRequest, tools: Sequence[ToolSpec]) -> ToolUse | None:
    """The one tool of a session that may use no other (kind ``fixed``)."""
    if request.tool_choice != "required" or len(tools) != 1:
        return None
    asked = last_user_text(request.messages)
    named = wanted_tools(asked, tools)
    return named[0] if named else ToolUse(tools[0].name, arguments(tools[0], asked))


def _results(messages: tuple[Message, ...]) -> list[tuple[ToolUse, Message]]:
    """What tools gave since the user spoke last."""
    start = max((i for i, m in enumerate(messages) if m.role == "user"), default=-1) + 1
    calls = {use.call_id: use for message in messages[start:] for use in message.calls}
    return [
        (calls[message.call_id], message)
        for message in messages[start:]
        if message.role == "tool" and message.call_id in calls
    ]


def _from_results(asked: str, results: list[tuple[ToolUse, Message]]) -> str:
    """One sentence for each tool: what it found that meets the question, or that it failed."""
    said: list[str] = []
    goals = key_stems(asked)
    for use, message in results:
        data = decoded(message.text)
        found = texts_in(data)
        if not message.ok:
            said.append(as_sentence(f"{use.name} failed: {' '.join(found) or 'no reason given'}"))
        elif found:
            ranks = matches(found, goals)
            kept = [text for text, rank in zip(found, ranks, strict=True) if rank > 0] or found
            said.append(f"From {use.name}: {' '.join(map(as_sentence, kept[:_FACTS]))}")
        elif is_empty(data):
            said.append(f"{use.name} found nothing.")
        else:
            said.append(f"{use.name}: {_as_text(data)}.")
    return " ".join(said)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else codec.encode(value).decode()
