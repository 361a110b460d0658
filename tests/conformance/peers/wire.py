"""The wire as a plugin that keeps every rule reads and writes it: the standard library only.

`read` turns bytes into messages or into refusals. It is looser nowhere; the faults make it so.
"""

import json
import math
import re
from typing import Any, cast

Object = dict[str, Any]

MAX_LINE = 16 * 1024 * 1024
MAX_DEPTH = 128
HEAD = 2048
BOM = b"\xef\xbb\xbf"

_ID = re.compile(rb'"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.)*")')
_METHOD = re.compile(rb'"method"\s*:')
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')


class Refused(Exception):
    """A line that is no message. `answer` is the error to send, None if there is none."""

    def __init__(self, reason: str, answer: Object | None = None) -> None:
        super().__init__(reason)
        self.answer = answer


def error(identity: Any, code: int, message: str, **data: Any) -> Object:
    """An error answer."""
    body: Object = {"code": code, "message": message}
    if data:
        body["data"] = data
    return {"jsonrpc": "2.0", "id": identity, "error": body}


class Wire:
    """Reads lines. One method a rule, so that each can be broken alone."""

    def too_long(self, head: bytes, /) -> Refused:
        """What a line over the cap comes to."""
        return self.refusal(head, -32600, "the line is over the cap")

    def refusal(self, line: bytes, code: int, reason: str, /) -> Refused:
        """A refusal with the answer that the head of the line allows."""
        head = line[:HEAD]
        found = _ID.search(head)
        if found is None or not _METHOD.search(head):
            return Refused(reason)
        return Refused(reason, error(json.loads(found[1]), code, reason))

    def clean(self, line: bytes, /) -> bytes:
        """Without what may stand around a message."""
        return line.removeprefix(BOM).strip(b" \t\r\n")

    def check_depth(self, line: bytes, /) -> None:
        """Raise ValueError for more than 128 levels."""
        depth = 0
        for found in _BRACKETS.finditer(line):
            first = found[0][:1]
            depth += (first in b"[{") - (first in b"]}")
            if depth > MAX_DEPTH:
                raise ValueError("nested too deep")

    def number(self, text: str, /) -> float:
        """A number with a point or an exponent."""
        value = float(text)
        if math.isinf(value):
            raise ValueError("infinite")
        return value

    def constant(self, text: str, /) -> Any:
        """NaN and Infinity."""
        raise ValueError(text)

    def decode(self, line: bytes, /) -> Any:
        """The value on a line. Raises ValueError."""
        if line.count(b"[") + line.count(b"{") > MAX_DEPTH:
            self.check_depth(line)
        value = json.loads(self.text(line), parse_constant=self.constant, parse_float=self.number)
        self.check_text(value)
        return value

    def text(self, line: bytes, /) -> str:
        """The line's characters."""
        return line.decode()

    def check_text(self, value: Any, /) -> None:
        """Raise ValueError for lone surrogates."""
        json.dumps(value, ensure_ascii=False).encode()

    def read(self, line: bytes, /) -> Object | None:
        """The message on a line, or None for a blank one. Raises `Refused`."""
        bare = self.clean(line)
        if not bare:
            return None
        try:
            message = self.decode(bare)
        except (ValueError, RecursionError) as fault:
            raise self.refusal(bare, -32700, str(fault)) from None
        if not isinstance(message, dict):
            raise Refused("no object")
        return cast("Object", message)
