"""The host's cache of agent sessions (seed agent-sessions, Auth chain; R-30).

An agent session is nexus's; what is kept here is its token, which no plugin ever sees,
and who owns it. Bounded, least recently used first out; an entry that a run uses stays.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator

from msgspec import structs

from executa_protocol.codes import rpc_error, wire_error
from executa_protocol.errors import RpcError
from executa_protocol.limits import AGENT_CACHE_SIZE
from executa_protocol.nexus import MintedAgentSession

Owner = tuple[str, str]
"""``(user_id, plugin name)``."""


class AgentSessionEntry:
    """One agent session: what nexus minted, who owns it, and its runs.

    `runs` are the live runs by id, each with the task that serves it; `turn` lets one
    run after the other (two runs of one thread would tear it apart).
    """

    __slots__ = (
        "created_at",
        "last_active_at",
        "lifetime",
        "minted",
        "owner",
        "runs",
        "turn",
        "waiting",
    )

    def __init__(self, minted: MintedAgentSession, owner: Owner, now: float) -> None:
        self.minted = minted
        self.owner = owner
        self.runs: dict[str, asyncio.Event] = {}
        self.turn = asyncio.Lock()
        self.created_at = now
        self.lifetime = max(0.0, minted.expires_at - now)
        self.last_active_at = now

    @property
    def in_use(self) -> bool:
        return bool(self.runs)

    def covers(self, tool: str) -> bool:
        """Whether ``PLUGIN.TOOL`` is granted to this agent session (R-34)."""
        granted = self.minted.granted_tools
        if self.minted.kind == "fixed":
            return tool == self.minted.fixed_client_id
        return "*" in granted or tool in granted


class AgentSessions:
    """The cache. `clock` gives epoch seconds."""

    def __init__(
        self, size: int = AGENT_CACHE_SIZE, clock: Callable[[], float] = time.time
    ) -> None:
        self._size = size
        self._clock = clock
        self._entries: OrderedDict[str, AgentSessionEntry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, minted: MintedAgentSession, owner: Owner) -> AgentSessionEntry:
        """Keep what nexus minted; the least recently used idle entry makes room."""
        entry = AgentSessionEntry(minted, owner, self._clock())
        self._entries[minted.app_session_uuid] = entry
        if len(self._entries) > self._size:
            self._make_room()
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
        entry.last_active_at = self._clock()
        return entry

    def knows(self, app_session_uuid: str) -> bool:
        """Whether it is here, whosever it is."""
        return app_session_uuid in self._entries

    def discard(self, app_session_uuid: str) -> None:
        """Forget an agent session."""
        self._entries.pop(app_session_uuid, None)

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
        now = self._clock()
        minted = entry.minted
        entry.minted = structs.replace(
            minted, expires_at=max(minted.expires_at, now + entry.lifetime)
        )
        entry.last_active_at = now

    def expired(self, entry: AgentSessionEntry) -> bool:
        return entry.minted.expires_at <= self._clock()

    def _make_room(self) -> None:
        for uuid, entry in self._entries.items():
            if not entry.in_use:
                del self._entries[uuid]
                return


def _refused(row: str, message: str) -> RpcError:
    error = wire_error(row, message)
    return rpc_error(error.code, error.message, error.data)
