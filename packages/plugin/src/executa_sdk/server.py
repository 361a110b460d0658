"""The plugin's side of a connection: the host's requests in, their answers out.

Owns what the methods mean. How tools run is the business of `calls`, and what a tool may
ask of the host that of `context`.
"""

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from executa_protocol.aio.flag import Flag
from executa_protocol.aio.handler import Diagnostic
from executa_protocol.aio.peer import Peer
from executa_protocol.codec import encode
from executa_protocol.codes import wire_error
from executa_protocol.envelope import Id, Message
from executa_protocol.errors import DecodeFailure
from executa_protocol.handshake import plugin_answer, read_offer
from executa_protocol.methods.core import read_cancel
from executa_protocol.methods.invoke import InvokeParams, read_invoke
from executa_protocol.methods.reading import InvalidParams, refusal
from executa_sdk.bridge import Bridge, Inline
from executa_sdk.calls import Calls
from executa_sdk.connection import Connection
from executa_sdk.invocation import Invocation
from executa_sdk.log import tell
from executa_sdk.plugin import Plugin
from executa_sdk.quick import QuickInvoke, QuickReader
from executa_sdk.tool import Tool

if TYPE_CHECKING:
    from executa_protocol.aio.transport import Transport
    from executa_sdk.context import Context

_KEYS: Final = {
    "llm.sample": "sampling",
    "llm.agent.auto": "agent",
    "llm.agent.fixed": "agent",
    "aps.kv": "storage",
    "aps.files": "storage",
}
"""Manifest strings and the capability keys that are taken for them (R-20)."""

MOST_DIAGNOSTICS: Final = 20
"""Diagnostics of one kind that go to stderr: a host that errs on every line must not fill it."""

_ALWAYS: Final = ("fileTransport", "cancellation", "progress")


