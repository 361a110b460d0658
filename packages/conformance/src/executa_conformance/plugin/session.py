"""One process of the plugin under test, as a host would talk to it.

Owns ids, invokes and the correlation of answers. Every line goes through the lookout. Reverse
calls are answered by `services`, in order, as they come.
"""

import asyncio
import itertools
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct

from executa_conformance.child import Child
from executa_conformance.evidence import SHOWN_BYTES, Evidence
from executa_conformance.lookout import Lookout
from executa_conformance.model import NotMet
from executa_conformance.patience import Patience
from executa_conformance.plugin.answer import Answer
from executa_conformance.plugin.response_file import load
from executa_conformance.plugin.services import HELD, Odd, ReverseCall, Services
from executa_conformance.plugin.tokens import MARK, Tokens
from executa_protocol import envelope
from executa_protocol.codec import decode_any, encode
from executa_protocol.codes import METHOD_NOT_FOUND, ErrorObject
from executa_protocol.envelope import Id, Malformed, Message
from executa_protocol.faults import as_object
from executa_protocol.framing import Oversized
from executa_protocol.handshake import host_offer

Object = dict[str, Any]
Key = tuple[type, Id]


class Invoke(Struct, frozen=True):
    """A call under way."""

    invoke_id: str
    answer: "asyncio.Future[Answer]"


