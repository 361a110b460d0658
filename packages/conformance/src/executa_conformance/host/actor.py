"""The kit as a plugin: an `Actor` is one plugin of a check, each of its processes a `Life`."""

import asyncio
from collections.abc import Callable

import msgspec

from executa_conformance.evidence import Evidence
from executa_conformance.host.book import Book
from executa_conformance.host.life import Handler, Life
from executa_conformance.host.stage import Channel
from executa_conformance.model import NotMet
from executa_conformance.patience import Patience
from executa_conformance.sightings import Sighting


class Actor:
    """One plugin of a check."""

    def __init__(
        self,
        name: str,
        book: Book,
        evidence: Evidence,
        patience: Patience,
        *,
        handlers: dict[str, Handler],
        settings: dict[str, bool],
    ) -> None:
        self.name = name
        self.book = book
        self.evidence = evidence
        self.patience = patience
        self.handlers = handlers
        self.protocol = ""
        """The version that the host says it speaks with it."""
        self.lives: list[Life] = []
        self.children: list[Channel] = []
        self.sightings: list[Sighting] = []
        self._settings = settings
        self._tasks: set[asyncio.Task[None]] = set()
        self._moved = asyncio.Event()

    def met(self, channel: Channel) -> None:
        """A process has come on."""
        if channel.who.get("child"):
            self.children.append(channel)
            self._moved.set()
            return
        channel.send(b"M", msgspec.json.encode(self._settings))
        life = Life(self, channel)
        self.evidence.tell(f"process {channel.who['pid']} of {self.name} has started")
        self.lives.append(life)
        task = asyncio.get_running_loop().create_task(life.run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._moved.set()

    @property
    def life(self) -> Life:
        """The last process. Raises `NotMet` if none was started."""
        if not self.lives:
            msg = "the host has started no process of the plugin"
            raise NotMet(msg)
        return self.lives[-1]

    async def process(self, number: int, seconds: float) -> Life:
        """Process `number`, from 1. Raises `NotMet` if it does not come in time."""
        await self._until(
            lambda: len(self.lives) >= number, seconds, f"process {number} of the plugin started"
        )
        return self.lives[number - 1]

    async def child(self, seconds: float) -> Channel:
        """The child that was forked."""
        await self._until(lambda: bool(self.children), seconds, "child of the plugin started")
        return self.children[0]

    async def _until(self, done: Callable[[], bool], seconds: float, what: str) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not done():
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            msg = f"no {what} within {seconds:g} s"
            raise NotMet(msg) from None

    async def end(self) -> None:
        """Let go of every process and wait until all have been seen to."""
        for life in self.lives:
            life.close()
        for child in self.children:
            child.close()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
