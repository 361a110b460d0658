"""What one root invoke may use, and what it has used (R-35).

Shared by sampling, `agent/complete`, agent runs and every invoke nested under the
root. Pure: no clock, no I/O. Tokens are output tokens, as the caps count them.
"""

from msgspec import Struct

from executa_protocol.gate import Refusal
from executa_protocol.limits import NESTED_MAX_CALLS
from executa_protocol.nexus import Caps


class Ledger(Struct, gc=False):
    """What an invoke used, itself and everything nested under it.

    Calls count when they are let through, also if they fail. `completions` are those of
    `sampling_calls` that came as `agent/complete`. `frames` are run frames that were
    buffered for a plugin, `frame_bytes` their size. `progress` events were passed on,
    `progress_dropped` were not. `denied` counts refused reverse calls. `bytes_in` came from
    the plugin (results, params of reverse calls), `bytes_out` went to it.
    """

    sampling_calls: int = 0
    completions: int = 0
    agent_runs: int = 0
    tokens: int = 0
    storage_calls: int = 0
    nested_calls: int = 0
    frames: int = 0
    frame_bytes: int = 0
    progress: int = 0
    progress_dropped: int = 0
    denied: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


class Budget:
    """The purse of one root invoke. Over budget is terminal for it: later calls fail too.

    What is asked for is reserved before the call and settled after it, so that calls side
    by side cannot spend the same tokens.
    """

    __slots__ = ("_spent", "calls", "caps", "nested", "storage_calls", "tokens")

    def __init__(self, caps: Caps | None = None) -> None:
        self.caps = caps or Caps()
        self.calls = 0
        self.tokens = 0
        """Tokens spent and reserved."""
        self.storage_calls = 0
        self.nested = 0
        self._spent: dict[str, Refusal] = {}

    def reserve(self, max_tokens: int) -> Refusal | None:
        """Take one model call and `max_tokens` of the tokens, or say why not."""
        if (spent := self._spent.get("model")) is not None:
            return spent
        caps = self.caps
        if max_tokens > caps.tokens_per_call:
            # The call asks for too much; the invoke may still make smaller ones.
            text = f"maxTokens {max_tokens:,} is over the {caps.tokens_per_call:,} of one call"
            return Refusal("budget", "SAMPLING_MAX_TOKENS_EXCEEDED", text)
        if (refusal := self._take_call()) is not None:
            return refusal
        if self.tokens + max_tokens > caps.tokens:
            self.calls -= 1
            text = f"{max_tokens:,} tokens asked, {self.tokens_left:,} of {caps.tokens:,} left"
            return self._exhaust("model", "SAMPLING_MAX_TOKENS_EXCEEDED", text)
        self.tokens += max_tokens
        return None

    def reserve_run(self, wanted: int) -> int | Refusal:
        """Take one model call and up to `wanted` tokens for an agent run.

        A run is one call that takes what it gets (R-35): the tokens reserved, or why not.
        """
        if (spent := self._spent.get("model")) is not None:
            return spent
        if (refusal := self._take_call()) is not None:
            return refusal
        given = min(wanted, self.tokens_left)
        if given < 1:
            self.calls -= 1
            text = f"all {self.caps.tokens:,} tokens of this invoke are used"
            return self._exhaust("model", "SAMPLING_MAX_TOKENS_EXCEEDED", text)
        self.tokens += given
        return given

    @property
    def tokens_left(self) -> int:
        """Tokens that are neither spent nor reserved."""
        return max(0, self.caps.tokens - self.tokens)

    def settle(self, reserved: int, used: int) -> None:
        """Give back what a call reserved and did not use; all of it if it failed."""
        self.tokens += used - reserved

    def take_storage(self) -> Refusal | None:
        """Take one storage or files call."""
        if (spent := self._spent.get("storage")) is not None:
            return spent
        if self.storage_calls >= self.caps.storage_calls:
            text = f"all {self.caps.storage_calls} storage calls of this invoke are used"
            return self._exhaust("storage", "STORAGE_RATE_LIMITED", text)
        self.storage_calls += 1
        return None

    def take_nested(self) -> bool:
        """Take one nested invoke (R-36); False when all are used."""
        if self.nested >= NESTED_MAX_CALLS:
            return False
        self.nested += 1
        return True

    def _take_call(self) -> Refusal | None:
        if self.calls >= self.caps.sampling_calls:
            text = f"all {self.caps.sampling_calls} model calls of this invoke are used"
            return self._exhaust("model", "SAMPLING_MAX_CALLS_EXCEEDED", text)
        self.calls += 1
        return None

    def _exhaust(self, purse: str, row: str, text: str) -> Refusal:
        refusal = Refusal("budget", row, text)
        self._spent[purse] = refusal
        return refusal