class Session:
    """A running plugin. Made by `Scene.start`."""

    def __init__(
        self,
        evidence: Evidence,
        patience: Patience,
        services: Services,
        tokens: Tokens,
        folder: Path,
    ) -> None:
        self.evidence = evidence
        self.patience = patience
        self.services = services
        self.folder = folder
        """Its TMPDIR."""
        self.lookout = Lookout()
        self.stray: list[Message] = []
        """Answers that nobody waits for."""
        self.received = 0
        """How many lines have come."""
        self.news = asyncio.Event()
        """Set at each line, for whoever waits for one; clear it before you wait."""
        self.leaks: list[bytes] = []
        """The heads of answers in which a token or a credential stands."""
        self.silent = False
        """Whether it does not answer initialize, as the tour has found."""
        self.offered: Object = {}
        self._tokens = tokens
        self._child: Child | None = None
        self._waiting: dict[Key, asyncio.Future[Answer]] = {}
        self._ids = itertools.count()
        self._answering: asyncio.Queue[Message | Malformed] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def begin(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        """Start the process. Raises `NotMet`."""
        env = {"TMPDIR": str(self.folder), **env}
        self._child = await Child.spawn(command, self._line, self.evidence, env)
        self._task = asyncio.create_task(self._answer_calls())

    @property
    def child(self) -> Child:
        """The process."""
        if self._child is None:
            raise NotMet("the plugin has not been started")
        return self._child

    async def close(self) -> None:
        """End it, however it is."""
        if self._child is not None:
            await self._child.close(self.patience.grace)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # --- What comes ---------------------------------------------------------------------

    def _line(self, line: bytes | Oversized, whole: bool) -> None:
        self.received += 1
        self.news.set()
        if isinstance(line, Oversized):
            self.evidence.add("<", line.head, f"{line.size:,} bytes")
            self.lookout.too_long(line.size)
            return
        if not whole:
            self.lookout.ended_within(line)
        message, found = self.lookout.received(line)
        note = "; ".join(f"{each.requirement}: {each.message}" for each in found)
        self.evidence.add("<", line, note)
        if isinstance(message, Malformed) and message.role == "request":
            self._answering.put_nowait(message)
        if not isinstance(message, Message):
            return
        if message.method is not UNSET:
            if message.id is not UNSET:
                self._answering.put_nowait(message)
            return
        if line.find(MARK.encode()) >= 0:
            self.leaks.append(line[:SHOWN_BYTES])
        self._settle(message, len(line))

    def _settle(self, message: Message, size: int) -> None:
        identity = None if message.id is UNSET else message.id
        future = self._waiting.pop((type(identity), identity), None)
        if future is None and not isinstance(identity, bool):
            # the right value in another type; the lookout has noted it.
            key = next((key for key in self._waiting if str(key[1]) == str(identity)), None)
            future = None if key is None else self._waiting.pop(key)
        if future is None or future.done():
            self.stray.append(message)
            return
        if message.pointer is not UNSET:
            try:
                future.set_result(load(message, self.folder, self.evidence, self.lookout))
            except NotMet as fault:
                future.set_exception(fault)
            return
        error = None if message.error is UNSET else decode_any(message.error)
        result = None if message.result is UNSET else decode_any(message.result)
        future.set_result(Answer(identity, result, error, size=size))

    # --- What the kit sends ---------------------------------------------------------------

    async def send(self, line: bytes) -> None:
        """Send a line that is as it should be."""
        self.lookout.sending(line)
        self.evidence.add(">", line)
        await self.child.write(line)

    async def send_wrong(
        self, line: bytes, why: str, *, answers: Id | None = None, method: str = "describe"
    ) -> "asyncio.Future[Answer]":
        """Send bytes that are wrong, or unusual, on purpose.

        The future is of an answer under the id `answers`, should one come.
        """
        self.lookout.deliberate(answers, method)
        self.evidence.add(">", line, f"on purpose: {why}")
        future = self._expect(answers)
        await self.child.write(line)
        return future

    def _expect(self, identity: Id) -> "asyncio.Future[Answer]":
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        # A check that ends early lets go of it, and then nobody asks what it held.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting[type(identity), identity] = future
        return future

    def fresh_id(self) -> int:
        """The next id of the kit's own."""
        return next(self._ids)

    async def post(
        self, method: str, params: Any = None, *, identity: int | str | None = None
    ) -> "asyncio.Future[Answer]":
        """Send a request; the future is its answer."""
        own = self.fresh_id() if identity is None else identity
        raw = None if params is None else encode(params)
        future = self._expect(own)
        await self.send(envelope.request_frame(own, method, raw))
        return future

    async def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        raw = None if params is None else encode(params)
        await self.send(envelope.notification_frame(method, raw))

    async def answer(
        self, future: "asyncio.Future[Answer]", what: str, within: float | None = None
    ) -> Answer:
        """Wait for an answer. Raises `NotMet` if none comes, saying `what` is not answered."""
        ended = asyncio.ensure_future(self.child.ended.wait())
        bound = self.patience.answer if within is None else within
        try:
            await asyncio.wait((future, ended), timeout=bound, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        if future.done():
            return future.result()
        if self.child.ended.is_set():
            await self.child.exit(self.patience.grace)
            msg = f"{what} is not answered: the plugin's stdout ended{self.child.epitaph()}"
            raise NotMet(msg)
        msg = f"{what} is not answered within {bound:g} s"
        raise NotMet(msg)

    async def request(
        self,
        method: str,
        params: Any = None,
        *,
        identity: int | str | None = None,
        within: float | None = None,
    ) -> Answer:
        """Send a request and wait for its answer. Raises `NotMet` if none comes."""
        return await self.answer(await self.post(method, params, identity=identity), method, within)

    # --- What a host says -----------------------------------------------------------------

    async def initialize(self, offer: Any = None) -> Answer:
        """Shake hands with the seed's offer and v2.1's keys, or with another one.

        A plugin that is known to be silent is not asked; silence is an error like others.
        """
        if self.silent:
            return Answer(None, error={"code": METHOD_NOT_FOUND, "message": "silence"})
        params = decode_any(encode(host_offer() if offer is None else offer))
        self.offered = params.get("capabilities", {})
        return await self.request("initialize", params, within=self.patience.start)

    async def describe(self) -> Object:
        """The manifest. Raises `NotMet` for an error."""
        answer = await self.request("describe")
        manifest = as_object(answer.result)
        if manifest is None:
            msg = f"describe answers {answer}"
            raise NotMet(msg)
        return manifest

    async def handshake(self, offer: Any = None) -> None:
        """What a host does before the first invoke."""
        answer = await self.initialize(offer)
        self.services.learn(answer, await self.describe())

    async def call(
        self,
        tool: str,
        arguments: Any,
        *,
        extra: Object | None = None,
        parent: str | None = None,
    ) -> Invoke:
        """Begin an invoke. Without a handshake as v2 there is no context, as in 1.1."""
        invoke_id = os.urandom(16).hex()
        params: Object = {"tool": tool, "arguments": arguments}
        if self.services.is_v2:
            token = self._tokens.of(invoke_id, self.services)
            params["context"] = {"invoke_id": invoke_id, **token}
            params["invoke_id"] = invoke_id
            if parent is not None:
                params["context"]["parent_invoke_id"] = parent
            self.services.open(invoke_id)
        future = await self.post("invoke", params | (extra or {}))
        future.add_done_callback(lambda _: self.services.ended(invoke_id))
        return Invoke(invoke_id, future)

    async def invoke(
        self, tool: str, arguments: Any, *, within: float | None = None, **more: Any
    ) -> Answer:
        """Call a tool and wait for what comes of it. Raises `NotMet` if nothing does."""
        call = await self.call(tool, arguments, **more)
        return await self.answer(
            call.answer, f"invoke of {tool}", self.patience.invoke if within is None else within
        )

    async def alive(self, after: str) -> None:
        """The plugin still serves. Raises `NotMet`, saying after what it does not."""
        try:
            await self.describe()
        except NotMet as fault:
            msg = f"after {after}: {fault}"
            raise NotMet(msg) from None

    async def quiet(self, after: str) -> None:
        """No line comes for a moment. Raises `NotMet`."""
        self.news.clear()
        before = self.received
        try:
            async with asyncio.timeout(self.patience.quiet):
                await self.news.wait()
        except TimeoutError:
            return
        if self.received > before:
            msg = f"{after} is answered, or something else was written"
            raise NotMet(msg)

    async def leave(self) -> int:
        """Close stdin and wait for the end: the exit code. Raises `NotMet` if it stays."""
        self.child.close_stdin()
        return await self.gone("the end of its stdin")

    async def gone(self, after: str) -> int:
        """The exit code. Raises `NotMet` if the plugin still runs after the grace."""
        code = await self.child.exit(self.patience.grace)
        if code is None:
            msg = f"the plugin still runs {self.patience.grace:g} s after {after}"
            raise NotMet(msg)
        return code

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.child.signal(signal.SIGTERM)

    async def held(self, *methods: str) -> ReverseCall:
        """Wait for a call of one of these methods that is held. Raises `NotMet`."""
        try:
            async with asyncio.timeout(self.patience.invoke):
                while True:
                    self.services.called.clear()
                    for call in self.services.made(*methods):
                        if call.held:
                            return call
                    await self.services.called.wait()
        except TimeoutError:
            msg = f"{' or '.join(methods)} is not called within {self.patience.invoke:g} s"
            raise NotMet(msg) from None

    async def release(self, call: ReverseCall) -> None:
        """Give a call that is held its ordinary answer."""
        call.held = False
        await self.reply(call.id, self.services.ordinary(call))

    # --- Reverse calls --------------------------------------------------------------------

    async def _answer_calls(self) -> None:
        while True:
            message = await self._answering.get()
            if isinstance(message, Malformed):
                if message.id is not UNSET:
                    await self.reply(message.id, ErrorObject(message.code, message.reason))
                continue
            outcome = self.services.serve(message)
            if outcome is HELD:
                continue
            await self.reply(message.id, outcome)

    async def reply(self, identity: Any, outcome: Any) -> None:
        """Answer a reverse call, with an error object or a result."""
        try:
            if isinstance(outcome, Odd):
                line = envelope.result_frame(identity, encode(outcome.result))
                self.lookout.odd_answer(identity)
                self.evidence.add(">", line, f"on purpose: {outcome.why}")
                await self.child.write(line)
            elif isinstance(outcome, ErrorObject):
                await self.send(envelope.error_frame(identity, encode(outcome)))
            else:
                await self.send(envelope.result_frame(identity, encode(outcome)))
        except NotMet:  # it has gone; whoever waits for it will say so
            self.evidence.tell("the plugin has gone before this answer")
