"""The plugin that a runtime under test serves: ``python -m executa_conformance.actions.plugin``.

Its tools do what the checks need to see done: answer, fail, wait, count, tell their progress. It
speaks the wire by itself, with the standard library, so that the runtime is all that is tested.
"""

import json
import sys
import threading
from typing import Any, Final

Members = dict[str, Any]


def _parameter(name: str, kind: str, description: str) -> Members:
    return {"name": name, "type": kind, "description": description, "required": False}


_NAME: Final = _parameter("name", "string", "Of the counter.")
_SECONDS: Final = _parameter("seconds", "number", "How long.")

MANIFEST: Final[Members] = {
    "name": "conformance",
    "version": "1.0.0",
    "description": "What the conformance kit calls.",
    "tools": [
        {
            "name": "echo",
            "description": "Says what it was told.",
            "effect": "read",
            "parameters": [
                _parameter("text", "string", "A text."),
                _parameter("number", "integer", "A number."),
                _parameter("ratio", "number", "Another number."),
            ],
        },
        {"name": "fail", "description": "Fails.", "effect": "read", "parameters": []},
        {
            "name": "wait",
            "description": "Waits, and ends when it is cancelled.",
            "effect": "read",
            "parameters": [_SECONDS],
        },
        {
            "name": "stubborn",
            "description": "Waits, whatever it is told.",
            "effect": "mutating",
            "parameters": [_SECONDS],
        },
        {
            "name": "count",
            "description": "Counts how often it was called.",
            "effect": "mutating",
            "parameters": [_NAME, _SECONDS],
        },
        {
            "name": "ask",
            "description": "Counts, once a person allowed it.",
            "effect": "mutating",
            "approval": True,
            "parameters": [_NAME],
        },
        {
            "name": "stream",
            "description": "Tells its steps.",
            "effect": "read",
            "streaming": True,
            "parameters": [_parameter("steps", "integer", "How many."), _SECONDS],
        },
    ],
}


class Plugin:
    """The process. Each invoke runs in a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled: dict[str, threading.Event] = {}
        self._counts: dict[str, int] = {}

    def run(self) -> None:
        """Serve until stdin ends."""
        for line in sys.stdin.buffer:
            if line.strip():
                self._take(json.loads(line))

    def _say(self, frame: Members) -> None:
        line = json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n"
        with self._lock:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()

    def _take(self, frame: Members) -> None:
        method, identity = frame.get("method"), frame.get("id")
        match method:
            case "initialize":
                result: Members = {
                    "protocolVersion": "2.0",
                    "server_info": {"name": "conformance", "version": "1.0.0"},
                    "capabilities": {"cancellation": {}, "progress": {}},
                }
                self._say({"id": identity, "result": result})
            case "describe":
                self._say({"id": identity, "result": MANIFEST})
            case "invoke":
                self._begin(identity, frame["params"])
            case "executa/cancel":
                self._event(str(frame["params"].get("invoke_id"))).set()
            case _ if identity is not None:
                error = {"code": -32601, "message": f"there is no method {method!r}"}
                self._say({"id": identity, "error": error})
            case _:
                pass

    def _event(self, invoke_id: str) -> threading.Event:
        return self._cancelled.setdefault(invoke_id, threading.Event())

    def _begin(self, identity: Any, params: Members) -> None:
        self._event(str(params["context"].get("invoke_id")))
        work = threading.Thread(target=self._work, args=(identity, params), daemon=True)
        work.start()

    def _work(self, identity: Any, params: Members) -> None:
        invoke_id = str(params["context"].get("invoke_id"))
        given: Members = params.get("arguments") or {}
        match params.get("tool"):
            case "echo":
                result: Members = {"success": True, "data": given}
            case "fail":
                result = {"success": False, "error": "failed on purpose"}
            case "wait":
                if self._event(invoke_id).wait(given.get("seconds", 0.0)):
                    data = {"errorCode": "INVOKE_CANCELLED"}
                    error: Members = {"code": -32000, "message": "cancelled", "data": data}
                    self._say({"id": identity, "error": error})
                    return
                result = {"success": True, "data": "waited"}
            case "stubborn":
                threading.Event().wait(given.get("seconds", 0.0))
                result = {"success": True, "data": "waited"}
            case "count" | "ask":
                threading.Event().wait(given.get("seconds", 0.0))
                result = {"success": True, "data": self._count(str(given.get("name", "")))}
            case "stream":
                self._steps(invoke_id, given)
                result = {"success": True, "data": "streamed"}
            case other:
                error = {"code": -32601, "message": f"there is no tool {other!r}"}
                self._say({"id": identity, "error": error})
                return
        self._say({"id": identity, "result": result})

    def _count(self, name: str) -> int:
        with self._lock:
            self._counts[name] = self._counts.get(name, 0) + 1
            return self._counts[name]

    def _steps(self, invoke_id: str, given: Members) -> None:
        for step in range(int(given.get("steps", 3))):
            params = {
                "type": "progress",
                "data": {"step": step},
                "context": {"invoke_id": invoke_id},
            }
            self._say({"method": "executa/progress", "params": params})
            if self._event(invoke_id).wait(given.get("seconds", 0.0)):
                return


if __name__ == "__main__":
    Plugin().run()
