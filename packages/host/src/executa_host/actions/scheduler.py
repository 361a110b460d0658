"""Who runs next: fair between tenants, within limits. Pure; knows ids, no actions.

Tenants take turns, and within a tenant its plugins do, so that neither a tenant with a
long queue nor a plugin that is busy keeps others waiting.
"""

from collections import Counter, deque

from msgspec import Struct

from executa_host.actions.settings import Slots


class Entry(Struct, frozen=True):
    """One action that waits or runs."""

    action_id: str
    tenant: str
    plugin: str


class FairQueue:
    """Entries in queues, and the slots that those taken hold until they are released."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._queues: dict[str, dict[str, deque[Entry]]] = {}
        self._turns: deque[str] = deque()
        self._waiting: set[str] = set()
        self._dropped: set[str] = set()
        self._total = 0
        self._by_tenant: Counter[str] = Counter()
        self._by_plugin: Counter[str] = Counter()

    @property
    def queued(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """How many hold a slot."""
        return self._total

    def __contains__(self, entry: Entry) -> bool:
        """Whether an entry waits."""
        return entry.action_id in self._waiting

    def push(self, entry: Entry) -> None:
        """Let an entry wait. One that waits already does so once."""
        if entry.action_id in self._waiting:
            return
        if entry.action_id in self._dropped:
            self._dropped.discard(entry.action_id)
            self._waiting.add(entry.action_id)
            return  # it is still in its queue
        self._waiting.add(entry.action_id)
        queues = self._queues.get(entry.tenant)
        if queues is None:
            queues = self._queues[entry.tenant] = {}
            self._turns.append(entry.tenant)
        queues.setdefault(entry.plugin, deque()).append(entry)

    def drop(self, action_id: str) -> None:
        """Let it wait no longer."""
        if action_id in self._waiting:
            self._waiting.discard(action_id)
            self._dropped.add(action_id)

    def take(self) -> Entry | None:
        """The next entry that may run, which now holds a slot; None if none may."""
        if self.running >= self._slots.in_all:
            return None
        for _ in range(len(self._turns)):
            tenant = self._turns.popleft()
            entry = self._of_tenant(tenant)
            if self._queues[tenant]:
                self._turns.append(tenant)
            else:
                del self._queues[tenant]
            if entry is not None:
                self._waiting.discard(entry.action_id)
                self._count(entry, 1)
                return entry
        return None

    def release(self, entry: Entry) -> None:
        """Give an entry's slot back."""
        self._count(entry, -1)

    def _count(self, entry: Entry, by: int) -> None:
        self._total += by
        for counter, name in ((self._by_tenant, entry.tenant), (self._by_plugin, entry.plugin)):
            counter[name] += by
            if not counter[name]:
                del counter[name]

    def _of_tenant(self, tenant: str) -> Entry | None:
        queues = self._queues[tenant]
        full = self._by_tenant[tenant] >= self._slots.per_tenant
        for plugin in list(queues):
            queue = queues[plugin]
            while queue and queue[0].action_id in self._dropped:
                self._dropped.discard(queue.popleft().action_id)
            if not queue:
                del queues[plugin]
                continue
            if full or self._by_plugin[plugin] >= self._slots.per_plugin:
                continue
            entry = queue.popleft()
            del queues[plugin]
            if queue:
                queues[plugin] = queue  # behind the tenant's other plugins
            return entry
        return None
