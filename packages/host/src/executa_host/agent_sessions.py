"""The host's cache of agent sessions (seed agent-sessions, Auth chain; R-30).

An agent session is nexus's; what is kept here is its token, which no plugin ever sees,
and who owns it. Bounded, least recently used first out; an entry that a run uses stays.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Protocol

from executa_host.invocation import ActiveInvoke
from executa_protocol.codes import rpc_error, wire_error
from executa_protocol.errors import RpcError
from executa_protocol.limits import AGENT_CACHE_SIZE, TOKEN_RENEW_BEFORE
from executa_protocol.nexus import MintedAgentSession

Owner = tuple[str, str]
"""``(user_id, plugin name)``."""


class LiveRun(Protocol):
    """A run that waits for its turn or streams."""

    @property
    def invoke(self) -> ActiveInvoke:
        """The invoke that began it."""
        ...

    async def cancel(self) -> bool:
        """End it; False if it had ended by itself (R-32)."""
        ...


class AgentSessionEntry:
    """One agent session: what nexus minted, who owns it, and its live runs by id.

    `turn` lets one run after the other: two runs of one thread would tear it apart.
    `expires_at` is epoch seconds and slides with each run, as it does upstream; the token
    has an end of its own.
    """

    __slots__ = (
        "created_at",
        "expires_at",
        "last_active_at",
        "lifetime",
        "minted",
        "owner",
        "runs",
        "turn",
    )

    def __init__(self, minted: MintedAgentSession, owner: Owner, now: float) -> None:
        self.owner = owner
        self.runs: dict[str, LiveRun] = {}
        self.turn = asyncio.Lock()
        self.created_at = now
        self.last_active_at = now
        self.renew(minted, now)

    def renew(self, minted: MintedAgentSession, now: float) -> None:
        """Nexus has given it a new token and a new life."""
        self.minted = minted
        self.expires_at = minted.expires_at
        self.lifetime = max(0.0, minted.expires_at - now)

    @property
    def in_use(self) -> bool:
        """Whether a run is live, which keeps it in the cache."""
        return bool(self.runs)

    def covers(self, tool: str) -> bool:
        """Whether ``PLUGIN.TOOL`` is granted to this agent session (R-34)."""
        granted = self.minted.granted_tools
        if self.minted.kind == "fixed":
            return tool == self.minted.fixed_client_id
        return "*" in granted or tool in granted

    def token_expires_soon(self, now: float) -> bool:
        """Whether the token may expire before a call with it has come through."""
        return self.minted.expires_at - now <= TOKEN_RENEW_BEFORE

    def run_inside(self, invoke: ActiveInvoke) -> bool:
        """Whether an invoke that `invoke` is nested in runs this agent session (R-36)."""
        ancestors = invoke.lineage()[1:]
        return any(run.invoke in ancestors for run in self.runs.values())


class AgentSessions:
    """The cache. `clock` gives epoch seconds; `on_evicted` gets what had to make room."""

    def __init__(
        self,
        size: int = AGENT_CACHE_SIZE,
        clock: Callable[[], float] = time.time,
        on_evicted: Callable[[AgentSessionEntry], None] | None = None,
    ) -> None:
        self._size = size
        self.clock = clock
        self._on_evicted = on_evicted
        self._entries: OrderedDict[str, AgentSessionEntry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, minted: MintedAgentSession, owner: Owner) -> AgentSessionEntry:
        """Keep what nexus minted; the least recently used idle entry makes room."""
        if len(self._entries) >= self._size:
            self._make_room()
        entry = AgentSessionEntry(minted, owner, self.clock())
        self._entries[minted.app_session_uuid] = entry
        return entry

    def find(
        self, app_session_uuid: str, owner: Owner, *, even_expired: bool = False
    ) -> AgentSessionEntry:
        """The caller's own agent session. `even_expired` is for what ends it or its runs.

        Raises `AgentError`: -32044 when it is not here or has expired, -32045 when it is
        somebody else's, whose entry is left as it was (R-30).
        """
        entry = self._entries.get(app_session_uuid)
        if entry is None:
            raise _refused("AGENT_UNKNOWN_SESSION", "no such agent session here; create one")
        if entry.owner != owner:
            raise _refused("AGENT_INVALID_UUID", "this agent session is not yours")
        if self.expired(entry) and not even_expired:
            if not entry.in_use:
                del self._entries[app_session_uuid]
            raise _refused("AGENT_UNKNOWN_SESSION", "the agent session has expired; create one")
        self._entries.move_to_end(app_session_uuid)
        entry.last_active_at = self.clock()
        return entry

    def knows(self, app_session_uuid: str) -> bool:
        """Whether it is here, whosever it is."""
        return app_session_uuid in self._entries

    def discard(self, entry: AgentSessionEntry) -> None:
        """Forget an agent session."""
        uuid = entry.minted.app_session_uuid
        if self._entries.get(uuid) is entry:
            del self._entries[uuid]

    def of(self, owner: Owner) -> Iterator[AgentSessionEntry]:
        """The owner's agent sessions, the least recently used first."""
        return (entry for entry in list(self._entries.values()) if entry.owner == owner)

    def drop_owner(self, owner: Owner) -> list[AgentSessionEntry]:
        """Forget everything of an owner whose process has ended (R-30)."""
        gone = list(self.of(owner))
        for entry in gone:
            del self._entries[entry.minted.app_session_uuid]
        return gone

    def slide(self, entry: AgentSessionEntry) -> None:
        """A run prolongs the life of its agent session, as it does upstream."""
        now = self.clock()
        entry.expires_at = max(entry.expires_at, now + entry.lifetime)
        entry.last_active_at = now

    def expired(self, entry: AgentSessionEntry) -> bool:
        """Whether its time is over."""
        return entry.expires_at <= self.clock()

    def _make_room(self) -> None:
        # If all are in use there is no room to be made: they are as many as runs are live.
        for uuid, entry in self._entries.items():
            if not entry.in_use:
                del self._entries[uuid]
                if self._on_evicted is not None:
                    self._on_evicted(entry)
                return


def _refused(row: str, message: str) -> RpcError:
    error = wire_error(row, message)
    return rpc_error(error.code, error.message, error.data)
