"""Server-sent events, to the letter of the WHATWG HTML standard, section 9.2.6.

`SseParser` turns the bytes of a stream, in whatever pieces they come, into events;
`encode_event` is its inverse. No byte is looked at again when the next piece comes,
and what is kept of an unfinished event is bounded. This module does not know what
the data says, who reconnects, or how long to wait before.
"""

from typing import Final, NoReturn

from msgspec import Struct

from executa_protocol.errors import PeerViolation, UsageError
from executa_protocol.limits import MAX_LINE

MESSAGE: Final = "message"
"""The type of an event that names none."""

_LF: Final = 0x0A  # as a number: testing for one byte of bytes costs seven times as much
_BOM: Final = b"\xef\xbb\xbf"
_RETRY_DIGITS: Final = 18
"""Digits of a reconnection time that are read as they are; more of them mean never."""
_RETRY_NEVER: Final = 10**_RETRY_DIGITS


class SseOverflow(PeerViolation):
    """An event, or one line of it, is longer than `limit` bytes; the parser takes no more.

    `events` are those that ended before it in the same chunk.
    """

    def __init__(self, limit: int, events: "list[SseEvent]") -> None:
        super().__init__(f"a server-sent event is longer than {limit:,} bytes")
        self.limit = limit
        self.events = events


class SseEvent(Struct, frozen=True, gc=False):
    """One dispatched event.

    `data` is as it came, its lines joined by LF: JSON is decoded from it without a
    detour through text. `id` is the last id that the stream gave, here or before.
    `retry` is the reconnection time in milliseconds, where this event set one.
    """

    data: bytes
    type: str = MESSAGE
    id: str = ""
    retry: int | None = None

    @property
    def text(self) -> str:
        """The data as the standard decodes it: bytes that are no UTF-8 become U+FFFD."""
        return self.data.decode("utf-8", "replace")


