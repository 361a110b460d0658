"""What a stranger's plugin has beside its tools: lines, the host's methods, reverse calls.

Each rule is one method or hook, so that a fault can break it and nothing else. The hooks
`on_result`, `on_params`, `on_message` and `on_line` see what is about to be sent.
"""

import itertools
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from tests.conformance.peers.call import TOOLS, Call, CallFailed, Cancelled, Misuse
from tests.conformance.peers.wire import MAX_LINE, Refused, Wire, error

Object = dict[str, Any]

SPILL = 512 * 1024
DRAIN = 2.0
CAPABILITIES = ["llm.sample", "llm.agent.auto", "aps.kv", "aps.files"]
WANTED = ("sampling", "agent", "storage", "fileTransport", "cancellation", "progress")


class Core:
    """A plugin without its tools. `run` serves until stdin ends."""

    def __init__(self, out: BinaryIO) -> None:
        self.wire = Wire()
        self.out = out
        self.v1 = False
        self.offered: Object | None = None
        """What the host offered; None before a v2 handshake."""
        self.calls: dict[Any, Call] = {}
        self.waiting: dict[str, tuple[threading.Event, Object]] = {}
        self.asked: dict[str, str] = {}
        self.threads: list[threading.Thread] = []
        self.lock = threading.Lock()
        self.numbers = itertools.count(1)
        self.exit_code = 0
        self.methods: dict[str, Callable[[Object], Any]] = {
            "initialize": self.initialize,
            "describe": lambda _: self.manifest(),
            "health": lambda _: {"status": "ready"},
            "shutdown": lambda _: {},
        }

    # --- Out ----------------------------------------------------------------------------------

    def on_result(self, method: str, result: Any, params: Object, /) -> Any:
        """The result of a host's method, before it is sent."""
        return result

    def on_params(self, method: str, params: Object, call: Call, /) -> Object:
        """The params of a reverse call, before it is sent."""
        return params

    def on_message(self, message: Object, /) -> Object:
        """A message, before it is encoded."""
        return message

    def on_line(self, line: bytes, /) -> bytes:
        """A line, before it is written."""
        return line

    def encode(self, message: Object, /) -> bytes:
        return json.dumps(message, ensure_ascii=False).encode() + b"\n"

    def send(self, message: Object, /) -> None:
        line = self.on_line(self.encode(self.on_message(message)))
        with self.lock:
            self.out.write(line)
            self.out.flush()

    def answer(self, identity: Any, method: str, result: Any, params: Object, /) -> None:
        message = {
            "jsonrpc": "2.0",
            "id": identity,
            "result": self.on_result(method, result, params),
        }
        line = self.encode(message)
        if method == "invoke" and self.spills(len(line)):
            message = {"jsonrpc": "2.0", "id": identity, "__file_transport": self.spill(line)}
        self.send(message)

    def spills(self, size: int, /) -> bool:
        return size > SPILL and bool((self.offered or {}).get("fileTransport"))

    def spill(self, line: bytes, /) -> str:
        descriptor, path = tempfile.mkstemp(prefix="executa-resp-", suffix=".json")
        with os.fdopen(descriptor, "wb") as file:
            file.write(line)
        return path

    # --- In -----------------------------------------------------------------------------------

    def run(self) -> int:
        """Serve until stdin ends, and give the exit code."""
        while line := sys.stdin.buffer.readline(MAX_LINE + 2):
            if not line.endswith(b"\n") and len(line) > MAX_LINE:
                self.drain()
                self.refuse(self.wire.too_long(line))
                continue
            try:
                message = self.wire.read(line)
            except Refused as refused:
                self.refuse(refused)
                continue
            if message is not None:
                self.take(message)
        self.at_end()
        return self.exit_code

    def at_end(self) -> None:
        """Finish what is in flight."""
        for thread in self.threads:
            thread.join(DRAIN)

    def drain(self) -> None:
        while True:
            piece = sys.stdin.buffer.readline(MAX_LINE)
            if not piece or piece.endswith(b"\n"):
                return

    def refuse(self, refused: Refused, /) -> None:
        if refused.answer is not None:
            self.send(refused.answer)

    def take(self, message: Object, /) -> None:
        if "method" not in message:
            self.take_answer(message)
        elif "id" in message:
            self.take_request(message)
        else:
            self.take_notification(message)

    def take_answer(self, message: Object, /) -> None:
        entry = self.waiting.get(message.get("id", ""))
        if entry is not None:
            entry[1].update(message)
            entry[0].set()

    def take_notification(self, message: Object, /) -> None:
        if message["method"] == "executa/cancel":
            call = self.calls.get(message["params"]["invoke_id"])
            if call is not None:
                self.cancel(call)

    def cancel(self, call: Call, /) -> None:
        call.cancelled.set()
        for event, _ in list(self.waiting.values()):
            event.set()

    def take_request(self, message: Object, /) -> None:
        method, identity = message["method"], message["id"]
        if method == "invoke":
            self.begin(Call(identity, message.get("params") or {}))
            return
        handler = self.methods.get(method)
        if handler is None:
            self.send(error(identity, -32601, f"no method {method!r}"))
            return
        try:
            params: Object = message.get("params") or {}
            self.answer(identity, method, handler(params), params)
        except CallFailed as fault:
            self.send({"jsonrpc": "2.0", "id": identity, "error": fault.body})

    # --- The host's methods -------------------------------------------------------------------

    def initialize(self, params: Object, /) -> Object:
        if self.v1:
            raise CallFailed({"code": -32601, "message": "no method initialize"})
        offered: Object = params.get("capabilities") or {}
        self.offered = offered
        return {
            "protocolVersion": "2.0",
            "server_info": {"name": "stranger", "version": "1.0"},
            "capabilities": {key: {} for key in WANTED if key in offered},
        }

    def manifest(self) -> Object:
        return {
            "name": "stranger",
            "version": "1.0",
            "description": "Keeps every rule.",
            "host_capabilities": list(CAPABILITIES),
            "credentials": [{"name": "API_KEY", "description": "A key."}],
            "tools": json.loads(json.dumps(TOOLS)),
        }

    def begin(self, call: Call, /) -> None:
        """Serve an invoke on a thread of its own."""
        self.calls[call.invoke_id] = call
        thread = threading.Thread(target=self.serve, args=(call,))
        self.threads.append(thread)
        thread.start()

    def serve(self, call: Call, /) -> None:
        """Run the tool and answer."""
        try:
            data = self.run_tool(call)
        except Cancelled:
            self.finish(call)
            self.send(error(call.identity, -32000, "cancelled", errorCode="INVOKE_CANCELLED"))
        except CallFailed as fault:
            self.finish(call)
            failed = {"success": False, "error": str(fault)}
            self.answer(call.identity, "invoke", failed, call.params)
        except Misuse as fault:
            self.finish(call)
            self.send(error(call.identity, fault.code, str(fault)))
        else:
            self.finish(call)
            result = {"success": True, "data": data}
            self.answer(call.identity, "invoke", result, call.params)

    def finish(self, call: Call, /) -> None:
        self.calls.pop(call.invoke_id, None)

    def run_tool(self, call: Call, /) -> Any:
        """The tool's data. Raises `Misuse`."""
        name = call.params.get("tool")
        tool = next((each for each in TOOLS if each["name"] == name), None)
        if tool is None:
            raise Misuse(-32601, f"no tool {name!r}")
        arguments = self.arguments(call, tool)
        return getattr(self, f"tool_{name}")(call, arguments)

    def arguments(self, call: Call, tool: Object, /) -> Object:
        arguments: Object = call.params.get("arguments") or {}
        for parameter in tool["parameters"]:
            if type(arguments.get(parameter["name"])) is not str:
                raise Misuse(-32602, f"{parameter['name']}: expected a string")
        return arguments

    # --- Reverse calls ------------------------------------------------------------------------

    def method_name(self, method: str, /) -> str:
        return method

    def request(self, call: Call, method: str, params: Object, /) -> Any:
        """Make a reverse call and give its result."""
        if self.offered is None:
            raise CallFailed({"code": -32601, "message": "no reverse calls without v2"})
        params = self.on_params(method, {**self.stamp(call), **params}, call)
        identity = f"r{next(self.numbers)}"
        event, answer = self.waiting[identity] = (threading.Event(), {})
        self.asked[identity] = method
        self.send(
            {"jsonrpc": "2.0", "id": identity, "method": self.method_name(method), "params": params}
        )
        self.wait(event, call, answer)
        del self.waiting[identity]
        if "error" in answer:
            raise CallFailed(answer["error"])
        return answer["result"]

    def stamp(self, call: Call, /) -> Object:
        return {"context": {"invoke_id": call.invoke_id}} if call.invoke_id else {}

    def wait(self, event: threading.Event, call: Call, answer: Object, /) -> None:
        """Wait for an answer, or for the end of the call."""
        while not answer:
            if call.cancelled.is_set():
                raise Cancelled
            event.wait()
            event.clear()

    def progress(self, call: Call, **data: Any) -> None:
        params: Object = {"type": "progress", "data": data, **self.stamp(call)}
        message = {"jsonrpc": "2.0", "method": "executa/progress", "params": params}
        if self.offered is not None and call.invoke_id:
            self.send(message)
