"""A plugin written by a stranger: plain `json` over stdin and stdout, a thread for each call.

Run as a program by tests of the host. Its behaviour is chosen by options, so that one file
can play every kind of plugin:

``--manifest JSON``   members that replace those of the manifest
``--v1``              answers `initialize` with -32601
``--silent-init``     never answers `initialize`
``--banner``          prints a banner and a stray JSON array on stdout first
``--ids str``         answers with every id as a string
``--init JSON``       the result of `initialize`
``--take KEYS``       capabilities beside sampling that `initialize` takes, with commas
``--single``          one thread: while a tool waits for a reverse call nothing else is read
``--deaf``            reads nothing more once it has answered `describe`
``--no-health``       never answers `health`
``--die-in METHOD``   exits with code 7 when it is asked for that
``--ignore-eof``      stays when its stdin ends; ``--ignore-term`` survives SIGTERM
"""

import argparse
import json
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import Any

CAPABILITIES = ["llm.sample", "llm.agent.auto", "aps.kv", "aps.files"]
TOOLS: dict[str, list[dict[str, Any]]] = {
    "echo": [{"name": "value", "type": "object", "required": False}],
    "reverse": [
        {"name": "method", "type": "string"},
        {"name": "params", "type": "object"},
        {"name": "stamp", "type": "boolean", "required": False},
    ],
    "hang": [],
    "die": [{"name": "code", "type": "integer", "required": False}],
    "answer_and_exit": [],
    "fail": [],
    "whoami": [],
    "child": [],
    "raw": [{"name": "line", "type": "string"}],
    "progress": [{"name": "count", "type": "integer"}],
    "late": [],
    "calls": [
        {"name": "calls", "type": "array", "items": {"type": "object"}},
        {"name": "parallel", "type": "boolean", "required": False},
    ],
    "cancelled": [{"name": "mode", "type": "string"}],
}

Params = dict[str, Any]
ANSWERED = object()


