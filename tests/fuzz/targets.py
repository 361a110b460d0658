"""What is fuzzed: each target takes any bytes, and returns unless something is wrong.

A finding is whatever a target raises: an exception that is none of the package's own,
or an assertion about what must hold for any input.
"""

import asyncio
import typing
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Raw, Struct

from executa_protocol import codec, handshake, transcript
from executa_protocol.aio.handler import Diagnostic
from executa_protocol.aio.peer import Peer
from executa_protocol.aio.transport import Receiver
from executa_protocol.envelope import Malformed, Message, parse, parse_oversized
from executa_protocol.errors import DecodeFailure, ExecutaError, StrictRefusal
from executa_protocol.frames import Frame, HostToolCall
from executa_protocol.framing import LineSplitter, Oversized
from executa_protocol.head import read_head
from executa_protocol.limits import HEAD_BYTES, KIB, MIN_LINE_CAP
from executa_protocol.manifest import Manifest
from executa_protocol.manifest_reading import read_manifest
from executa_protocol.methods import METHODS
from executa_protocol.methods.agent_results import (
    RunResult,
    read_create_result,
    read_history_result,
    read_run_result,
)
from executa_protocol.methods.core import read_health_result
from executa_protocol.methods.files import read_download_url_result, read_upload_begin_result
from executa_protocol.methods.invoke import read_invoke_result
from executa_protocol.methods.sampling import read_sampling_result
from executa_protocol.normaliser import FrameNormaliser
from executa_protocol.readings import STRICT, TOLERANT, Reader
from executa_protocol.runs import read_run_answer
from executa_protocol.sse import SseEvent, SseOverflow, SseParser
from tests.fuzz.making import Maker, expand, pieces
from tests.support import reference_json

Target = Callable[[bytes], None]

OWN: Final = (DecodeFailure, StrictRefusal)
"""What a reader may raise."""


def names_of(kinds: Iterable[Any]) -> list[str]:
    """Every member name and word of these types, and of those within them."""
    found: dict[str, None] = {}
    seen: set[Any] = set()
    waiting = list(kinds)
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, str):
            found[kind] = None
        elif isinstance(kind, type) and issubclass(kind, Struct):
            if kind not in seen:
                seen.add(kind)
                found.update(dict.fromkeys(kind.__struct_encode_fields__))
                waiting += typing.get_type_hints(kind).values()
        else:
            waiting += typing.get_args(kind)
    return list(found)


# --- Lines ------------------------------------------------------------------------------------


def split(chunks: list[bytes]) -> list[bytes | Oversized]:
    """The lines of a stream that came in these chunks."""
    splitter = LineSplitter(MIN_LINE_CAP)
    lines: list[bytes | Oversized] = []
    for chunk in chunks:
        lines += splitter.feed(chunk)
        assert splitter.held <= MIN_LINE_CAP
    rest = splitter.eof()
    return lines if rest is None else [*lines, rest]


def bytewise(data: bytes) -> list[bytes]:
    """One byte at a time."""
    return [data[index : index + 1] for index in range(len(data))]


def fuzz_lines(data: bytes) -> None:
    """Any bytes in any pieces: the same lines, each a message, malformed or blank."""
    count, stream = (data[0], expand(data[1:])) if data else (0, b"")
    lines = split([stream])
    assert split(pieces(stream, count)) == lines
    assert split(bytewise(stream)) == lines
    for line in lines:
        if isinstance(line, Oversized):
            assert line.size > MIN_LINE_CAP
            assert parse_oversized(line, MIN_LINE_CAP).symbol
            continue
        for reader in (TOLERANT, STRICT):
            found = parse(line, reader)
            if isinstance(found, Message):
                assert found.id is not UNSET or found.method is not UNSET
                assert reference_json.accepts(line)
            elif isinstance(found, Malformed):
                assert len(found.reason) < 1000
            else:
                assert not line.strip()


def fuzz_messages(data: bytes) -> None:
    """Objects of the members of a message, in both modes."""
    names = ["jsonrpc", "id", "method", "params", "result", "error", "2.0", "1"]
    line = Maker(data, [*names, "__file_transport", "__trans_file__"]).object()
    strict, tolerant = parse(line, STRICT), parse(line, TOLERANT)
    assert strict is not None
    assert tolerant is not None
    if isinstance(strict, Message):
        assert msgspec.json.encode(tolerant) == msgspec.json.encode(strict)
    if isinstance(tolerant, Message):
        value = reference_json.load(line)
        for name in ("id", "method"):
            found = getattr(tolerant, name)
            assert found == value.get(name, UNSET), line
            assert found is UNSET or type(found) is type(value[name])
    fuzz_head(line)


