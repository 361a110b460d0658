"""`TestHost`: a plugin and a scripted host joined in memory, on one loop.

Everything but the pipe is real: the same server, threads, frames and gate as in a
process of its own.
"""

import asyncio
import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from msgspec import UNSET, Raw

from executa_protocol.aio.handler import Diagnostic
from executa_protocol.aio.memory import memory_pair
from executa_protocol.aio.peer import Peer
from executa_protocol.codec import decode_any, encode
from executa_protocol.codes import ErrorObject, wire_error
from executa_protocol.envelope import Message
from executa_protocol.errors import RpcError
from executa_protocol.handshake import host_offer, read_answer
from executa_protocol.manifest_reading import read_manifest
from executa_protocol.methods.invoke import read_invoke_result
from executa_sdk.errors import ToolError
from executa_sdk.lifetime import start_up, wind_down
from executa_sdk.plugin import Plugin
from executa_sdk.server import Server
from executa_sdk.testing.scripts import RunScript, SampleScript
from executa_sdk.testing.services import Services, Usage

Object = dict[str, Any]


class Running:
    """A call under way: await `result`, or `cancel` it."""

    __test__ = False

    def __init__(self, host: "TestHost", invoke_id: str, task: "asyncio.Task[Any]") -> None:
        self._host = host
        self._task = task
        self.invoke_id = invoke_id

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._task.done()

    async def result(self) -> Any:
        """What the tool returned. Raises as `TestHost.invoke`."""
        return await self._task

    def cancel(self, reason: str = "") -> None:
        """Ask the plugin to end the call (R-45); `result` says how it ended."""
        params: Object = {"invoke_id": self.invoke_id}
        if reason:
            params["reason"] = reason
        self._host.peer.notify("executa/cancel", encode(params))