def say(text: str) -> None:
    """A line on stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _context(params: Params) -> dict[str, str]:
    return {"invoke_id": params["context"]["invoke_id"]}


class Plugin:
    """Answers the host and keeps the reverse calls that wait for it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.lock = threading.Lock()
        self.waiting: dict[str, queue.SimpleQueue[dict[str, Any]]] = {}
        self.cancels: dict[str, queue.SimpleQueue[str]] = {}
        self.unread: list[dict[str, Any]] = []
        self.count = 0

    def send(self, message: dict[str, Any]) -> None:
        self.send_line(json.dumps(message))

    def send_line(self, line: str) -> None:
        with self.lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def answer(self, identity: Any, result: Any) -> None:
        if self.options.ids == "str":
            identity = str(identity)
        self.send({"jsonrpc": "2.0", "id": identity, "result": result})

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            self.count += 1
            identity = f"r{self.count}"
            self.waiting[identity] = queue.SimpleQueue()
        self.send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})
        if self.options.single:
            self.read_until(identity)
        answer = self.waiting[identity].get(timeout=30)
        del self.waiting[identity]
        return {key: answer[key] for key in ("result", "error") if key in answer}

    def read_until(self, identity: str) -> None:
        """What comes before the answer is looked at when the tool has ended."""
        for line in sys.stdin:
            message = json.loads(line)
            if message.get("id") == identity and "method" not in message:
                self.waiting[identity].put(message)
                return
            self.unread.append(message)

    def manifest(self) -> dict[str, Any]:
        plain: dict[str, Any] = {
            "name": "raw",
            "version": "1.0",
            "description": "for tests",
            "host_capabilities": [] if self.options.v1 else CAPABILITIES,
            "tools": [
                {"name": name, "description": name, "parameters": parameters}
                for name, parameters in TOOLS.items()
            ],
        }
        return plain | json.loads(self.options.manifest)

    def serve(self, message: dict[str, Any]) -> None:
        method, identity = message["method"], message.get("id")
        if method == self.options.die_in:
            say(f"cannot do {method}")
            os._exit(7)
        if method == "initialize":
            if self.options.silent_init:
                return
            if self.options.v1:
                error = {"code": -32601, "message": "Method not found"}
                self.send({"jsonrpc": "2.0", "id": identity, "error": error})
                return
            answer = json.loads(self.options.init)
            if self.options.take:
                answer["capabilities"] |= {key: {} for key in self.options.take.split(",")}
            self.answer(identity, answer)
        elif method == "describe":
            self.answer(identity, self.manifest())
            while self.options.deaf:
                signal.pause()
        elif method == "health":
            if not self.options.no_health:
                self.answer(identity, {"status": "healthy"})
        elif method == "executa/cancel":
            params = message["params"]
            self.cancels.setdefault(params["invoke_id"], queue.SimpleQueue()).put(params["reason"])
        elif method == "invoke" and self.options.single:
            self.invoke(message)
        elif method == "invoke":
            threading.Thread(target=self.invoke, args=(message,), daemon=True).start()

    def invoke(self, message: dict[str, Any]) -> None:
        params, identity = message["params"], message["id"]
        tool = getattr(self, f"tool_{params['tool']}", None)
        if tool is None:
            error = {"code": -32601, "message": f"no tool {params['tool']}"}
            self.send({"jsonrpc": "2.0", "id": identity, "error": error})
            return
        data = tool(params, identity)
        if data is not ANSWERED:
            self.answer(identity, {"success": True, "data": data})

    # --- Tools: each gives its data, or ANSWERED if it has answered or never will ---------

    def tool_echo(self, params: Params, _identity: Any) -> Any:
        return params["arguments"]

    def tool_whoami(self, params: Params, _identity: Any) -> Any:
        seen = {"env": dict(os.environ), "cwd": str(Path.cwd()), "pid": os.getpid()}
        return {"params": params, **seen}

    def tool_reverse(self, params: Params, _identity: Any) -> Any:
        arguments = params["arguments"]
        stamp = {"context": _context(params)} if arguments.get("stamp", True) else {}
        return self.call(arguments["method"], stamp | arguments["params"])

    def tool_hang(self, _params: Params, _identity: Any) -> Any:
        return ANSWERED

    def tool_late(self, params: Params, identity: Any) -> Any:
        self.answer(identity, {"success": True, "data": "first"})
        self.answer(identity, {"success": True, "data": "second"})
        asked = {"key": "k", "scope": "tool", "context": _context(params)}
        say(json.dumps(self.call("storage/get", asked)))
        return ANSWERED

    def tool_die(self, params: Params, _identity: Any) -> Any:
        say("about to die")
        os._exit(params["arguments"].get("code", 3))

    def tool_answer_and_exit(self, _params: Params, identity: Any) -> Any:
        self.answer(identity, {"success": True, "data": "last words"})
        os._exit(0)

    def tool_fail(self, _params: Params, identity: Any) -> Any:
        self.answer(identity, {"success": False, "error": "it did not work"})
        return ANSWERED

    def tool_child(self, _params: Params, _identity: Any) -> Any:
        """A child in the same group that holds the pipes and ignores SIGTERM."""
        pid = os.fork()
        while pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.pause()
        return pid

    def tool_raw(self, params: Params, identity: Any) -> Any:
        line = params["arguments"]["line"].replace("$ID", json.dumps(identity))
        self.send_line(line.replace("$INVOKE", params["context"]["invoke_id"]))
        return ANSWERED

    def tool_progress(self, params: Params, _identity: Any) -> Any:
        for done in range(params["arguments"]["count"]):
            event = {"type": "progress", "data": {"done": done}, "context": _context(params)}
            self.send({"jsonrpc": "2.0", "method": "executa/progress", "params": event})
        return None

    def tool_calls(self, params: Params, _identity: Any) -> Any:
        """Make reverse calls, one after the other or all at once, and give their answers."""
        arguments = params["arguments"]
        asked = [
            (call["method"], {"context": _context(params)} | call["params"])
            for call in arguments["calls"]
        ]
        if not arguments.get("parallel"):
            return [self.call(*each) for each in asked]
        answers: list[Any] = [None] * len(asked)

        def make(index: int) -> None:
            answers[index] = self.call(*asked[index])

        threads = [threading.Thread(target=make, args=(index,)) for index in range(len(asked))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def tool_cancelled(self, params: Params, identity: Any) -> Any:
        """Wait to be cancelled, and then do what `mode` says."""
        invoke_id = params["context"]["invoke_id"]
        told = self.cancels.setdefault(invoke_id, queue.SimpleQueue())
        say(f"waiting {invoke_id}")
        reason = told.get(timeout=30)
        say(f"told {reason}")
        mode = params["arguments"]["mode"]
        if mode == "confirm":
            error = {"code": -32000, "message": reason, "data": {"errorCode": "INVOKE_CANCELLED"}}
            self.send({"jsonrpc": "2.0", "id": identity, "error": error})
        elif mode == "fail":
            error = {"code": -32603, "message": "it broke"}
            self.send({"jsonrpc": "2.0", "id": identity, "error": error})
        elif mode == "complete":
            return "done all the same"
        elif mode == "die":
            os._exit(1)
        return ANSWERED

    def run(self) -> None:
        if self.options.banner:
            self.send_line("Welcome to RawPlugin 3000!")
            self.send_line('[1, {"jsonrpc": "2.0", "id": 0, "method": "describe"}]')
        for line in sys.stdin:
            if not line.strip():
                continue
            self.unread.append(json.loads(line))
            while self.unread:
                message = self.unread.pop(0)
                if "method" in message:
                    self.serve(message)
                elif message.get("id") in self.waiting:
                    self.waiting[message["id"]].put(message)


def main(kind: type[Plugin] = Plugin) -> None:
    """Be a plugin of this kind, as the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--manifest", default="{}")
    parser.add_argument("--v1", action="store_true")
    parser.add_argument("--silent-init", action="store_true")
    parser.add_argument("--banner", action="store_true")
    parser.add_argument("--ids", default="")
    parser.add_argument("--take", default="")
    parser.add_argument("--single", action="store_true")
    parser.add_argument("--deaf", action="store_true")
    parser.add_argument("--no-health", action="store_true")
    parser.add_argument("--die-in", default="")
    parser.add_argument("--ignore-eof", action="store_true")
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument(
        "--init",
        default=json.dumps(
            {
                "protocolVersion": "2.0",
                "server_info": {"name": "raw", "version": "1.0"},
                "capabilities": {"sampling": {}},
            }
        ),
    )
    options = parser.parse_args()
    if options.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    kind(options).run()
    while options.ignore_eof:
        signal.pause()


if __name__ == "__main__":
    main()