class Server:
    """Serves one plugin on one connection, on the running loop; a `Handler` for its peer.

    `manifest` is the encoded answer to `describe`. Calls wait until `open` says that
    start-up is over; everything else is answered from the start.
    """

    def __init__(self, plugin: Plugin, manifest: bytes, transport: "Transport") -> None:
        self._plugin = plugin
        self._manifest = manifest
        self._early: list[Message] | None = []
        self._tools = plugin.tools
        self._schemas = {name: tool.schema for name, tool in plugin.tools.items()}
        self._inline = {name: Inline(name) for name, t in plugin.tools.items() if t.way == "inline"}
        self._quick = QuickReader()
        self._make_context: Callable[[Invocation], Context] | None = None
        if any(schema.context is not None for schema in self._schemas.values()):
            from executa_sdk.context import make_context  # noqa: PLC0415 - if used

            self._make_context = make_context
        self._methods: dict[str, Callable[[Message, Id], None]] = {
            "initialize": self._initialize,
            "describe": self._describe,
            "health": self._health,
            "shutdown": self._shutdown,
            "executa/cancel": self._cancel,
        }
        self.peer = Peer(
            transport,
            self,
            prefix="p",
            answer_unreadable=True,
            yield_to_writes=True,
            on_eof=self._on_eof,
        )
        self.peer.quick = self._serve_quickly
        self.connection = Connection(self.peer, plugin.credentials)
        self.calls = Calls(self.connection)
        self.closed = Flag(transport.loop)
        """Set when the host has closed our input."""

    @property
    def in_flight(self) -> int:
        """Calls that are not answered yet."""
        return len(self.calls)

    def open(self) -> None:
        """Start-up is over: take the calls that came meanwhile, and all that follow."""
        early, self._early = self._early or [], None
        for message in early:
            self.on_request(message)

    # --- What the peer says ------------------------------------------------------------

    def on_request(self, request: Message) -> None:
        method: Any = request.method
        identity: Any = request.id
        if method == "invoke":
            self._invoke(request, identity)
            return
        handle = self._methods.get(method)
        if handle is None:
            text = f"this plugin has no method {method!r}"
            self.peer.fail(identity, wire_error("METHOD_NOT_FOUND", text))
        else:
            handle(request, identity)

    def on_notification(self, notification: Message) -> None:
        if notification.method == "executa/cancel":
            self._end_call(notification)

    def on_diagnostic(self, diagnostic: Diagnostic) -> None:
        count = self.peer.counts[diagnostic.kind]
        if count <= MOST_DIAGNOSTICS:
            sample = f" [{diagnostic.sample!r}]" if diagnostic.sample else ""
            more = "; no more of this kind are shown" if count == MOST_DIAGNOSTICS else ""
            tell(f"{diagnostic.kind}: {diagnostic.message}{sample}{more}")

    def on_closed(self, reason: Exception | None) -> None:
        self.connection.ended = True
        self.closed.set()
        if reason is not None:
            tell(f"the connection has ended: {reason}")

    def _on_eof(self) -> None:
        """The host has closed our input: it answers no more, but it still reads answers."""
        self.connection.ended = True
        self.peer.fail_calls()
        self.closed.set()

    # --- The host's methods --------------------------------------------------------------

    def _initialize(self, request: Message, identity: Id) -> None:
        try:
            offered = read_offer(b"{}" if request.params is UNSET else request.params)
        except DecodeFailure as fault:
            self.peer.fail(identity, refusal(fault, "INVALID_PARAMS"))
            return
        self.connection.is_v2 = True
        self.connection.offered = offered
        plugin = self._plugin
        wanted = [_KEYS[string] for string in plugin.host_capabilities if string in _KEYS]
        answer = plugin_answer(plugin.name, plugin.version, offered, [*wanted, *_ALWAYS])
        self.peer.reply(identity, encode(answer))

    def _describe(self, request: Message, identity: Id) -> None:
        self.peer.reply(identity, self._manifest)

    def _health(self, request: Message, identity: Id) -> None:
        status = "ready" if self._early is None else "initializing"
        answer = {"status": status, "message": "", "details": {"in_flight": len(self.calls)}}
        self.peer.reply(identity, encode(answer))

    def _shutdown(self, request: Message, identity: Id) -> None:
        # Only the end of input ends a plugin (seed lifecycle, Shutdown contract; R-26).
        self.peer.reply(identity, b"{}")

    def _invoke(self, request: Message, identity: Id) -> None:
        if self._early is not None:
            self._early.append(request)
        elif self.calls.holding():
            self.calls.hold(partial(self._begin, request, identity))
        else:
            self._begin(request, identity)

    def _begin(self, request: Message, identity: Id) -> None:
        try:
            params = read_invoke(request.params)
            tool = self._tools.get(params.tool)
            if tool is None:
                self._refuse_unknown(params.tool, identity)
                return
            schema = self._schemas[tool.name]
            values = schema.read(params.arguments)
        except InvalidParams as fault:
            self.peer.fail(identity, fault.error)
            return
        self._quick.note(tool)
        call = self._invocation(identity, tool, params)
        if schema.context is not None and self._make_context is not None:
            values[schema.context] = self._make_context(call)
        self.calls.start(call, values)

    def _invocation(self, identity: Id, tool: Tool, params: InvokeParams) -> Invocation:
        connection = self.connection
        bridge: Bridge = connection.in_task
        if tool.way == "inline":
            bridge = self._inline[tool.name]
        elif tool.way == "thread":
            bridge = connection.in_thread()
        context = params.context
        invoke_id = UNSET if context is UNSET else context.invoke_id
        if invoke_id is UNSET:
            invoke_id = params.call_id()
        return Invocation(connection, identity, tool, params, invoke_id, bridge, perf_counter())

    # --- Most invokes, by the quicker way ---------------------------------------------------

    def _serve_quickly(self, line: bytes) -> bool:
        if self._early is not None or self.calls.holding():
            return False
        request = self._quick.read(line)
        if request is None or not self.peer.admit(request.id):
            return False
        try:
            self._run(request)
        except Exception as fault:  # noqa: BLE001 - as the peer does
            self.peer.failed(request.id, request.method, fault)
        return True

    def _run(self, request: QuickInvoke) -> None:
        params = request.params
        tool = self._tools[params.tool]
        schema = self._schemas[params.tool]
        values = schema.keywords(params.arguments)
        call = self._invocation(request.id, tool, params)
        if schema.context is not None and self._make_context is not None:
            values[schema.context] = self._make_context(call)
        if tool.way == "inline":
            self.calls.run_inline(call, values)
        else:
            self.calls.start(call, values)

    def _refuse_unknown(self, name: str, identity: Id) -> None:
        text = f"this plugin has no tool {name!r}"
        names = list(self._plugin.tools)
        self.peer.fail(identity, wire_error("METHOD_NOT_FOUND", text, available_tools=names))

    def _cancel(self, request: Message, identity: Id) -> None:
        self._end_call(request)
        self.peer.reply(identity, b"{}")

    def _end_call(self, message: Message) -> None:
        try:
            params = read_cancel(message.params)
        except DecodeFailure as fault:
            tell(f"executa/cancel: {fault}")
            return
        call = self.calls.find(params.invoke_id)
        if call is not None:
            self.calls.cancel(call, "" if params.reason is UNSET else params.reason)