class TestHost:
    """A host for one plugin, for an ``async with`` block.

    `sample` and `agent` say what the model answers: a text for ever, a list in order, or
    a function of the call's params; see `scripts`. `services` has the storage, the grants
    and every reverse call so far; further keyword arguments go to it.
    """

    __test__ = False

    def __init__(
        self,
        plugin: Plugin,
        *,
        sample: SampleScript = "A scripted answer.",
        agent: RunScript = "A scripted answer.",
        credentials: Mapping[str, str] | None = None,
        offer: Mapping[str, Any] | None = None,
        **services: Any,
    ) -> None:
        self._plugin = plugin
        self._credentials = dict(credentials or {})
        self._offer = offer
        self.services = Services(sample=sample, agent=agent, **services)
        self.clock = self.services.clock
        self.manifest: Object = {}
        self.progress: list[Object] = []
        """The `data` of every progress event, in order."""
        self.diagnostics: list[Diagnostic] = []
        """What the plugin sent and should not have."""
        self._active: dict[str, Usage] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._peer: Peer | None = None
        self._server: Server | None = None

    # --- Life -------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        ours, theirs = memory_pair()
        self._server = server = Server(self._plugin, encode(self._plugin.manifest()), theirs)
        server.connection.now = self.clock
        self._peer = Peer(ours, self)
        server.peer.start()
        self._peer.start()
        try:
            await self._begin(server)
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def _begin(self, server: Server) -> None:
        if not await start_up(server, self._plugin):
            msg = "the plugin's start-up failed; stderr has the story"
            raise RuntimeError(msg)
        offer = host_offer() if self._offer is None else {"protocolVersion": "2.0", **self._offer}
        answer = await self.peer.request("initialize", encode(offer))
        self.services.negotiated = read_answer(answer)
        raw = await self.peer.request("describe")
        self.services.declared = read_manifest(raw).declared()
        self.manifest = decode_any(raw)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.peer.close_writing()
        server = self.server
        await server.closed.wait()
        await wind_down(server, self._plugin)
        server.peer.close()
        self.peer.close()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self.services.blobs.close()

    @property
    def peer(self) -> Peer:
        """The host's end of the connection, for requests of your own."""
        if self._peer is None:
            raise RuntimeError("enter the test host first: async with TestHost(plugin) as host")
        return self._peer

    @property
    def server(self) -> Server:
        """The plugin's end."""
        if self._server is None:
            raise RuntimeError("enter the test host first: async with TestHost(plugin) as host")
        return self._server

    # --- Calls --------------------------------------------------------------------------------

    async def invoke(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool and give what it returned.

        Raises `ToolError` for ``success: false`` and `RpcError` for an error answer.
        """
        return await self.call(tool, arguments)

    def start(self, tool: str, /, **arguments: Any) -> Running:
        """Call a tool without waiting for it."""
        invoke_id = os.urandom(16).hex()
        task = asyncio.get_running_loop().create_task(
            self.call(tool, arguments, invoke_id=invoke_id)
        )
        return Running(self, invoke_id, task)

    async def call(
        self,
        tool: str,
        arguments: Any = None,
        *,
        invoke_id: str | None = None,
        timeout: float | None = None,
        parent: str | None = None,
    ) -> Any:
        """Call a tool with any arguments, right or wrong.

        `timeout` is in seconds of the host's `clock` and only told to the tool; `parent` is
        the invoke that this one is nested in (R-36).
        """
        invoke_id = invoke_id or os.urandom(16).hex()
        context: Object = {"invoke_id": invoke_id}
        if self._credentials:
            context["credentials"] = self._credentials
        if timeout is not None:
            context["deadline_ms"] = int((self.clock() + timeout) * 1000)
        if parent is not None:
            context["parent_invoke_id"] = parent
        params: Object = {"tool": tool, "arguments": {} if arguments is None else arguments}
        self._active[invoke_id] = self._active[parent] if parent is not None else Usage()
        try:
            raw = await self.peer.request("invoke", encode({**params, "context": context}))
        finally:
            del self._active[invoke_id]
        result = read_invoke_result(raw)
        data = None if result.data is UNSET else decode_any(result.data)
        if not result.success:
            raise ToolError("" if result.error is UNSET else result.error, data)
        return data

    # --- What the plugin asks -------------------------------------------------------------------

    def on_request(self, request: Message) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, request: Message) -> None:
        identity: Any = request.id
        try:
            result = self.services.serve(str(request.method), request.params, self._active)
            if request.method == "agent/session.run":
                await self._execute_tools(result["frames"], request.params)
            self.peer.reply(identity, encode(result))
        except RpcError as fault:
            self.peer.fail(identity, ErrorObject(fault.code, fault.message, fault.data or UNSET))
        except Exception as fault:  # noqa: BLE001 - the test's script is at fault
            text = f"the test host failed: {type(fault).__name__}: {fault}"
            self.peer.fail(identity, wire_error("INTERNAL_ERROR", text))

    async def _execute_tools(self, frames: list[Object], raw: Any) -> None:
        """Run the plugin's own tools that a script calls and does not answer itself (R-36)."""
        answered = {frame.get("call_id") for frame in frames if frame["event"] == "tool_result"}
        parent = decode_any(raw).get("context", {}).get("invoke_id")
        for index, frame in reversed(list(enumerate(frames))):
            plugin, _, tool = str(frame.get("name", "")).partition(".")
            call_id = frame.get("call_id")
            if frame["event"] == "tool_call" and call_id not in answered:
                if plugin != self._plugin.name:
                    continue
                frames.insert(index + 1, await self._execute(tool, frame, parent))

    async def _execute(self, tool: str, frame: Object, parent: str | None) -> Object:
        outcome: Object = {"event": "tool_result", "call_id": frame.get("call_id")}
        try:
            data = await self.call(tool, frame.get("args") or {}, parent=parent)
        except (ToolError, RpcError) as fault:
            return {**outcome, "ok": False, "data": {"error": str(fault)}}
        return {**outcome, "ok": True, "data": data}

    def on_notification(self, notification: Message) -> None:
        if notification.method == "executa/progress" and isinstance(notification.params, Raw):
            params = decode_any(notification.params)
            if params.get("context", {}).get("invoke_id") in self._active:
                self.progress.append(params.get("data", {}))

    def on_diagnostic(self, diagnostic: Diagnostic) -> None:
        self.diagnostics.append(diagnostic)

    def on_closed(self, reason: Exception | None) -> None:
        """Nothing more will come."""
