"""Serves `sampling/createMessage` and `agent/complete`: one completion within the budget."""

import asyncio
from typing import Final

from msgspec import UNSET

from executa_host.reverse.call import Failed, ReverseCall, insist
from executa_protocol import codec
from executa_protocol.codes import wire_error
from executa_protocol.limits import SAMPLING_TIMEOUT
from executa_protocol.methods.agent import CompleteParams
from executa_protocol.methods.sampling import SamplingParams, SamplingResult
from executa_protocol.nexus import Nexus, Token

CLIENT_TIMEOUT_MIN: Final = 30.0
CLIENT_TIMEOUT_MAX: Final = 300.0
"""Where a client's own `_clientTimeoutS` is clamped to, in seconds, as the field's host does."""


class Sampling:
    """Completions by `nexus`."""

    def __init__(self, nexus: Nexus) -> None:
        self._nexus = nexus

    async def sample(self, call: ReverseCall) -> bytes:
        """`sampling/createMessage`."""
        params: SamplingParams = call.params
        timeout = SAMPLING_TIMEOUT
        if params.client_timeout_s is not UNSET:
            timeout = min(max(params.client_timeout_s, CLIENT_TIMEOUT_MIN), CLIENT_TIMEOUT_MAX)
        return codec.encode(await self._complete(call, params, timeout))

    async def complete(self, call: ReverseCall) -> bytes:
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
        result = await self._complete(call, params, SAMPLING_TIMEOUT)
        call.invoke.ledger.completions += 1
        return codec.encode(result)

    async def _complete(
        self, call: ReverseCall, params: SamplingParams, timeout: float
    ) -> SamplingResult:
        invoke = call.invoke
        insist(invoke.budget.reserve(params.max_tokens))
        used = 0
        try:
            async with asyncio.timeout(timeout):
                result = await self._nexus.sample(_token(invoke.grant.sampling_token), params)
            used = tokens_of(result)
        except TimeoutError:
            row = "SAMPLING_TIMEOUT" if call.method.chapter == "sampling" else "AGENT_NEXUS_ERROR"
            raise Failed(wire_error(row, f"no answer from nexus within {timeout:g} s")) from None
        finally:
            # Also when it failed or was cancelled: what was not used is given back.
            invoke.budget.settle(params.max_tokens, used)
        call.tokens = used
        invoke.ledger.sampling_calls += 1
        invoke.ledger.tokens += used
        return result


def tokens_of(result: SamplingResult) -> int:
    """The output tokens that a completion used."""
    return 0 if result.usage is UNSET else result.usage.output_tokens


def _token(token: Token | None) -> str:
    """The token's value; the gate has seen that it is there."""
    return "" if token is None else token.value
