"""The least that can be called a plugin: twenty lines, the standard library, no checks."""

import json
import sys

MANIFEST = {"name": "bare", "version": "0.1.0", "tools": [{"name": "inline"}]}

for line in sys.stdin.buffer:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            result = {"protocolVersion": "2.0", "serverInfo": {"name": "bare"}, "capabilities": {}}
        case "describe":
            result = MANIFEST
        case "invoke":
            result = {"success": True, "data": message["params"]["arguments"]["text"]}
        case _:
            continue
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
    sys.stdout.flush()
