"""Serves `sampling/createMessage` and `agent/complete`: one completion within the budget."""

from collections.abc import Awaitable
from typing import Final

from msgspec import UNSET

from executa_host.bounds import Bounds
from executa_host.reverse.agent import sampling_token
from executa_host.reverse.call import ReverseCall, insist
from executa_host.reverse.upstream import silent
from executa_protocol import codec
from executa_protocol.limits import SAMPLING_TIMEOUT
from executa_protocol.methods.agent import CompleteParams
from executa_protocol.methods.sampling import SamplingParams, SamplingResult
from executa_protocol.nexus import Nexus

CLIENT_TIMEOUT_MIN: Final = 30.0
CLIENT_TIMEOUT_MAX: Final = 300.0
"""Where a client's own `_clientTimeoutS` is clamped to, in seconds, as the field's host does."""


class Sampling:
    """Completions by `nexus`."""

    def __init__(self, nexus: Nexus, bounds: Bounds) -> None:
        self._nexus = nexus
        self._bounds = bounds

    def sample(self, call: ReverseCall) -> Awaitable[bytes]:
        """`sampling/createMessage`."""
        params: SamplingParams = call.params
        timeout = SAMPLING_TIMEOUT
        if params.client_timeout_s is not UNSET:
            timeout = min(max(params.client_timeout_s, CLIENT_TIMEOUT_MIN), CLIENT_TIMEOUT_MAX)
        # Between plugin and host alone: nexus gets neither.
        params.context = params.client_timeout_s = UNSET
        return self._complete(call, params, timeout)

    def complete(self, call: ReverseCall) -> Awaitable[bytes]:
        """`agent/complete`: sampling in other words, with the same answer (R-37)."""
        asked: CompleteParams = call.params
        params = SamplingParams(
            messages=asked.messages,
            max_tokens=asked.max_tokens,
            system_prompt=asked.system_prompt,
            temperature=asked.temperature,
            stop_sequences=asked.stop_sequences,
            model_preferences=asked.model_preferences,
            metadata=asked.metadata,
        )
        return self._complete(call, params, SAMPLING_TIMEOUT, completions=1)

    async def _complete(
        self,
        call: ReverseCall,
        params: SamplingParams,
        timeout: float,
        *,
        completions: int = 0,
    ) -> bytes:
        invoke = call.invoke
        budget = invoke.own_budget or invoke.budget  # a root's is its own
        insist(budget.reserve(params.max_tokens))
        for ledger in invoke.ledgers():
            ledger.sampling_calls += 1
            ledger.completions += completions
        used = 0
        try:
            sampling = self._nexus.sample(sampling_token(call), params)
            result = await self._bounds.run(sampling, timeout)
            used = tokens_of(result)
        except TimeoutError as fault:
            raise silent(fault, call.method.chapter, timeout) from None
        finally:
            # Also when it failed or was cancelled: what was not used is given back.
            budget.settle(params.max_tokens, used)
        call.tokens = used
        for ledger in invoke.ledgers():
            ledger.tokens += used
        return codec.encode(result)


def tokens_of(result: SamplingResult) -> int:
    """The output tokens that a completion used."""
    return 0 if result.usage is UNSET else result.usage.output_tokens
