"""How many bytes each user stores, keys and files together.

Owns the sums and the refusal. What is stored is known to the stores alone.
"""

from collections.abc import Callable

from executa_nexus_stub.refusals import refused


class Quota:
    """Bytes by user against the user's plan, which may change while they are stored."""

    def __init__(self, limit_of: Callable[[str], int]) -> None:
        self._limit_of = limit_of
        self._used: dict[str, int] = {}

    def used(self, user_id: str) -> int:
        """Bytes that the user stores."""
        return self._used.get(user_id, 0)

    def charge(
        self, user_id: str, amount: int, *, purge: Callable[[str], None] | None = None
    ) -> None:
        """Add bytes, after `purge` took away what has expired if they would not fit.

        Raises `NexusError` (-32024), and adds nothing.
        """
        limit = self._limit_of(user_id)
        if amount > 0 and self.used(user_id) + amount > limit and purge is not None:
            purge(user_id)
        if amount > 0 and self.used(user_id) + amount > limit:
            raise refused(
                "STORAGE_QUOTA_EXCEEDED", f"{amount:,} bytes more would pass the quota of {limit:,}"
            )
        self._used[user_id] = self.used(user_id) + amount

    def restore(self, user_id: str, amount: int) -> None:
        """Count bytes that were stored before, whatever the plan says now."""
        self._used[user_id] = self.used(user_id) + amount

    def release(self, user_id: str, amount: int) -> None:
        """Give bytes back."""
        left = self.used(user_id) - amount
        if left > 0:
            self._used[user_id] = left
        else:
            self._used.pop(user_id, None)
