"""Faults of lines, ids and content."""

import json
import os
from typing import Any

from tests.conformance.peers.faults import fault, line_of, message_of, renamed, without
from tests.conformance.peers.plugin import Plugin
from tests.conformance.peers.wire import MAX_LINE, Refused, Wire

Object = dict[str, Any]


def leave(*_: Any) -> Any:
    """End at once, as a crash does."""
    os._exit(3)


# --- What is written ---------------------------------------------------------------------------

message_of("WIRE-001:jsonrpc-is-there", lambda message: without(message, "jsonrpc"))
message_of("WIRE-006:jsonrpc-is-2.0", lambda message: {**message, "jsonrpc": 2.0})


@fault("WIRE-002:ids-are-integers-or-strings")
def _(plugin: Plugin) -> None:
    plugin.on_message = lambda it: {**it, "id": None} if "method" in it and "id" in it else it

    def to_all(message: Object) -> None:
        for event, answer in plugin.waiting.values():
            answer.update(message)
            event.set()

    plugin.take_answer = to_all


message_of(
    "WIRE-003:no-error-beside-a-result",
    lambda message: {**message, "error": None} if "result" in message else message,
)
message_of(
    "WIRE-004:no-result-beside-an-error",
    lambda message: {**message, "result": None} if "error" in message else message,
)


@fault("WIRE-005:pointers-are-spelled-out")
def _(plugin: Plugin) -> None:
    plugin.spills = lambda size: bool(plugin.offered)
    plugin.on_message = lambda it: renamed(it, "__file_transport", "__trans_file__")


message_of(
    "WIRE-007:ids-keep-their-type",
    lambda message: message if "method" in message else {**message, "id": str(message["id"])},
)


@fault("WIRE-008:the-last-line-ends")
def _(plugin: Plugin) -> None:
    plugin.at_end = lambda: (plugin.out.write(b'{"jsonrpc":"2.0"'), plugin.out.flush())[1]


line_of("WIRE-009:lines-are-objects-in-utf-8", lambda line: b"\xef\xbb\xbf" + line)
line_of("WIRE-010:stdout-is-for-frames", lambda line: b"DEBUG: sending\n" + line)


@fault("WIRE-011:lines-are-within-the-cap")
def _(plugin: Plugin) -> None:
    result: Object = {"status": "ready", "message": "x" * MAX_LINE}
    plugin.methods["health"] = lambda _: result


@fault("WIRE-012:numbers-and-texts-are-json")
def _(plugin: Plugin) -> None:
    plugin.methods["health"] = lambda _: {"status": "ready", "details": {"load": float("nan")}}


@fault("WIRE-013:nesting-is-within-the-cap")
def _(plugin: Plugin) -> None:
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    plugin.methods["health"] = lambda _: {"status": "ready", "details": {"deep": deep}}


line_of("WIRE-014:no-second-answer", lambda line: line if b'"method"' in line else line + line)
line_of(
    "WIRE-134:every-request-is-answered-once",
    lambda line: line + line if b"-32601" in line else line,
)


@fault("WIRE-015:open-ids-differ")
def _(plugin: Plugin) -> None:
    # The second line stands for a second call under the same id.
    plugin.on_line = lambda line: line + line if b'"method": "storage/get"' in line else line


line_of(
    "WIRE-016:answers-have-a-request",
    lambda line: line + b'{"jsonrpc":"2.0","id":"made-up","result":{}}\n',
)
line_of(
    "WIRE-017:methods-are-strings",
    lambda line: line + b'{"jsonrpc":"2.0","id":"r-odd","method":17}\n',
)
line_of("WIRE-018:answers-have-one-content", lambda line: line + b'{"jsonrpc":"2.0","id":9999}\n')
line_of(
    "WIRE-019:errors-have-code-and-message",
    lambda line: line.replace(b"-32601", b'"-32601"'),
)


@fault("WIRE-020:no-pointer-without-the-offer")
def _(plugin: Plugin) -> None:
    plugin.spills = lambda size: plugin.offered is not None and size > 256 * 1024


# --- What is read ------------------------------------------------------------------------------


