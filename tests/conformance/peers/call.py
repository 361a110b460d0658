"""The stranger's tools by name, an invoke in flight, and the ways in which one may end."""

import threading
from typing import Any

Object = dict[str, Any]


def _tool(name: str, *parameters: str) -> Object:
    rows = [{"name": each, "type": "string", "description": each} for each in parameters]
    return {"name": name, "description": f"Does {name}.", "parameters": rows}


TOOLS = [
    _tool("echo", "text"),
    _tool("fail", "reason"),
    _tool("ask", "prompt"),
    _tool("converse", "prompt"),
    _tool("keep", "text"),
    _tool("upload", "text"),
]


class Misuse(Exception):
    """An invoke that cannot be one: the code and the words of its error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class CallFailed(Exception):
    """A reverse call was answered with an error."""

    def __init__(self, body: Object) -> None:
        super().__init__(body["message"])
        self.body = body


class Cancelled(Exception):
    """The host has cancelled the invoke."""


class Call:
    """An invoke in flight."""

    def __init__(self, identity: Any, params: Object) -> None:
        self.identity = identity
        self.params = params
        self.context: Object = params.get("context") or {}
        self.invoke_id = self.context.get("invoke_id")
        self.cancelled = threading.Event()
