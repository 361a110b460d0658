"""The plugin of the soak: plain `json` on one thread, its tools written as generators.

A tool yields a reverse call and gets its answer, so that any number of invokes are under
way at once without a thread. Run as a program. With ``--cancels`` it takes the cancellation
capability and ends what it is told to.
"""

import json
import sys
from collections.abc import Generator
from typing import Any

Object = dict[str, Any]
Tool = Generator[tuple[str, Object], Object, Any]

CANCELLED = {
    "code": -32000,
    "message": "cancelled",
    "data": {"errorCode": "INVOKE_CANCELLED"},
}
MANIFEST: Object = {
    "name": "soak",
    "version": "1.0",
    "description": "for the soak",
    "host_capabilities": ["llm.sample", "llm.agent.auto", "aps.kv"],
    "tools": [
        {"name": "work", "description": "Store, read, sample.", "parameters": []},
        {"name": "talk", "description": "One agent run.", "parameters": []},
        {"name": "overreach", "description": "Asks for what it may not have.", "parameters": []},
        {"name": "hang", "description": "Never answers by itself.", "parameters": []},
        {
            "name": "note",
            "description": "Find a note.",
            "parameters": [{"name": "query", "type": "string"}],
        },
    ],
}


def work(arguments: Object) -> Tool:
    """Write a value, read it back, have a text completed."""
    key = arguments["key"]
    value = {"nonce": arguments["nonce"]}
    stored = yield "storage/set", {"key": key, "scope": "tool", "value": value}
    found = yield "storage/get", {"key": key, "scope": "tool"}
    sampled = yield (
        "sampling/createMessage",
        {
            "messages": [{"role": "user", "content": {"type": "text", "text": arguments["text"]}}],
            "maxTokens": 64,
        },
    )
    return {
        "nonce": arguments["nonce"],
        "stored": stored,
        "found": found,
        "sampled": sampled,
    }


def talk(arguments: Object) -> Tool:
    """Make an agent session, run it once, and end it."""
    made = yield "agent/session.create", {"kind": "agent", "agent_submode": "auto"}
    if "error" in made:
        return {"made": made}
    uuid = made["result"]["app_session_uuid"]
    ran = yield (
        "agent/session.run",
        {"app_session_uuid": uuid, "content": arguments["text"]},
    )
    ended = yield "agent/session.delete", {"app_session_uuid": uuid}
    return {"made": made, "ran": ran, "ended": ended}


def overreach(arguments: Object) -> Tool:
    """Ask for a scope that the token does not have, and for a chapter that is not declared."""
    key = arguments["key"]
    scope = yield "storage/get", {"key": key, "scope": "app"}
    files = yield "files/list", {"scope": "tool"}
    return {"scope": scope, "files": files}


def hang(arguments: Object) -> Tool:
    """Make a call, and then nothing."""
    yield "storage/get", {"key": arguments["key"], "scope": "tool"}
    yield "", {}


def note(arguments: Object) -> Tool:
    """What a run may call."""
    return [f"A note on {arguments['query']}."]
    yield  # a generator like the others


TOOLS = {tool.__name__: tool for tool in (work, talk, overreach, hang, note)}


class Plugin:
    """Answers the host, and goes on with tools as the answers to their calls come."""

    def __init__(self, *, cancels: bool) -> None:
        self.cancels = cancels
        self.count = 0
        self.waiting: dict[str, tuple[Any, str, Tool]] = {}
        self.hanging: dict[str, Any] = {}

    def send(self, message: Object) -> None:
        """One line to the host."""
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def take(self, message: Object) -> None:
        """A line from the host."""
        method, identity = message.get("method"), message.get("id")
        if method == "initialize":
            capabilities: Object = {"sampling": {}, "agent": {}, "storage": {}}
            if self.cancels:
                capabilities["cancellation"] = {}
            result = {
                "protocolVersion": "2.0",
                "server_info": {"name": "soak", "version": "1.0"},
                "capabilities": capabilities,
            }
            self.send({"id": identity, "result": result})
        elif method == "describe":
            self.send({"id": identity, "result": MANIFEST})
        elif method == "health":
            self.send({"id": identity, "result": {"status": "ready"}})
        elif method == "invoke":
            params = message["params"]
            tool = TOOLS[params["tool"]](params["arguments"])
            self.go_on(identity, params["context"]["invoke_id"], tool, None)
        elif method == "executa/cancel":
            hung = self.hanging.pop(message["params"]["invoke_id"], None)
            if hung is not None:
                self.send({"id": hung, "error": CANCELLED})
        elif method is None and identity in self.waiting:
            answer = {key: message[key] for key in ("result", "error") if key in message}
            self.go_on(*self.waiting.pop(identity), answer)

    def go_on(self, identity: Any, invoke_id: str, tool: Tool, answer: Object | None) -> None:
        """Run a tool to its next reverse call, or to its end."""
        try:
            method, params = next(tool) if answer is None else tool.send(answer)
        except StopIteration as end:
            self.send({"id": identity, "result": {"success": True, "data": end.value}})
            return
        if not method:
            self.hanging[invoke_id] = identity
            return
        self.count += 1
        call = f"r{self.count}"
        self.waiting[call] = (identity, invoke_id, tool)
        context = {"invoke_id": invoke_id}
        self.send({"id": call, "method": method, "params": {**params, "context": context}})


def main() -> None:
    """Serve until stdin ends."""
    plugin = Plugin(cancels="--cancels" in sys.argv)
    for line in sys.stdin:
        plugin.take(json.loads(line))


if __name__ == "__main__":
    main()
