"""A process of the plugin under test and the lines to and from it.

Owns ids and the correlation of answers; what a host says with them is `session`'s business.
Every line goes through the lookout. Reverse calls are answered by `services`, in order, as
they come.
"""

import asyncio
import itertools
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import UNSET

from executa_conformance.child import Child
from executa_conformance.evidence import SHOWN_BYTES, Evidence
from executa_conformance.lookout import Lookout
from executa_conformance.model import NotMet
from executa_conformance.patience import Patience
from executa_conformance.plugin.answer import Answer
from executa_conformance.plugin.response_file import load
from executa_conformance.plugin.services import HELD, Odd, Services
from executa_conformance.plugin.tokens import MARK
from executa_protocol import envelope
from executa_protocol.codec import decode_any, encode
from executa_protocol.codes import ErrorObject
from executa_protocol.envelope import Id, Malformed, Message
from executa_protocol.faults import as_object
from executa_protocol.framing import Oversized
from executa_protocol.methods.progress import METHOD as PROGRESS

Key = tuple[type, Id]


class Link:
    """The process and its lines."""

    def __init__(
        self,
        evidence: Evidence,
        patience: Patience,
        services: Services,
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
        self.progress: list[tuple[float, str]] = []
        """When progress was told, in seconds, and of which invoke."""
        self.received = 0
        """How many lines have come."""
        self.news = asyncio.Event()
        """Set at each line, for whoever waits for one; clear it before you wait."""
        self.leaks: list[bytes] = []
        """The heads of answers in which a token or a credential stands."""
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
            elif message.method == PROGRESS:
                self.progress.append((time.monotonic(), _invoke_of(message)))
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


def _invoke_of(notification: Message) -> str:
    """The invoke that a notification names; empty if it names none."""
    raw = notification.params
    params = as_object(None if raw is UNSET else decode_any(raw)) or {}
    return str((as_object(params.get("context")) or {}).get("invoke_id", ""))