@fault("WIRE-101:crlf-ends-a-line")
def _(plugin: Plugin) -> None:
    plugin.wire.clean = lambda line: leave() if line.endswith(b"\r\n") else line.strip()


@fault("WIRE-103:blank-lines-are-ignored")
def _(plugin: Plugin) -> None:
    read = plugin.wire.read
    plugin.wire.read = lambda line: read(line) if line.strip() else leave()


@fault("WIRE-103:white-space-between-tokens-is-ignored")
def _(plugin: Plugin) -> None:
    read = plugin.wire.read
    plugin.wire.read = lambda line: read(line) if b" :" not in line else None


@fault("WIRE-105:a-byte-order-mark-is-stripped")
def _(plugin: Plugin) -> None:
    plugin.wire.clean = lambda line: line.strip(b" \t\r\n")


@fault("WIRE-107:only-lf-ends-a-line")
def _(plugin: Plugin) -> None:
    read = plugin.wire.read

    def split(line: bytes) -> Object | None:
        first, *_ = line.decode(errors="replace").splitlines()
        return read(first.encode())

    plugin.wire.read = split


@fault("WIRE-109:what-is-no-object-is-skipped")
def _(plugin: Plugin) -> None:
    plugin.refuse = leave


@fault("WIRE-111:a-broken-request-is-answered-under-its-id")
def _(plugin: Plugin) -> None:
    plugin.wire.refusal = lambda line, code, reason: Refused(reason)


@fault("WIRE-115:a-large-request-is-served")
def _(plugin: Plugin) -> None:
    read = plugin.wire.read
    plugin.wire.read = lambda line: read(line) if len(line) <= 65_536 else leave()


@fault("WIRE-118:a-request-over-the-cap-is-answered")
def _(plugin: Plugin) -> None:
    plugin.wire.too_long = lambda head: Refused("too long")


@fault("WIRE-123:unusual-ids-are-echoed")
def _(plugin: Plugin) -> None:
    plugin.on_message = lambda it: it if "method" in it else {**it, "id": it["id"] or None}


@fault("WIRE-143:large-ids-are-exact")
def _(plugin: Plugin) -> None:
    def rounded(message: Object) -> Object:
        identity = message.get("id")
        return {**message, "id": int(float(identity))} if isinstance(identity, int) else message

    plugin.on_message = rounded


@fault("WIRE-125:an-answer-to-nobody-is-dropped")
def _(plugin: Plugin) -> None:
    plugin.take_answer = plugin.send


@fault("WIRE-128:invalid-content-spoils-its-frame-only")
def _(plugin: Plugin) -> None:
    plugin.wire.text = lambda line: line.decode(errors="replace")


@fault("WIRE-130:deep-nesting-does-no-harm")
def _(plugin: Plugin) -> None:
    plugin.wire.check_depth = leave


@fault("WIRE-132:the-last-of-two-members-counts")
def _(plugin: Plugin) -> None:
    class First(Wire):
        def decode(self, line: bytes) -> Any:
            return json.loads(line, object_pairs_hook=lambda pairs: dict(reversed(pairs)))

    plugin.wire = First()


@fault("WIRE-137:an-unknown-method-is-answered-with-32601")
def _(plugin: Plugin) -> None:
    for method in ("kit/unknown", "tools/list", ""):
        plugin.methods[method] = lambda _: {}


@fault("WIRE-139:notifications-are-not-answered")
def _(plugin: Plugin) -> None:
    plugin.take_notification = lambda message: plugin.send(
        {"jsonrpc": "2.0", "id": None, "result": {}}
    )


@fault("WIRE-141:each-answer-is-flushed")
def _(plugin: Plugin) -> None:
    held: list[bytes] = []

    def one_late(line: bytes) -> bytes:
        held.append(line)
        return held.pop(0) if len(held) > 1 else b""

    plugin.on_line = one_late


@fault("WIRE-144:unknown-members-are-ignored")
def _(plugin: Plugin) -> None:
    known = {"jsonrpc", "id", "method", "params"}
    take = plugin.take_request
    plugin.take_request = lambda message: None if message.keys() - known else take(message)
