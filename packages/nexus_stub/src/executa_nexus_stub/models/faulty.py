"""A model that fails on purpose, by a seed that reproduces it.

Owns the faults of a provider: it is slow, it fails, it stops in the middle, it calls a
tool that nobody granted. Faults of nexus itself are `faults`' business.
"""

import random
from collections.abc import AsyncIterator, Sequence

from msgspec import Struct

from executa_nexus_stub.clock import Clock, SystemClock, sleep
from executa_nexus_stub.models.base import (
    Completion,
    Model,
    ModelError,
    ModelInfo,
    ModelRequest,
    ToolSpec,
    ToolUse,
    TurnEvent,
)


class ModelFaults(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What goes wrong. Rates are 0 to 1, `latency` is seconds before the first word.

    `cut_after` breaks a turn off after so many events; `rogue_tool` is called, granted or
    not, in the first turn of a run.
    """

    seed: int = 0
    error_rate: float = 0.0
    latency: float = 0.0
    cut_after: int | None = None
    rogue_tool: str = ""


class FaultyModel:
    """Another model, with faults."""

    def __init__(self, model: Model, faults: ModelFaults, clock: Clock | None = None) -> None:
        self._model = model
        self._faults = faults
        self._clock = clock or SystemClock()
        self._random = random.Random(faults.seed)  # noqa: S311 - reproducible, not secret

    @property
    def info(self) -> ModelInfo:
        """The other model's entry."""
        return self._model.info

    async def complete(self, request: ModelRequest) -> Completion:
        """The other model's answer, late or not at all."""
        await self._trouble()
        return await self._model.complete(request)

    async def turn(
        self, request: ModelRequest, tools: Sequence[ToolSpec]
    ) -> AsyncIterator[TurnEvent]:
        """The other model's turn, late, broken off or with a tool of its own."""
        await self._trouble()
        if self._faults.rogue_tool and request.messages[-1].role == "user":
            yield ToolUse(self._faults.rogue_tool, {})
        count = 0
        async for event in self._model.turn(request, tools):
            if count == self._faults.cut_after:
                raise ModelError("injected: the provider broke off")
            count += 1
            yield event

    async def aclose(self) -> None:
        """Close the other model."""
        await self._model.aclose()

    async def _trouble(self) -> None:
        if self._faults.latency:
            await sleep(self._clock, self._faults.latency)
        if self._random.random() < self._faults.error_rate:
            raise ModelError("injected: the provider failed", status=503)