def fuzz_head(data: bytes) -> None:
    """The head of a line: as a JSON parser reads it, where one can."""
    line = expand(data)
    for text in (line, b'{"id":7,' + line, b'{"a":' + line + b',"id":7}'):
        head = read_head(text)
        assert head.id is UNSET or type(head.id) in (int, str)
        if len(text) <= HEAD_BYTES and reference_json.accepts(text):
            value = reference_json.load(text)
            members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
            identity = members.get("id")
            proper = type(identity) in (int, str)
            assert head.id == (identity if proper else UNSET), text
            assert type(head.id) is type(identity) or not proper
            assert head.is_request == ("method" in members), text


class _Skips(Struct):
    known: int = 0


_SKIPS: Final = msgspec.json.Decoder(_Skips)


def fuzz_content(data: bytes) -> None:
    """The check of a line and the decoder after it accept what a plain parser accepts."""
    words = ["a", "\\u00e9", "\\ud83e\\udd9c", "\\n", "\\u0000"]
    texts = (expand(data), Maker(data[1:], words).value()) if data else (b"",)
    for text in texts:
        try:
            codec.check_content(text)
            value = codec.decode_any(text)
        except DecodeFailure:
            assert not reference_json.accepts(text), text
        else:
            assert value == reference_json.load(text), text
            codec.check_content(codec.encode(value))
        # Above 4 KiB a line is scanned, and what no decoder wants is skipped.
        line = b'{"padding":"%b","value":%b}' % (b"x" * 4 * KIB, text)
        accepted = True
        try:
            codec.check_content(line)
            codec.decode(line, _SKIPS)
        except DecodeFailure:
            accepted = False
        assert accepted == reference_json.accepts(line), line[4 * KIB :]


# --- A peer -----------------------------------------------------------------------------------


class _Wire:
    """A transport that keeps what is written, and whose other side is the fuzzer."""

    queued = 0
    taken = 0
    congested = False

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.outgoing = self
        self.frames: list[bytes] = []

    def start(self, receiver: Receiver) -> None: ...
    def poll(self) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def close_writing(self) -> None: ...
    def close(self) -> None: ...

    def write(self, frame: bytes) -> None:
        self.frames.append(frame)

    def withdraw(self, position: int) -> bool:
        return position < 0


class _Owner:
    """Answers every other request."""

    def __init__(self) -> None:
        self.peer: Peer | None = None
        self.heard: list[str] = []

    def on_request(self, request: Message) -> None:
        self.heard.append(f"request {request.id!r} {request.method!r}")
        if self.peer is not None and len(self.heard) % 2:
            identity: Any = request.id
            self.peer.reply(identity, b"null" if request.params is UNSET else bytes(request.params))

    def on_notification(self, notification: Message) -> None:
        self.heard.append(f"notification {notification.method!r}")

    def on_diagnostic(self, diagnostic: Diagnostic) -> None:
        self.heard.append(f"{diagnostic.kind} {diagnostic.message}")

    def on_closed(self, reason: Exception | None) -> None:
        self.heard.append("closed")


def _converse(chunks: list[bytes], *, strict: bool, server: bool) -> list[str]:
    """What a peer makes of a stream: what it hears, what it says, how its calls end."""
    wire, owner = _Wire(), _Owner()
    peer = Peer(
        wire,
        owner,
        strict=strict,
        max_line=MIN_LINE_CAP,
        answer_unreadable=server,
        prefix="p" if server else "",
    )
    owner.peer = peer
    calls = [peer.call("x") for _ in range(3)]
    for chunk in chunks:
        peer.data_received(chunk)
    peer.connection_lost(None)
    assert peer.pending_count == peer.open_requests == 0
    outcomes: list[str] = []
    for call in calls:
        fault = call.future.exception()
        assert fault is None or isinstance(fault, ExecutaError), fault
        outcomes.append(repr(fault) if fault else repr(bytes(call.future.result())))
    for frame in wire.frames:
        assert frame.endswith(b"\n")
        assert frame.count(b"\n") == 1
        assert len(frame) <= MIN_LINE_CAP + 1
        assert isinstance(parse(frame, STRICT if not frame.count(b'"id":') else TOLERANT), Message)
    return [*owner.heard, *map(repr, wire.frames), *outcomes]


async def _compare(data: bytes) -> None:
    flags, count = data[0], data[1]
    names = ["jsonrpc", "id", "method", "params", "result", "error", "2.0", "p1", "p2"]
    maker = Maker(data[2:], [*names, "__file_transport"])
    stream = expand(data[2:])
    if flags & 1:
        stream = b"\n".join([maker.object() for _ in range(1 + flags % 5)]) + b"\n" + stream[:50]
    options = {"strict": bool(flags & 2), "server": bool(flags & 4)}
    whole = _converse([stream], **options)
    assert _converse(pieces(stream, count), **options) == whole
    assert _converse(bytewise(stream), **options) == whole


