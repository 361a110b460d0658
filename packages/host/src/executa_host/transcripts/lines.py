"""The lines of a transcript: made of what a host saw, redacted, numbered. One thread's work.

Owns the order of numbers and what is kept of a long line. It knows no file and no queue.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct

from executa_host.transcripts.frames import Correlation
from executa_host.transcripts.redaction import Redactor, is_secret_name
from executa_host.transcripts.secrets import Secrets
from executa_protocol import codec, transcript
from executa_protocol.envelope import Message
from executa_protocol.errors import DecodeFailure, NotEncodable
from executa_protocol.limits import MAX_LINE
from executa_protocol.transcript import AnyEvent, End, Frame, Header, Stamp

LINE_KEPT: Final = MAX_LINE
"""Bytes of a line or response file that is kept whole: every line that the wire allows."""


class Process(Struct, frozen=True):
    """Whose lines they are."""

    plugin: str
    user_id: str
    launch: int


class Writer:
    """Makes the lines of one recording."""

    def __init__(self, redactor: Redactor, secrets: Secrets) -> None:
        self._redactor = redactor
        self._secrets = secrets
        self._count = 0
        self._last = 0.0
        self._connections: dict[Process, Correlation] = {}

    # --- Secrets -----------------------------------------------------------------------

    def know(self, name: str, value: str) -> Iterator[bytes]:
        """From now on `value` stands nowhere."""
        self._secrets.add(name, value)
        yield from ()

    def know_token(self, name: str, value: str) -> Iterator[bytes]:
        """As `know`, for one of many."""
        self._secrets.add_token(name, value)
        yield from ()

    # --- Lines -------------------------------------------------------------------------

    def header(self, header: Header) -> Iterator[bytes]:
        """The first line."""
        header.command = tuple(self._words(header.command))
        yield codec.encode(header)

    def event(self, t: float, launch: int, event: AnyEvent) -> Iterator[bytes]:
        """An event that the host told."""
        if isinstance(event, transcript.Exited):
            self._connections.pop(Process(event.plugin, event.user_id, launch), None)
        try:
            text = transcript.encode_event(event).decode()
        except NotEncodable:  # a raw member over several lines, as a response file may bring
            text = msgspec.json.format(msgspec.json.encode(event), indent=-1).decode()
        if isinstance(event, transcript.Noise):
            # A sample that was cut may end within a secret, and need not be JSON.
            noise = msgspec.structs.replace(
                event,
                message=self._redactor.text(event.message, cut=True),
                sample=self._redactor.text(event.sample, cut=True),
            )
            text = transcript.encode_event(noise).decode()
        elif isinstance(event, transcript.Stderr):
            line = self._redactor.text(event.line, cut=True)
            text = transcript.encode_event(msgspec.structs.replace(event, line=line)).decode()
        yield self._stamped(t, launch, self._redactor.json(text))

    def frame(
        self, t: float, at: float, process: Process, line: bytes, inward: bool
    ) -> Iterator[bytes]:
        """A line of the wire; `inward` says that it went to the plugin."""
        line = line.strip(b"\r\n")
        frame = Frame(
            at=at,
            plugin=process.plugin,
            user_id=process.user_id,
            direction="in" if inward else "out",
            bytes=len(line),
        )
        try:
            codec.check_content(line)
            codec.decode_any(line)
        except DecodeFailure:
            frame.text = self._redactor.text(line.decode(errors="replace"), cut=True)
        else:
            self._content(frame, process, line.decode())
        yield self._framed(t, process, frame)

    def file(self, t: float, at: float, process: Process, message: Message) -> Iterator[bytes]:
        """What stood in the file that a response pointed to."""
        members: dict[str, Any] = {"jsonrpc": "2.0", "id": message.id}
        for name, raw in (("result", message.result), ("error", message.error)):
            if isinstance(raw, Raw):
                members[name] = Raw(msgspec.json.format(bytes(raw), indent=-1))
        line = codec.encode(members)
        frame = Frame(
            at=at,
            plugin=process.plugin,
            user_id=process.user_id,
            direction="out",
            bytes=len(line),
            file=True,
        )
        self._content(frame, process, line.decode())
        yield self._framed(t, process, frame)

    def dropped(self, t: float, at: float, count: int) -> Iterator[bytes]:
        """Say that lines are missing here."""
        text = f"{count:,} lines were not recorded: the disk was too slow"
        noise = transcript.Noise(at=at, kind="unrecorded", message=text)
        yield self._stamped(t, 0, transcript.encode_event(noise).decode())

    def end(self, t: float, at: float, dropped: int) -> bytes:
        """The last line."""
        t = round(t, 6)
        return codec.encode(End(at=at, n=self._count + 1, t=t, lines=self._count, dropped=dropped))

    # --- Parts -------------------------------------------------------------------------

    def _content(self, frame: Frame, process: Process, text: str) -> None:
        """Fill in the line itself, and what is known of it."""
        redacted = self._redactor.json(text).encode()
        frame.line = Raw(redacted)
        self._connections.setdefault(process, Correlation()).take(frame)
        if len(redacted) > LINE_KEPT:
            frame.line = UNSET
            frame.sha256 = sha256(redacted).hexdigest()

    def _framed(self, t: float, process: Process, frame: Frame) -> bytes:
        return self._stamped(t, process.launch, codec.encode(frame).decode())

    def _stamped(self, t: float, launch: int, text: str) -> bytes:
        """An event's JSON with the stamp in front of its members."""
        self._count += 1
        stamp = codec.encode(Stamp(n=self._count, t=round(t, 6), launch=launch))
        return stamp[:-1] + b"," + text[1:].encode()

    def _words(self, words: tuple[str, ...]) -> Iterator[str]:
        """A command line, without the values of options that are secrets."""
        hidden = ""
        for word in words:
            if hidden:
                yield self._secrets.placeholder(self._secrets.number(hidden, word))
                hidden = ""
                continue
            name, given, value = word.partition("=")
            if word.startswith("-") and is_secret_name(name):
                if given:
                    number = self._secrets.number(name.lstrip("-"), value)
                    yield f"{name}={self._secrets.placeholder(number)}"
                    continue
                hidden = name.lstrip("-")
            yield self._redactor.text(word)
