"""One process of a scripted plugin: what the host says to it, and what the kit says as it.

Every line that crosses is kept as evidence and held against the protocol's schemas, the kit's own
included, but for those that are wrong on purpose.
"""

import asyncio
import struct
import time
from collections.abc import Callable
from typing import Any, Protocol, cast

import msgspec
from msgspec import Struct

from executa_conformance.evidence import Evidence
from executa_conformance.host.stage import Channel
from executa_conformance.lookout import Lookout
from executa_conformance.model import NotMet
from executa_conformance.patience import Patience
from executa_conformance.reading import members
from executa_conformance.sightings import Sighting

Frame = dict[str, Any]


class Request(Struct):
    """A request or a notification of the host's. `id` is None for a notification."""

    id: Any
    method: str
    params: Frame
    raw: bytes = b""

    @property
    def context(self) -> Frame:
        """Of an invoke: what it was given."""
        return self.params.get("context", {})

    @property
    def invoke_id(self) -> str:
        """Of an invoke: its id."""
        return str(self.context.get("invoke_id", ""))


Handler = Callable[["Life", Request], None]
"""Answers a request of the host's, or does not."""


class Owner(Protocol):
    """The plugin that a process belongs to, as far as the process cares."""

    evidence: Evidence
    patience: Patience
    handlers: dict[str, Handler]
    sightings: list[Sighting]


