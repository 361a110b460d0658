"""What a host says to the plugin under test: the handshake, invokes, and the end."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from msgspec import Struct

from executa_conformance.evidence import Evidence
from executa_conformance.model import NotMet
from executa_conformance.patience import Patience
from executa_conformance.plugin.answer import Answer
from executa_conformance.plugin.link import Link
from executa_conformance.plugin.services import ReverseCall, Services
from executa_conformance.plugin.tokens import Tokens
from executa_protocol.codec import decode_any, encode
from executa_protocol.codes import METHOD_NOT_FOUND
from executa_protocol.faults import as_object
from executa_protocol.handshake import host_offer

Object = dict[str, Any]


class Invoke(Struct, frozen=True):
    """A call under way."""

    invoke_id: str
    answer: "asyncio.Future[Answer]"


class Session(Link):
    """A running plugin. Made by `Scene.start`."""

    def __init__(
        self,
        evidence: Evidence,
        patience: Patience,
        services: Services,
        folder: Path,
        tokens: Tokens,
    ) -> None:
        super().__init__(evidence, patience, services, folder)
        self.silent = False
        """Whether it does not answer initialize, as the tour has found."""
        self.offered: Object = {}
        self._tokens = tokens

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
        else:
            self.services.unnamed = True
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
