"""A plugin with one fault, chosen by its first argument; without one it is well.

Plain Python over stdin and stdout, one loop, as many plugins of the field are.
"""

import json
import signal
import sys
import time
from typing import Any

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
COLD_SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
PARAMETERS = [{"name": "text", "type": "string", "description": "Anything."}]
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

HELD: list[str] = []
"""What a buffer of blocks keeps until it is full, or the end."""

Message = dict[str, Any]


def send(message: Message) -> None:
    message = {"jsonrpc": "2.0", **message}
    if FAULT == "indented":
        text = json.dumps(message, indent=2)
    elif FAULT == "headers":
        body = json.dumps(message)
        text = f"Content-Length: {len(body)}\r\n\r\n{body}"
    else:
        text = json.dumps(message)
    if FAULT == "buffered":
        HELD.append(text)
        return
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def manifest() -> Message:
    tool: Message = {"name": "echo", "description": "Give it back.", "parameters": PARAMETERS}
    if FAULT == "input_schema":
        del tool["parameters"]
        tool["input_schema"] = SCHEMA
    if FAULT == "json_schema":
        tool["parameters"] = SCHEMA
    if FAULT == "final":
        tool["name"] = "deleteEverything"
    known: Message = {
        "name": "faulty",
        "version": "1.0",
        "description": "For tests.",
        "host_capabilities": ["aps.kv"],
        "tools": [tool],
    }
    if FAULT == "undeclared":
        known["host_capabilities"] = []
    if FAULT == "quiet":
        known["host_capabilities"] = ["llm.sample"]
    if FAULT == "no_tools":
        del known["tools"]
    return {"manifest": known} if FAULT == "wrapped" else known


def reverse_call(params: Message) -> Any:
    """Ask for a key, and wait for the answer as a plugin without threads does."""
    context = {"invoke_id": params["context"]["invoke_id"]}
    asked = {"key": "k", "scope": "user", "context": context}
    send({"id": "r1", "method": "storage/get", "params": asked})
    while FAULT == "deaf":
        signal.pause()
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "r1":
            return message.get("result")
    return None


def invoke(identity: Any, params: Message) -> None:
    if FAULT == "prints":
        sys.stdout.write("working on it...\n")
    if FAULT == "dies":
        sys.exit("it was too much")
    if FAULT != "quiet":
        reverse_call(params)
    result: Message = {"success": True, "data": {"echo": params["arguments"]}}
    if FAULT == "no_success":
        del result["success"]
    if FAULT == "bare":
        result = {"echo": 1}
    if FAULT == "fails":
        result = {"success": False, "error": "the example is no good"}
    if FAULT == "other_id":
        identity = f"{identity}-answer"
    if FAULT == "error":
        send({"id": identity, "error": {"code": -32603, "message": "KeyError: 'text'"}})
        return
    send({"id": identity, "result": result})


def serve(message: Message) -> None:
    identity, method = message.get("id"), message.get("method")
    if method == "initialize" and FAULT == "v1":
        send({"id": identity, "error": {"code": -32601, "message": "Method not found"}})
    elif method == "initialize":
        server = {"name": "faulty", "version": "1.0"}
        key = "serverInfo" if FAULT == "spelling" else "server_info"
        send({"id": identity, "result": {
            "protocolVersion": "2.0", key: server, "capabilities": {}}})  # fmt: skip
    elif method == "describe":
        send({"id": identity, "result": manifest()})
    elif method == "health":
        status = "error" if FAULT == "unwell" else "ready"
        send({"id": identity, "result": {"status": status}})
    elif method == "invoke":
        invoke(identity, message["params"])
    if FAULT == "one_answer" or (FAULT == "one_call" and method == "invoke"):
        sys.exit(0)


def main() -> None:
    if FAULT == "at_once":
        sys.exit("no licence was found")
    if FAULT == "no_module":
        __import__("a_module_that_nobody_has")
    if FAULT == "banner":
        sys.stdout.write("Faulty 1.0 is ready!\n")
    if FAULT == "silent":
        sys.stdin.read()
        return
    if FAULT == "cold":
        time.sleep(COLD_SECONDS)
    for line in sys.stdin:
        serve(json.loads(line))
    sys.stdout.write("".join(f"{text}\n" for text in HELD))
    sys.stdout.flush()
    while FAULT == "stays":
        signal.pause()


if __name__ == "__main__":
    main()