class Life:
    """One process of a plugin."""

    def __init__(self, actor: Owner, channel: Channel) -> None:
        self.who = channel.who
        self.requests: list[Request] = []
        """Every request and notification, in order."""
        self.answers: list[Frame] = []
        """Every response to a reverse call, in order."""
        self.signals: list[tuple[int, float]] = []
        self.ended_at: float | None = None
        """When stdin ended, by the monotonic clock."""
        self.gone = asyncio.Event()
        self.gone_at = 0.0
        self._actor = actor
        self._channel = channel
        self._lookout = Lookout()
        self._inbox: list[Request] = []
        self._replies: list[Frame] = []
        self._moved = asyncio.Event()
        self.rest = b""
        """What came after the last line end."""
        self._number = 0

    # --- What the kit does -----------------------------------------------------------------

    def raw(self, data: bytes, note: str = "") -> None:
        """Write bytes to stdout, wrong on purpose or not."""
        self._actor.evidence.add(">", data, note)
        self._channel.send(b"O", data)

    def say(self, frame: Frame, *, wrong: bool = False) -> None:
        """Write a frame. One that is `wrong` on purpose is not held against the schemas."""
        line = msgspec.json.encode(frame)
        if wrong:
            if "method" in frame and "id" in frame:
                self._lookout.deliberate(frame["id"], str(frame["method"]))
        else:
            self._lookout.sending(line)
        self.raw(line + b"\n")

    def expect_answer(self, identity: Any, method: str = "") -> None:
        """A request that was written by `raw` may be answered under this id."""
        self._lookout.deliberate(identity, method)

    def result(self, request: Request, data: Any = None, **members: Any) -> None:
        """Answer an invoke as a success, or as `members` say."""
        result = {"success": True, "data": data, **members}
        self.say({"jsonrpc": "2.0", "id": request.id, "result": result})

    def fail(self, request: Request, code: int, message: str, data: Any = None) -> None:
        """Answer with an error."""
        told = {"code": code, "message": message}
        if data is not None:
            told["data"] = data
        self.say({"jsonrpc": "2.0", "id": request.id, "error": told})

    def call(
        self,
        method: str,
        params: Any = None,
        *,
        under: Request | str | None = None,
        identity: Any = None,
        wrong: bool = False,
    ) -> Any:
        """Make a reverse call under an invoke; gives its id."""
        if identity is None:
            self._number += 1
            identity = f"r{self._number}"
        asked: Frame = dict(params or {})
        if under is not None:
            invoke_id = under if isinstance(under, str) else under.invoke_id
            asked["context"] = {**asked.get("context", {}), "invoke_id": invoke_id}
        frame = {"jsonrpc": "2.0", "id": identity, "method": method, "params": asked}
        self.say(frame, wrong=wrong)
        return identity

    async def ask(
        self,
        method: str,
        params: Any = None,
        *,
        under: Request | str | None = None,
        identity: Any = None,
        wrong: bool = False,
    ) -> Frame:
        """Make a reverse call and wait for its answer."""
        made = self.call(method, params, under=under, identity=identity, wrong=wrong)
        return await self.reply(made)

    def stderr(self, data: bytes) -> None:
        """Write to stderr."""
        self._actor.evidence.add("2", data[:200])
        self._channel.send(b"R", data)

    def exit(self, code: int = 0) -> None:
        """End the process."""
        self._actor.evidence.tell(f"the plugin exits with code {code}")
        self._channel.send(b"X", str(code).encode())

    def fall(self) -> None:
        """End the process by SIGKILL."""
        self._actor.evidence.tell("the plugin is killed")
        self._channel.send(b"K")

    def fork(self, *, leave: bool = False) -> None:
        """Fork a child that holds the pipes; with `leave` it leaves the process group."""
        self._channel.send(b"D" if leave else b"F")

    def handle(self, method: str, handler: Handler) -> None:
        """From now on answer a method by itself; also what has come and was not taken."""
        self._actor.handlers[method] = handler
        for request in [one for one in self._inbox if one.method == method]:
            self._inbox.remove(request)
            handler(self, request)

    def close(self) -> None:
        """Let go of the process, which ends it."""
        self._channel.close()

    # --- What the kit waits for ----------------------------------------------------------------

    async def next(self, method: str = "invoke") -> Request:
        """The next request or notification of a method. Raises `NotMet` if it does not come."""
        return await self._take(
            self._inbox, lambda request: request.method == method, f"{method} came"
        )

    async def reply(self, identity: Any) -> Frame:
        """The answer to a reverse call. Raises `NotMet` if it does not come."""

        def fits(frame: Frame) -> bool:
            return _same(frame.get("id"), identity)

        return await self._take(
            self._replies, fits, f"answer to the reverse call {identity!r} came"
        )

    async def until(self, done: Callable[[], bool], what: str) -> None:
        """Wait for something that the host's lines bring about."""
        await self._wait(lambda: True if done() else None, what)

    async def _take(self, box: list[Any], fits: Callable[[Any], bool], what: str) -> Any:
        def find() -> Any:
            for index, one in enumerate(box):
                if fits(one):
                    return box.pop(index)
            return None

        return await self._wait(find, what)

    async def _wait(self, find: Callable[[], Any], what: str) -> Any:
        seconds = self._actor.patience.answer
        try:
            async with asyncio.timeout(seconds):
                while (found := find()) is None:
                    if self.gone.is_set():
                        msg = f"no {what}: the host has ended the plugin's process"
                        raise NotMet(msg)
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            msg = f"no {what} within {seconds:g} s"
            raise NotMet(msg) from None
        return found

    # --- What comes ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Take what the process reports until it has gone."""
        while (message := await self._channel.receive()) is not None:
            kind, body = message
            if kind == b"I":
                self._feed(body)
            elif kind == b"E":
                self.ended_at = time.monotonic()
                self._actor.evidence.tell("stdin of the plugin has ended")
            elif kind == b"S":
                number = struct.unpack("!I", body)[0]
                self.signals.append((number, time.monotonic()))
                self._actor.evidence.tell(f"the plugin got signal {number}")
            self._moved.set()
        if self.rest and self.ended_at is not None:
            before = len(self._lookout.sightings)
            self._lookout.ended_within(self.rest)
            self._actor.sightings += self._lookout.sightings[before:]
        self.gone_at = time.monotonic()
        self.gone.set()
        self._moved.set()
        self._channel.close()

    def _feed(self, data: bytes) -> None:
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self._line(line)

    def _line(self, line: bytes) -> None:
        _, sightings = self._lookout.received(line)
        note = "; ".join(f"{each.requirement}: {each.message}" for each in sightings)
        self._actor.evidence.add("<", line, note)
        self._actor.sightings += sightings
        try:
            frame = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeError):
            return
        if not isinstance(frame, dict):
            return
        self._frame(cast("Frame", frame), line)

    def _frame(self, frame: Frame, line: bytes) -> None:
        if "method" not in frame:
            self.answers.append(frame)
            self._replies.append(frame)
            return
        params = members(frame.get("params"))
        request = Request(frame.get("id"), str(frame["method"]), params, line)
        self.requests.append(request)
        handler = self._actor.handlers.get(request.method)
        if handler is not None:
            handler(self, request)
        else:
            self._inbox.append(request)


def _same(one: Any, other: Any) -> bool:
    """Whether two ids are the same, their JSON types included."""
    return type(one) is type(other) and one == other
