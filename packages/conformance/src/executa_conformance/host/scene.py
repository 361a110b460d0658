"""What a check of a host gets: plugins to play, and a host to tell what to do with them."""

import asyncio
import itertools
import re
from typing import Any

from msgspec import Struct, structs

from executa_conformance.evidence import Evidence
from executa_conformance.host.actor import Actor
from executa_conformance.host.adapter import Adapter, AdapterLost, Command, HostFailure, Told
from executa_conformance.host.book import Seen
from executa_conformance.host.life import Handler, Life, Request
from executa_conformance.host.nexus import ScriptedNexus
from executa_conformance.host.parts import described, handshake, manifest_of
from executa_conformance.host.stage import Stage
from executa_conformance.model import Check, NotApplicable, NotMet
from executa_conformance.patience import Patience
from executa_conformance.reading import expect, there
from executa_conformance.sightings import Sighting

_numbers = itertools.count(1)

PACE = {
    "initialize": 5.0,
    "describe": 5.0,
    "health": 3.0,
    "stop": 5.0,
    "cancel": 5.0,
    "restart": 1.0,
}
"""The protocol's own time-outs, which hold where an adapter names no others."""


class Outcome(Struct):
    """What an invoke came to, as the adapter told."""

    success: bool
    data: Any
    error: str


class Surroundings(Struct):
    """What all checks of one host share."""

    adapter: Adapter
    stage: Stage
    nexus: ScriptedNexus
    told: Told
    patience: Patience

    def pace(self, name: str) -> float:
        """Seconds that the host keeps for something."""
        return self.told.pace.get(name, PACE[name])

    def serves(self, word: str) -> bool:
        """Whether the adapter says that its host does this."""
        return word in self.told.serves


