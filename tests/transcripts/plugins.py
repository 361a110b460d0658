"""A plugin for replays, in one file without our SDK; options make it misbehave.

Tools: ``echo`` answers its arguments with an id and a time of its own, ``twice`` makes two
reverse calls at once, in either order, ``die`` exits.
"""

import json
import sys
import time
import uuid
from typing import Any

OPTIONS = sys.argv[1:]
WORD = "tea" if "--changed" not in OPTIONS else "ice"


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(5 if "--other-exit" in OPTIONS else 0)
    return json.loads(line)


def invoke(number: int, params: dict[str, Any]) -> None:
    context = {"invoke_id": params["context"]["invoke_id"]}
    if (params["tool"] == "die" and "--immortal" not in OPTIONS) or "--dies" in OPTIONS:
        sys.stderr.write("I die now\n")
        sys.exit(3)
    if "--silent" in OPTIONS:
        return
    if "--chatty" in OPTIONS:
        send(method="storage/list", id="extra", params={"scope": "tool", "context": context})
    if params["tool"] == "twice":
        asked = [{"key": key, "scope": "tool", "context": context} for key in ("one", "two")]
        if "--reversed" in OPTIONS:
            asked.reverse()
        for params_of in asked:
            send(method="storage/get", id=uuid.uuid4().hex, params=params_of)
        for _ in asked:
            assert "result" in read()
    data = {
        "word": WORD,
        "id": uuid.uuid4().hex,
        "at": time.time(),
        "arguments": params.get("arguments"),
        "credentials": params["context"].get("credentials"),
    }
    send(id=number, result={"success": True, "data": data})
    if "--more" in OPTIONS:
        send(id=number, result={"success": True})


def main() -> None:
    names = ("echo", "twice", "die")
    tools: list[dict[str, Any]] = [
        {"name": name, "description": name, "parameters": []} for name in names
    ]
    while True:
        message = read()
        number, method = message.get("id"), message.get("method")
        if method == "initialize":
            info = {"name": "p", "version": "1"}
            offer: dict[str, Any] = {"protocolVersion": "2.0", "server_info": info}
            send(id=number, result={**offer, "capabilities": {"storage": {}}})
        elif method == "describe":
            manifest: dict[str, Any] = {
                "name": "p", "version": "1", "tools": tools, "host_capabilities": ["aps.kv"],
                "credentials": [{"name": "API_KEY", "description": "a key"}],
            }  # fmt: skip
            send(id=number, result=manifest)
        elif method == "invoke":
            assert isinstance(number, int)
            invoke(number, message["params"])


if __name__ == "__main__":
    main()
