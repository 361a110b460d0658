"""Recording what a model answers, as a fixture file that `fixture` replays.

Owns the writing. Each answer is appended once it is whole: a run's turns become one
entry. The file holds what users said; it is written only where it was asked for.
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from executa_nexus_stub.models.base import (
    Completion,
    Model,
    ModelInfo,
    ModelRequest,
    RawFrame,
    TextPiece,
    ToolSpec,
    ToolUse,
    TurnEvent,
)
from executa_nexus_stub.models.prompt import last_user_text
from executa_protocol import codec, frames


class RecordingModel:
    """Passes everything through to `model` and appends it to the file at `path`."""

    def __init__(self, model: Model, path: str | Path) -> None:
        self._model = model
        self._path = Path(path)
        self._runs: dict[str, list[dict[str, Any]]] = {}

    @property
    def info(self) -> ModelInfo:
        """The recorded model's entry."""
        return self._model.info

    async def complete(self, request: ModelRequest) -> Completion:
        """One answer, recorded."""
        completion = await self._model.complete(request)
        self._append(
            "sampling",
            "createMessage",
            request,
            result={
                "role": "assistant",
                "content": {"type": "text", "text": completion.text},
                "model": self.info.name,
                "stopReason": completion.stop,
                "usage": {
                    "inputTokens": completion.usage.input_tokens,
                    "outputTokens": completion.usage.output_tokens,
                },
            },
        )
        return completion

    async def turn(
        self, request: ModelRequest, tools: Sequence[ToolSpec]
    ) -> AsyncIterator[TurnEvent]:
        """One turn; the run is written once a turn called no tool."""
        prompt = last_user_text(request.messages)
        if request.messages[-1].role == "user":
            self._runs[prompt] = []
        events = self._runs.setdefault(prompt, [])
        called = False
        async for event in self._model.turn(request, tools):
            payload: Any = None
            if isinstance(event, TextPiece):
                payload = frames.Delta(event.text)
            elif isinstance(event, ToolUse):
                called = True
                payload = frames.ToolCall(event.name, f"call_{len(events)}", event.args)
            elif isinstance(event, RawFrame):
                payload = codec.decode_any(event.data)
            if payload is not None:
                events.append({"payload": payload})
            yield event
        if not called:
            self._append("agent", "session.run", request, events=self._runs.pop(prompt, []))

    async def aclose(self) -> None:
        """Close the recorded model."""
        await self._model.aclose()

    def _append(self, ns: str, method: str, request: ModelRequest, **answer: Any) -> None:
        match = {"promptIncludes": last_user_text(request.messages)}
        line = codec.encode({"ns": ns, "method": method, "match": match, **answer})
        with self._path.open("ab") as file:
            file.write(line + b"\n")