class SseParser:
    """Parses one stream; a reconnection takes a new parser.

    `last_event_id` is what a reconnection sends as ``Last-Event-ID``: it is set when an
    event ends, so that an unfinished one is asked for again. Pass the former one on.
    `retry` is the last reconnection time in milliseconds, or None.
    """

    __slots__ = (
        "_after_cr",
        "_data",
        "_event_retry",
        "_failed",
        "_held",
        "_id",
        "_start",
        "_tail",
        "_type",
        "last_event_id",
        "max_event_bytes",
        "retry",
    )

    def __init__(self, *, max_event_bytes: int = MAX_LINE, last_event_id: str = "") -> None:
        self.max_event_bytes = max_event_bytes
        self.last_event_id = last_event_id
        self.retry: int | None = None
        self._id = last_event_id
        self._type = ""
        self._data: list[bytes] = []
        self._event_retry: int | None = None
        self._held = 0  # bytes of the finished lines of the event that is not finished
        self._tail = bytearray()  # the line that is not finished
        self._start: bytes | None = b""  # the first bytes, until it is known that they are no BOM
        self._after_cr = False
        self._failed = False

    @property
    def buffered(self) -> int:
        """Bytes of the unfinished event: at most `max_event_bytes` between two calls."""
        return self._held + len(self._tail)

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes; give the events that they end.

        Raises `SseOverflow` when an event grows over `max_event_bytes`, and from then on.
        """
        if self._failed:
            raise SseOverflow(self.max_event_bytes, [])
        if self._start is not None:
            chunk = self._without_bom(chunk)
        if self._after_cr and chunk:
            # The CR has ended its line already; an LF after it belongs to it.
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        events: list[SseEvent] = []
        if self._tail or self._held:
            chunk = self._finish_event(chunk, events)
        # Here no event is begun, so that what stands before a blank line is whole events.
        end = chunk.rfind(b"\n\n")
        if end >= 0:
            self._whole_events(chunk[:end], events)
            chunk = chunk[end + 2 :]
        lines = chunk.split(b"\n")
        self._tail += lines.pop()
        for line in lines:
            self._line(line, events)
        if self.buffered > self.max_event_bytes:
            self._overflow(events)
        return events

    def _whole_events(self, region: bytes, events: list[SseEvent]) -> None:
        """Read events that begin and end in `region`, which lacks its last blank line.

        In the usual stream one event looks like the other: perhaps a type, always the
        same, and one line of data. Splitting at what they share leaves the data of each;
        a part with a line end in it holds something else and is read line by line.
        """
        head, kind = _usual_head(region)
        if not head or len(region) >= self.max_event_bytes:
            self._lines(region, events)
            return
        for part in region[len(head) :].split(b"\n\n" + head):
            if _LF in part:
                self._lines(head + part, events)
            else:
                events.append(SseEvent(part, kind, self._id))

    def _lines(self, region: bytes, events: list[SseEvent]) -> None:
        for line in region.split(b"\n"):
            self._line(line, events)
        self._dispatch(events)

    def _without_bom(self, chunk: bytes) -> bytes:
        start = (self._start or b"") + chunk
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._start = start
            return b""
        self._start = None
        return start.removeprefix(_BOM)

    def _finish_event(self, chunk: bytes, events: list[SseEvent]) -> bytes:
        """Feed lines to the event that an earlier chunk began; return what is left after it."""
        position = 0
        while self._tail or self._held:
            end = chunk.find(b"\n", position)
            if end < 0:
                break
            line = chunk[position:end]
            if self._tail:
                self._tail += line
                line = bytes(self._tail)
                self._tail.clear()
            self._line(line, events)
            position = end + 1
        return chunk[position:]

    def _line(self, line: bytes, events: list[SseEvent]) -> None:
        if not line:
            self._dispatch(events)
            return
        self._held += len(line) + 1
        if self._held > self.max_event_bytes:
            self._overflow(events)
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._type = value.decode("utf-8", "replace")
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            digits = value.lstrip(b"0")
            self.retry = int(digits or b"0") if len(digits) <= _RETRY_DIGITS else _RETRY_NEVER
            self._event_retry = self.retry

    def _dispatch(self, events: list[SseEvent]) -> None:
        # The id counts also for an event without data, which is not given.
        self.last_event_id = self._id
        if self._data:
            events.append(
                SseEvent(b"\n".join(self._data), self._type or MESSAGE, self._id, self._event_retry)
            )
            self._data = []
        self._type = ""
        self._event_retry = None
        self._held = 0

    def _overflow(self, events: list[SseEvent]) -> NoReturn:
        self._failed = True
        self._data = []
        self._held = 0
        self._tail.clear()
        raise SseOverflow(self.max_event_bytes, events)


def _usual_head(region: bytes) -> tuple[bytes, str]:
    """What stands before the data of the first event, and its type; empty if it is unusual."""
    if region.startswith(b"data: "):
        return b"data: ", MESSAGE
    if region.startswith(b"event: "):
        name, _, rest = region[7:].partition(b"\n")
        if rest.startswith(b"data: "):
            kind = name.decode("utf-8", "replace")
            return b"event: " + name + b"\ndata: ", kind or MESSAGE
    return b"", ""


def encode_event(
    data: bytes | str | None = None,
    *,
    event: str = "",
    event_id: str | None = None,
    retry: int | None = None,
    comment: str | None = None,
) -> bytes:
    """One event as a stream carries it; with a comment alone, a sign of life.

    Line ends in `data` become LF for the reader. Raises `UsageError` for what the reader
    would understand otherwise: a line end in another field, or NUL in `event_id`.
    """
    lines: list[bytes] = []
    if comment is not None:
        lines += [b": " + line for line in _lines(_utf8(comment))]
    if event:
        lines.append(b"event: " + _single("event", event))
    if event_id is not None:
        if "\0" in event_id:
            msg = "event_id: a reader ignores an id that holds NUL"
            raise UsageError(msg)
        lines.append(b"id: " + _single("event_id", event_id))
    if retry is not None:
        if retry < 0:
            msg = "retry: a reader ignores a negative reconnection time"
            raise UsageError(msg)
        lines.append(b"retry: %d" % retry)
    if data is not None:
        lines += [b"data: " + line for line in _lines(_utf8(data))]
    return b"\n".join(lines) + b"\n\n"


def _utf8(text: bytes | str) -> bytes:
    return text.encode("utf-8", "replace") if isinstance(text, str) else text


def _lines(text: bytes) -> list[bytes]:
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text.split(b"\n")


def _single(name: str, value: str) -> bytes:
    if "\n" in value or "\r" in value:
        msg = f"{name}: a line end would end the field"
        raise UsageError(msg)
    return _utf8(value)