_loop: list[asyncio.AbstractEventLoop] = []


def fuzz_peer(data: bytes) -> None:
    """A whole peer: nothing raised, all answered, no call left, the same in any pieces."""
    if len(data) < 2:
        return
    if not _loop:
        _loop.append(asyncio.new_event_loop())
    _loop[0].run_until_complete(_compare(data))


def close_loop() -> None:
    """Let go of what `fuzz_peer` keeps."""
    while _loop:
        _loop.pop().close()


# --- Streams ----------------------------------------------------------------------------------


def _events(chunks: list[bytes], cap: int) -> tuple[list[SseEvent], bool, str, int | None]:
    parser = SseParser(max_event_bytes=cap)
    events: list[SseEvent] = []
    try:
        for chunk in chunks:
            events += parser.feed(chunk)
            assert parser.buffered <= cap
    except SseOverflow as overflow:
        return [*events, *overflow.events], True, "", None
    return events, False, parser.last_event_id, parser.retry


def fuzz_sse(data: bytes) -> None:
    """Server-sent events: the same in any pieces, bounded, and nothing but an overflow raised."""
    if len(data) < 2:
        return
    fields = (b"data: ", b"\n", b"\n\n", b"event: ", b"id: ", b"retry: ", b"\r\n", b"\r", b":")
    stream = b"".join(
        fields[byte % len(fields)] if byte >= 0x80 else bytes((byte,)) for byte in data[2:]
    )
    cap = 1 + data[0] * 4
    whole = _events([stream], cap)
    in_pieces, one_by_one = _events(pieces(stream, data[1]), cap), _events(bytewise(stream), cap)
    assert in_pieces == one_by_one == whole


FRAME_WORDS: Final = [
    "event", "delta", "tool_call", "tool_result", "final", "text", "name", "args", "call_id",
    "ok", "data", "usage", "cancelled", "executor", "host", "seq", "stream_id", "done", "token",
    "message", "content", "role", "assistant", "complete", "task_complete", "sse", "payload",
    "type", "choices", "delta", "tool_calls", "index", "function", "arguments", "id",
    "finish_reason", "stop", "error", "error_type", "code", "run_meta", "end", "keepalive",
    "task_cancelled", "reason", "[DONE]",
]  # fmt: skip


def fuzz_frames(data: bytes) -> None:
    """Frames of a run in any dialect: own faults only, one line each, at most one final frame."""
    if not data:
        return
    maker = Maker(data[1:], FRAME_WORDS)
    kinds = (Frame, Frame | HostToolCall, None)
    raws: list[bytes] = []
    for index in range(1 + data[0] % 6):
        kind = kinds[(data[0] + index) % 3]
        raws.append(maker.object() if kind is None else maker.of(kind))
    if data[0] & 0x80:
        raws.append(expand(data[1:]))
    for reader in (Reader(), STRICT):
        normaliser = FrameNormaliser(reader)
        given: list[Any] = []
        for raw in raws:
            try:
                given += normaliser.feed(raw)
            except OWN:
                continue
        given += normaliser.close()
        assert normaliser.ended
        assert sum(frame.event == "final" for frame in given) <= 1
        for frame in given:
            assert b"\n" not in frame.raw
            codec.check_content(frame.raw)
            try:
                frame.read()
            except DecodeFailure:
                raise AssertionError(frame.raw) from None
        answer = b'{"frames":[' + b",".join(frame.raw for frame in given) + b"]}"
        assert read_run_answer(answer).count == len(given)


# --- Content ----------------------------------------------------------------------------------


def fuzz_manifest(data: bytes) -> None:
    """A manifest: faults with paths or a manifest that is read again, strictly, as the same."""
    maker = Maker(data[1:], _MANIFEST_WORDS)
    text = maker.of(Manifest) if data[:1] < b"\xc0" else maker.object()
    if data[:1] > b"\xf0":
        text = expand(data[1:])
    for reader in (TOLERANT, STRICT):
        try:
            manifest = read_manifest(text, reader=reader, fallback_name="tool-x")
        except OWN:
            continue
        again = codec.encode(manifest)
        assert codec.encode(read_manifest(again)) == again
        if reader is STRICT:
            assert codec.encode(read_manifest(again, reader=STRICT)) == again


_MANIFEST_WORDS: Final = [
    *names_of([METHODS["describe"].result]),
    "input_schema", "hostCapabilities", "properties", "anyOf", "items_type", "str", "int", "aps",
    "aps.kv", "aps.files", "llm.sample", "llm.complete", "storage.user", "UPPER_SNAKE", "user",
    "rw", "manifest",
]  # fmt: skip

