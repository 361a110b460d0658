"""What each user, plugin and invoke consumed.

Owns the counting. Sums by (user, plugin) are kept for good, single invokes only the
latest ten thousand. Which calls are allowed is other modules' business.
"""

from collections import OrderedDict
from typing import Any, Final

import msgspec
from msgspec import Struct

_INVOKES: Final = 10_000
_DAY: Final = 86_400


class Consumed(Struct):
    """Counts of successful calls, and tokens."""

    sampling_calls: int = 0
    agent_sessions: int = 0
    agent_runs: int = 0
    tool_calls: int = 0
    frames: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    storage_calls: int = 0


class Ledger:
    """The account book. `Ledger.entry` is charged in place."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], Consumed] = {}
        self._invokes: OrderedDict[str, Consumed] = OrderedDict()
        self._days: dict[str, tuple[int, int]] = {}

    def charge(self, user_id: str, plugin: str, invoke_id: str, **amounts: int) -> None:
        """Add `amounts` (members of `Consumed`) to the plugin's sum and the invoke's."""
        for entry in (self._sum(user_id, plugin), self.invoke(invoke_id)):
            for name, amount in amounts.items():
                setattr(entry, name, getattr(entry, name) + amount)

    def spend(self, user_id: str, tokens: int, now: float) -> None:
        """Count tokens against the user's day (UTC)."""
        self._days[user_id] = (int(now) // _DAY, self.spent_today(user_id, now) + tokens)

    def spent_today(self, user_id: str, now: float) -> int:
        """Tokens that the user has used since midnight UTC."""
        day, tokens = self._days.get(user_id, (0, 0))
        return tokens if day == int(now) // _DAY else 0

    def invoke(self, invoke_id: str) -> Consumed:
        """What one invoke consumed, as far as it is still kept."""
        entry = self._invokes.get(invoke_id)
        if entry is None:
            entry = self._invokes[invoke_id] = Consumed()
            if len(self._invokes) > _INVOKES:
                self._invokes.popitem(last=False)
        return entry

    def total(self, user_id: str | None = None, plugin: str | None = None) -> Consumed:
        """The sum over all users and plugins, or over those that are named."""
        result = Consumed()
        for (user, name), entry in self._sums.items():
            if user_id in (None, user) and plugin in (None, name):
                for member in Consumed.__struct_fields__:
                    setattr(result, member, getattr(result, member) + getattr(entry, member))
        return result

    def report(self) -> dict[str, Any]:
        """Everything, as plain JSON values."""
        return {
            "total": msgspec.to_builtins(self.total()),
            "plugins": [
                {"user_id": user, "plugin": plugin, **msgspec.to_builtins(entry)}
                for (user, plugin), entry in sorted(self._sums.items())
            ],
            "invokes": {name: msgspec.to_builtins(entry) for name, entry in self._invokes.items()},
        }

    def _sum(self, user_id: str, plugin: str) -> Consumed:
        return self._sums.setdefault((user_id, plugin), Consumed())
