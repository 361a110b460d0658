"""Which invokes are open: who opened them, with what declarations, and what they used.

Owns the life of an invoke between ``POST /executa/invokes`` and its end (R-39,
*assumed*). One that was neither renewed nor closed is forgotten once its tokens have
expired. Tokens and grants are `core`'s.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from executa_nexus_stub.clock import Clock
from executa_nexus_stub.refusals import refused
from executa_nexus_stub.tokens import Binding
from executa_protocol.limits import INVOKE_ID_DIGITS
from executa_protocol.nexus import InvokeOpening

_ID: Final = re.compile(rf"[0-9a-fA-F]{{{INVOKE_ID_DIGITS}}}")
_NAMES: Final = ("user_id", "executa_tool_id", "plugin", "tool")


class OpenInvoke(Struct):
    """One invoke that is going on. `touched` is when it was opened or last renewed."""

    opening: InvokeOpening
    binding: Binding
    touched: float
    sampling_calls: int = 0
    storage_calls: int = 0
    tokens: int = 0


class Invokes:
    """All open invokes, the one longest untouched first."""

    def __init__(self, clock: Clock, life: float, on_end: Callable[[str], None]) -> None:
        self._clock = clock
        self._life = life
        self._on_end = on_end
        self._open: OrderedDict[str, OpenInvoke] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def open(self, opening: InvokeOpening) -> OpenInvoke:
        """Begin an invoke; the same opening again is harmless. Raises `NexusError`."""
        if not _ID.fullmatch(opening.invoke_id):
            reason = f"invoke_id: expected {INVOKE_ID_DIGITS} hexadecimal digits"
            raise refused("INVALID_PARAMS", reason)
        for name in _NAMES:
            if not getattr(opening, name):
                raise refused("INVALID_PARAMS", f"{name}: expected some text")
        self._forget()
        known = self._open.get(opening.invoke_id)
        if known is not None:
            if known.opening != opening:
                reason = "invoke_id: another invoke of this id is open"
                raise refused("INVALID_PARAMS", reason, status=409)
            return self.touch(known)
        binding = Binding(
            opening.user_id, opening.executa_tool_id, opening.invoke_id, opening.plugin
        )
        invoke = OpenInvoke(opening, binding, self._clock.now())
        self._open[opening.invoke_id] = invoke
        return invoke

    def get(self, invoke_id: str) -> OpenInvoke:
        """An open invoke. Raises `NexusError` (410) for any other id."""
        invoke = self._open.get(invoke_id)
        if invoke is None:
            raise refused("UNKNOWN_INVOKE_CONTEXT", "this invoke is not open")
        return invoke

    def touch(self, invoke: OpenInvoke) -> OpenInvoke:
        """Keep an invoke for another token's life."""
        invoke.touched = self._clock.now()
        self._open.move_to_end(invoke.opening.invoke_id)
        return invoke

    def close(self, invoke_id: str) -> bool:
        """End an invoke. False if it was not open."""
        if self._open.pop(invoke_id, None) is None:
            return False
        self._on_end(invoke_id)
        return True

    def _forget(self) -> None:
        """End what nobody closed, so that a host that died leaves nothing for good."""
        limit = self._clock.now() - self._life
        while self._open:
            invoke_id, invoke = next(iter(self._open.items()))
            if invoke.touched >= limit:
                break
            self.close(invoke_id)