_READS: Final = [info for info in METHODS.values() if info.read is not None]
_PARAM_WORDS: Final = {
    info.name: [
        *names_of([info.params]),
        "submode", "expires_in", "expected_bytes", "system", "prompt", "max_tokens", "auto",
        "agent", "fixed", "text", "user", "tool", "a/b", "../c", "json_schema", "schema", "url",
    ]
    for info in _READS
}  # fmt: skip


def fuzz_params(data: bytes) -> None:
    """Params of every method: own faults only; what was read is strictly read again as the same."""
    if not data:
        return
    info = _READS[data[0] % len(_READS)]
    read: Any = info.read
    maker = Maker(data[1:], _PARAM_WORDS[info.name])
    text = maker.of(info.params) if data[0] < 0xC0 else maker.object()
    if data[0] > 0xF0:
        text = expand(data[1:])
    if not reference_json.accepts(text):  # it would not have come through `check_content`
        return
    for reader in (TOLERANT, STRICT):
        try:
            params = read(Raw(text), reader)
        except OWN:
            continue
        again = codec.encode(params)
        assert codec.encode(read(again, STRICT)) == again, text


_RESULTS: Final[list[tuple[Callable[..., Any], Any]]] = [
    (read_health_result, METHODS["health"].result),
    (read_invoke_result, METHODS["invoke"].result),
    (read_sampling_result, METHODS["sampling/createMessage"].result),
    (read_create_result, METHODS["agent/session.create"].result),
    (read_run_result, RunResult | list[Frame]),
    (read_history_result, list[str]),
    (read_upload_begin_result, METHODS["files/upload_begin"].result),
    (read_download_url_result, METHODS["files/download_url"].result),
]
_RESULT_WORDS: Final = [
    *names_of(kind for _, kind in _RESULTS), *FRAME_WORDS, "messages", "get_url", "presigned_url",
    "success", "healthy", "ok", "frames",
]  # fmt: skip


def fuzz_results(data: bytes) -> None:
    """Results of the methods that are read in several spellings: own faults only."""
    if not data:
        return
    read, kind = _RESULTS[data[0] % len(_RESULTS)]
    maker = Maker(data[1:], _RESULT_WORDS)
    text = maker.of(kind) if data[0] < 0xA0 else maker.object()
    if data[0] > 0xE0:
        text = maker.value()
    if not reference_json.accepts(text):
        return
    for reader in (TOLERANT, STRICT):
        try:
            codec.encode(read(text, reader))
        except OWN:
            continue
    try:
        answer = read_run_answer(text)
    except OWN:
        return
    assert answer.count == len(answer.frames) == len(list(answer))
    assert answer.final_frame is None or answer.final_frame["event"] == "final"
    assert read_run_answer(answer.encode()).count == answer.count


def fuzz_handshake(data: bytes) -> None:
    """Answers to initialize, and offers: own faults only, and keys that are names."""
    words = [
        "protocolVersion", "2.0", "2.1", "1.1", "server_info", "serverInfo", "capabilities", "name",
        "client_capabilities", "version", "sampling", "agent", "storage",
    ]  # fmt: skip
    text = Maker(data, words).object()
    texts = (text, b'{"protocolVersion":"2.0",' + text[1:], expand(data))
    for answer in texts:
        for reader in (TOLERANT, STRICT):
            try:
                found = handshake.read_answer(answer, reader)
            except OWN:
                continue
            assert found.is_v2
            assert found.keys == set(found.options)
        try:
            offered = handshake.read_offer(answer)
        except DecodeFailure:
            continue
        wanted = handshake.plugin_answer("t", "1", offered, ["sampling", "agent"])
        assert handshake.read_answer(codec.encode(wanted), STRICT).keys <= set(offered)


_EVENT_WORDS: Final = [
    *names_of(typing.get_args(transcript.AnyEvent)),
    *(str(kind.__struct_config__.tag) for kind in typing.get_args(transcript.AnyEvent)),
    "event",
]


def fuzz_transcript(data: bytes) -> None:
    """Lines of a transcript: an event that is written again as the same, or an own fault."""
    maker = Maker(data, _EVENT_WORDS)
    for line in (maker.of(transcript.AnyEvent), maker.object(), expand(data)):
        try:
            event = transcript.decode_event(line)
        except DecodeFailure:
            continue
        again = transcript.encode_event(event)
        assert transcript.encode_event(transcript.decode_event(again)) == again


TARGETS: Final[dict[str, Target]] = {
    "lines": fuzz_lines,
    "messages": fuzz_messages,
    "head": fuzz_head,
    "content": fuzz_content,
    "peer": fuzz_peer,
    "sse": fuzz_sse,
    "frames": fuzz_frames,
    "manifest": fuzz_manifest,
    "params": fuzz_params,
    "results": fuzz_results,
    "handshake": fuzz_handshake,
    "transcript": fuzz_transcript,
}
"""Every target by its name."""
