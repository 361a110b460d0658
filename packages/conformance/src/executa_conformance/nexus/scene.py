"""What a check of a nexus gets: invokes to open, and requests under their tokens."""

import itertools
import secrets
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import msgspec
from msgspec import Struct

from executa_conformance.evidence import Evidence
from executa_conformance.http.client import Answer, Client, Stream
from executa_conformance.model import Check, NotMet
from executa_conformance.patience import Patience
from executa_conformance.reading import expect, members
from executa_conformance.sightings import SCHEMA, Sighting
from executa_protocol.errors import DecodeFailure
from executa_protocol.normaliser import FrameNormaliser
from executa_protocol.readings import Finding, Reader
from executa_protocol.sse import SseEvent

SAMPLE: Final[dict[str, Any]] = {
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "Say something about herons."}}
    ],
    "maxTokens": 64,
}
"""A completion that any model can make."""

EVERYTHING: Final = ("llm.sample", "llm.agent.auto", "aps.kv", "aps.files")

_numbers = itertools.count(1)


class Opened(Struct):
    """An open invoke, as nexus granted it."""

    invoke_id: str
    asked: dict[str, Any]
    grant: dict[str, Any]

    def token(self, kind: str) -> str:
        """The value of a token. Raises `NotMet` if it was not given."""
        value = members(self.grant.get(f"{kind}_token")).get("value")
        if not isinstance(value, str) or not value:
            msg = f"the grant has no {kind}_token: {sorted(self.grant)}"
            raise NotMet(msg)
        return value


class RunSeen(Struct):
    """What a run streamed: its frames, and how its events came."""

    status: int
    type: str
    frames: list[dict[str, Any]]
    events: list[SseEvent]
    sightings: list[Sighting]


class NexusScene:
    """One check's part of the nexus under test. `key` is what a host shows there."""

    def __init__(
        self, check: Check, evidence: Evidence, client: Client, key: str, patience: Patience
    ) -> None:
        self.check = check
        self.evidence = evidence
        self.client = client
        self.key = key
        self.patience = patience
        self._open: list[str] = []
        self.user = f"kit-{secrets.token_hex(6)}"
        """A user of the check's own, so that no check sees what another one keeps."""

    async def open(
        self, capabilities: tuple[str, ...] = EVERYTHING, *, user: str = "", **members_: Any
    ) -> Opened:
        """Open an invoke. Raises `NotMet` if nexus refuses it."""
        asked = self.opening(capabilities, user=user, **members_)
        answer = await self.client.ask("POST", "/executa/invokes", asked, bearer=self.key)
        expect(answer.status == 200, f"opening an invoke was answered with {answer}")
        self._open.append(asked["invoke_id"])
        return Opened(asked["invoke_id"], asked, answer.members)

    def opening(
        self, capabilities: tuple[str, ...] = EVERYTHING, *, user: str = "", **members_: Any
    ) -> dict[str, Any]:
        """The body that opens an invoke."""
        return {
            "user_id": user or self.user,
            "executa_tool_id": "tool-kit",
            "plugin": "kit",
            "tool": "main",
            "invoke_id": secrets.token_hex(16),
            "capabilities": list(capabilities),
            "credentials": [],
            **members_,
        }

    async def sample(self, bearer: str, params: Any = None) -> Answer:
        """Ask for a completion."""
        body = SAMPLE if params is None else params
        return await self.client.ask("POST", "/copilot/sampling", body, bearer=bearer)

    async def stored(self, verb: str, bearer: str, params: Any) -> Answer:
        """A call to the key-value store, or to files (``files/list``)."""
        path = f"/storage/{verb if '/' in verb else f'kv/{verb}'}"
        return await self.client.ask("POST", path, params, bearer=bearer)

    async def create(self, opened: Opened, **params: Any) -> dict[str, Any]:
        """An agent session; what nexus told of it. Raises `NotMet` if it is refused."""
        answer = await self.creating(opened, {"kind": "agent", "agent_submode": "auto", **params})
        expect(answer.status == 200, f"creating an agent session was answered with {answer}")
        return answer.members

    async def creating(self, opened: Opened, params: Any) -> Answer:
        """Ask for an agent session."""
        path = "/copilot/app/sessions/from_sampling"
        return await self.client.ask("POST", path, params, bearer=opened.token("sampling"))

    async def run(self, token: str, **body: Any) -> RunSeen:
        """A run of an agent session, to its end."""
        async with self.running(token, **body) as stream:
            if stream.status != 200:
                await stream.read()
                return RunSeen(stream.status, stream.type, [], [], [])
            return judged(stream.status, stream.type, await stream.all())

    def running(self, token: str, **body: Any) -> AbstractAsyncContextManager[Stream]:
        """A run of an agent session, as a stream."""
        asked = {"run_id": f"kit-run-{next(_numbers)}", "content": "Say hello.", **body}
        return self.client.stream("/copilot/app/agent", method="POST", body=asked, bearer=token)

    async def close(self) -> None:
        """Close what the check has opened."""
        for invoke_id in self._open:
            try:
                await self.client.ask("DELETE", f"/executa/invokes/{invoke_id}", bearer=self.key)
            except NotMet:
                self.evidence.tell("an invoke could not be closed")


def judged(status: int, kind: str, events: list[SseEvent]) -> RunSeen:
    """The frames of a stream as tolerant hosts read them, and what strict ones would refuse."""
    sightings: list[Sighting] = []

    def note(finding: Finding) -> None:
        sightings.append(Sighting(finding.requirement, finding.message, tolerated=True))

    normaliser = FrameNormaliser(Reader(report=note))
    raw: list[bytes] = []
    for event in events:
        try:
            raw += [frame.raw for frame in normaliser.feed(event.data, event.type)]
        except DecodeFailure as fault:
            sightings.append(Sighting(SCHEMA, str(fault)))
    raw += [frame.raw for frame in normaliser.close()]
    return RunSeen(
        status, kind, [members(msgspec.json.decode(one)) for one in raw], events, sightings
    )
