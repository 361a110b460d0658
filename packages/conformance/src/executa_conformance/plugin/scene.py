"""What a check of a plugin gets: the facts, a way to start the plugin, and what crossed so far."""

import secrets
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from executa_conformance.evidence import Evidence
from executa_conformance.model import NotApplicable
from executa_conformance.patience import Patience
from executa_conformance.plugin.facts import Facts
from executa_conformance.plugin.nexus import Blobs, Memory
from executa_conformance.plugin.services import ReverseCall, Services
from executa_conformance.plugin.session import Session
from executa_conformance.plugin.tokens import Tokens
from executa_conformance.plugin.tools import Case
from executa_conformance.sightings import Sighting
from executa_protocol.codec import encode


class World:
    """What the checks of one run share: the command, and every session that there was."""

    def __init__(self, command: Sequence[str], patience: Patience, folder: str) -> None:
        self.command = tuple(command)
        self.patience = patience
        self.folder = Path(folder).resolve()
        self.blobs = Blobs()
        self.sessions: list[Session] = []
        self.facts = Facts()

    def judged(self) -> str:
        """How much there was to judge, in words."""
        lines = sum(session.received for session in self.sessions)
        return f"{lines:,} lines of {len(self.sessions)} processes were judged"

    def calls(self) -> list[ReverseCall]:
        """Every reverse call of any session."""
        return [call for session in self.sessions for call in session.services.calls]

    def sightings(self) -> list[Sighting]:
        """Every rule that a line of any session broke."""
        return [each for session in self.sessions for each in session.lookout.sightings]


class Scene:
    """One check's view of the world."""

    def __init__(self, world: World, evidence: Evidence) -> None:
        self.world = world
        self.evidence = evidence
        self.patience = world.patience
        self._open: list[Session] = []

    @property
    def facts(self) -> Facts:
        """What the tour found."""
        return self.world.facts

    @asynccontextmanager
    async def start(self, env: Mapping[str, str] | None = None) -> AsyncGenerator[Session]:
        """A new process that nobody has spoken to, for an ``async with`` block."""
        folder = Path(tempfile.mkdtemp(prefix="plugin-", dir=self.world.folder))
        services = Services(Memory(self.world.blobs))
        session = Session(self.evidence, self.patience, services, folder, Tokens())
        session.silent = self.facts.silent
        self.world.sessions.append(session)
        self._open.append(session)
        try:
            await session.begin(self.world.command, env or {})
            yield session
        finally:
            self._open.remove(session)
            await session.close()

    @asynccontextmanager
    async def ready(self, offer: object = None) -> AsyncGenerator[Session]:
        """A process after its handshake."""
        async with self.start() as session:
            await session.handshake(offer)
            yield session

    async def echo(self, session: Session) -> tuple[Case, str]:
        """A call that gives a text argument back, and that argument's name.

        Raises `NotApplicable` if no tool does.
        """
        for case, name in self.facts.echoes():
            text = f"echo {secrets.token_hex(4)}"  # new, so that no store can hold it
            answer = await session.invoke(case.tool, {**case.arguments, name: text})
            if not answer.failed and text.encode() in encode(answer.members.get("data")):
                return case, name
        raise NotApplicable("no tool gives a text argument back")

    async def close(self) -> None:
        """End whatever is left."""
        for session in list(self._open):
            await session.close()