class HostScene:
    """One check's part of the host under test."""

    def __init__(
        self, check: Check, evidence: Evidence, around: Surroundings, sightings: list[Sighting]
    ) -> None:
        self.check = check
        self.evidence = evidence
        self.around = around
        self.sightings = sightings
        self.patience = around.patience
        self.actors: list[Actor] = []
        self._started: dict[str, set[str]] = {}

    # --- Plugins -----------------------------------------------------------------------------

    def cast(
        self,
        *,
        capabilities: tuple[str, ...] = (),
        manifest: Any = None,
        taken: dict[str, Any] | None = None,
        handlers: dict[str, Handler] | None = None,
        hold_end: bool = False,
        hold_term: bool = False,
    ) -> Actor:
        """A plugin that has not been started.

        It answers initialize (with what it has `taken`) and describe (with `manifest`, or one
        that declares the `capabilities`) by itself, unless `handlers` says otherwise. With
        `hold_end` it stays when its stdin ends, with `hold_term` when SIGTERM comes.
        """
        name = f"{_slug(self.check.name)}-{next(_numbers)}"
        whole = {
            "initialize": handshake() if taken is None else handshake(capabilities=taken),
            "describe": described(
                manifest_of(capabilities) if manifest is None else manifest,
                wrong=manifest is not None,
            ),
            **(handlers or {}),
        }
        actor = Actor(
            name,
            self.around.nexus.book(name),
            self.evidence,
            self.patience,
            handlers=whole,
            settings={"hold_end": hold_end, "hold_term": hold_term},
        )
        self.actors.append(actor)
        self.around.stage.expect(name, actor.met)
        return actor

    def starting(self, actor: Actor, **members: Any) -> Command:
        """Tell the host to start a plugin."""
        self._started.setdefault(actor.name, set()).add(str(members.get("user") or ""))
        return self.around.adapter.give(
            "start",
            plugin=actor.name,
            command=self.around.stage.command(actor.name),
            tool_id=actor.name,
            **members,
        )

    async def start(self, actor: Actor, **members: Any) -> Life:
        """Let the host start a plugin; its process. Raises `NotMet` if it does not come up."""
        try:
            told = await self.answered(self.starting(actor, **members), self.patience.start)
            actor.protocol = str(told.get("protocol", ""))
        except HostFailure as fault:
            msg = f"the host did not start the plugin ({fault})"
            raise NotMet(msg) from None
        return await actor.process(len(actor.lives) or 1, self.patience.answer)

    async def plugin(self, *, start: dict[str, Any] | None = None, **part: Any) -> Actor:
        """A plugin that runs. Takes what `cast` takes, and members of the command `start`."""
        actor = self.cast(**part)
        await self.start(actor, **(start or {}))
        return actor

    async def stop(self, actor: Actor, *, seconds: float | None = None, user: str = "") -> None:
        """Let the host stop a plugin, and wait until it says that it has."""
        bound = self.patience.answer if seconds is None else seconds
        command = self.around.adapter.give("stop", plugin=actor.name, user=user or None)
        try:
            await self.answered(command, bound)
        except HostFailure as fault:
            msg = f"the host did not stop the plugin ({fault})"
            raise NotMet(msg) from None
        self._started.get(actor.name, set()).discard(user)

    # --- Invokes -----------------------------------------------------------------------------

    def invoke(self, actor: Actor, arguments: Any = None, **members: Any) -> Command:
        """Tell the host to call the plugin's tool."""
        given: dict[str, Any] = {
            "tool": "echo",
            "arguments": {} if arguments is None else arguments,
            **members,
        }
        return self.around.adapter.give("invoke", plugin=actor.name, **given)

    async def begin(
        self, actor: Actor, arguments: Any = None, **members: Any
    ) -> tuple[Command, Request]:
        """Let the host call the tool; the command, and the invoke as the plugin got it."""
        command = self.invoke(actor, arguments, **members)
        waiting = asyncio.ensure_future(actor.life.next("invoke"))
        refused = asyncio.ensure_future(_failed(command))
        done, _ = await asyncio.wait({waiting, refused}, return_when=asyncio.FIRST_COMPLETED)
        if waiting in done:
            refused.cancel()
            return command, waiting.result()
        waiting.cancel()
        msg = f"the host did not invoke the tool ({refused.result()})"
        raise NotMet(msg)

    async def outcome(self, command: Command, seconds: float | None = None) -> Outcome:
        """What an invoke came to. Raises `NotMet` if it failed or does not end."""
        try:
            answer = await self.answered(command, seconds)
        except HostFailure as fault:
            msg = f"the invoke failed ({fault})"
            raise NotMet(msg) from None
        return Outcome(answer.get("success") is True, answer.get("data"), answer.get("error", ""))

    async def failure(self, command: Command, seconds: float | None = None) -> HostFailure:
        """Why an invoke failed. Raises `NotMet` if it did not fail, or does not end."""
        try:
            answer = await self.answered(command, seconds)
        except HostFailure as fault:
            return fault
        if answer.get("success") is False:
            return HostFailure("tool", str(answer.get("error", "")), None, None, None)
        msg = f"expected a failure, and the host answered {answer!r:.200}"
        raise NotMet(msg)

    async def answered(self, command: Command, seconds: float | None = None) -> Any:
        """The answer to a command, in bounded time."""
        bound = self.patience.answer if seconds is None else seconds
        try:
            async with asyncio.timeout(bound):
                return await command.answer()
        except TimeoutError:
            msg = f"the host did not answer the adapter's command within {bound:g} s"
            raise NotMet(msg) from None

    async def works(self, actor: Actor, data: Any = "well") -> None:
        """See to it that the plugin still serves: one more invoke, to its end."""
        command, request = await self.begin(actor)
        actor.life.result(request, data)
        outcome = await self.outcome(command)
        expect(outcome.data == data, f"the next invoke gave {outcome.data!r:.80}, not {data!r}")

    async def heard(self, actor: Actor, name: str, number: int = 1) -> Seen:
        """Request `number` of a name that nexus got for the plugin. Raises `NotMet` if it does
        not come."""
        found = await actor.book.wait(name, self.patience.answer, number)
        return there(found, f"nexus was not asked for {name} ({number})")

    def waits(self, seconds: float) -> None:
        """Have all further waits of this check longer by so many seconds."""
        self.patience = structs.replace(
            self.patience,
            start=self.patience.start + seconds,
            answer=self.patience.answer + seconds,
        )
        for actor in self.actors:
            actor.patience = self.patience

    async def pause(self, seconds: float | None = None) -> None:
        """Wait for what must not come."""
        await asyncio.sleep(self.patience.quiet if seconds is None else seconds)

    async def close(self) -> None:
        """Stop what is still there."""
        for actor in self.actors:
            for user in tuple(self._started.get(actor.name, ())):
                command = self.around.adapter.give("stop", plugin=actor.name, user=user or None)
                try:
                    async with asyncio.timeout(self.patience.grace * 3):
                        await command.answer()
                except (TimeoutError, HostFailure, AdapterLost):
                    self.evidence.tell("the host did not stop the plugin")
            self.around.stage.forget(actor.name)
            await actor.end()
            self.sightings += actor.sightings


def need(scene: HostScene, word: str, what: str) -> None:
    """Raise `NotApplicable` unless the adapter says that its host does this."""
    if not scene.around.serves(word):
        msg = f"{what}: the adapter does not list {word!r} among what the host serves"
        raise NotApplicable(msg)


async def _failed(command: Command) -> str:
    """Ends when the command is answered, with a word about it."""
    try:
        return f"it answered {await command.answer()!r:.120}"
    except HostFailure as fault:
        return str(fault)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
