"""What a host can get wrong in the lines that it reads, and in what it makes of them."""

import json
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.conformance.bent_host.wire_fault import (
    LIMIT,
    Fault,
    Frame,
    is_invoke,
    members,
    read,
    write,
)


def deaf(hears: Callable[[bytes], bool]) -> type[Fault]:
    """A host that does not read lines of some kind."""

    class Deaf(Fault):
        def up(self, line: bytes) -> Iterable[bytes]:
            return [line] if hears(line) else []

    return Deaf


def fragile(bears: Callable[[bytes], bool]) -> type[Fault]:
    """A host that ends the plugin for a line of some kind."""

    class Fragile(Fault):
        def up(self, line: bytes) -> Iterable[bytes]:
            if not bears(line):
                self.end(1)
            return [line]

    return Fragile


def is_frame(line: bytes) -> bool:
    """Whether the line holds a JSON object."""
    return len(line) > LIMIT or read(line) is not None


class SplitsAtSeparators(Fault):
    """U+2028 ends a line."""

    def up(self, line: bytes) -> Iterable[bytes]:
        return [line.replace("\u2028".encode(), b"\n")]


class FirstMember(Fault):
    """Of a member that occurs twice the first one counts."""

    def up(self, line: bytes) -> Iterable[bytes]:
        def first(pairs: list[tuple[str, Any]]) -> Frame:
            return dict(reversed(pairs))

        try:
            return [write(json.loads(line, object_pairs_hook=first))]
        except ValueError:
            return [line]


class Truncates(Fault):
    """Long results are cut to fit."""

    def up(self, line: bytes) -> Iterable[bytes]:
        if len(line) < LIMIT:
            return [line]
        identity = json.loads(line)["id"]
        return [write({"jsonrpc": "2.0", "id": identity, "result": {"success": True, "data": ""}})]


def reverse(change: Callable[[Frame], Any]) -> type[Fault]:
    """A host that reads something else in the params of reverse calls."""

    class Changed(Fault):
        def to_host(self, frame: Frame) -> Iterable[Frame] | None:
            if "method" not in frame or "params" not in frame:
                return None
            change(frame["params"])
            return [frame]

    return Changed


class UnknownVersion(Fault):
    """2.1 is not known."""

    def to_host(self, frame: Frame) -> Iterable[Frame] | None:
        result = members(frame.get("result"))
        if result.get("protocolVersion") == "2.1":
            return [{**frame, "result": {**result, "protocolVersion": "9.9"}}]
        return None


class OncePerCall(Fault):
    """Each call gets a process of its own."""

    def up(self, line: bytes) -> Iterable[bytes]:
        if b'"success"' in line:
            self.write_up(line)
            self.end(0)
        return [line]


class EndsWithTimeouts(Fault):
    """A call that takes too long ends the plugin."""

    def change_down(self, frame: Frame) -> None:
        if is_invoke(frame):
            left = frame["params"]["context"]["deadline_ms"] / 1000 - time.time()
            timer = threading.Timer(max(0.0, left - 0.03), self.end, (1,))
            timer.daemon = True
            timer.start()


class Placid(Fault):
    """Health probes are taken for answered."""

    def to_plugin(self, frame: Frame) -> Iterable[Frame]:
        if frame.get("method") != "health":
            return [frame]
        result: Frame = {"status": "ready", "message": "", "details": {}}
        self.write_up(write({"jsonrpc": "2.0", "id": frame["id"], "result": result}))
        return []


class Copies(Fault):
    """Response files are copied and not deleted."""

    def to_host(self, frame: Frame) -> Iterable[Frame] | None:
        path = frame.get("__file_transport")
        if not isinstance(path, str):
            return None
        copy = Path(f"{path}.copy")
        copy.write_bytes(Path(path).read_bytes())
        copy.chmod(0o600)
        return [{**frame, "__file_transport": str(copy)}]


class AnswersPointers(Fault):
    """A pointer that answers nothing is taken for a request."""

    def to_host(self, frame: Frame) -> Iterable[Frame] | None:
        if frame.get("id") == "by-file":
            error = {"code": -32601, "message": "no such method"}
            self.write_down(write({"jsonrpc": "2.0", "id": "by-file", "error": error}))
        return None
