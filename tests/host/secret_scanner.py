"""Looks for secrets in everything that a host lets out."""

import contextlib
import logging
import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from executa_host.observe.logs import EventFormatter
from executa_nexus_stub import NexusStub
from executa_protocol.nexus import Token
from executa_protocol.transcript import AnyEvent, encode_event


class Scanner:
    """Knows secrets, is shown texts, and remembers where which one stood.

    Of a token each long part counts as well: a payload without its signature tells whom it
    speaks for, and a signature is what must not be known.
    """

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.found: list[str] = []
        self.looked = 0

    def add(self, what: str, secret: str) -> None:
        """From now on `secret` may stand nowhere."""
        self.secrets[secret] = what
        for part in secret.split(".")[1:]:
            self.secrets[part] = f"a part of {what}"

    def watch(self, stub: NexusStub) -> None:
        """Every token that this stub mints from now on is a secret."""
        mint = stub.tokens.mint

        def minting(*args: Any, **options: Any) -> Token:
            token = mint(*args, **options)
            self.add(f"a token for {args[0]}", token.value)
            return token

        stub.tokens.mint = minting

    def hits(self, text: str) -> list[str]:
        """The secrets in `text`, by name."""
        return [what for secret, what in self.secrets.items() if secret in text]

    def look(self, where: str, text: str) -> None:
        """Remember what stands in `text`."""
        self.looked += 1
        self.found += [f"{what} is in {where}: {text[:300]}" for what in self.hits(text)]

    def event(self, event: AnyEvent) -> None:
        """A follower of a host."""
        self.look(f"a {type(event).__name__} event", encode_event(event).decode() + repr(event))

    def outcome(self, outcome: object) -> None:
        """What an invoke gave: a result or an exception, with everything that hangs on it."""
        if isinstance(outcome, BaseException):
            for fault in _chain(outcome):
                parts = [str(fault), repr(fault), repr(fault.args), repr(vars(fault))]
                self.look(f"a {type(fault).__name__}", "\n".join(parts))
            self.look("a traceback", "".join(traceback.format_exception(outcome)))
            return
        raw = getattr(outcome, "raw", b"")
        text = bytes(raw).decode() if isinstance(raw, bytes) or raw else ""
        self.look("a result", repr(outcome) + text)

    def files(self, folder: Path) -> int:
        """Every file under `folder`, with its name; how many there were.

        A host cleans up meanwhile: what goes while it is looked at is passed over.
        """
        count = 0
        for root, folders, names in os.walk(folder):
            for name in (*folders, *names):
                self.look("a file's name", str(Path(root, name)))
            for path in filter(Path.is_file, (Path(root, name) for name in names)):
                with contextlib.suppress(FileNotFoundError):
                    self.look(f"the file {path}", path.read_bytes().decode(errors="replace"))
                    count += 1
        return count


def _chain(fault: BaseException) -> Iterator[BaseException]:
    """The exception and all that it came of, whether or not a traceback would show it."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [fault]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += [each.__cause__, each.__context__]


class LogScan(logging.Handler):
    """Shows every record to a scanner, in both of the host's forms."""

    def __init__(self, scanner: Scanner) -> None:
        super().__init__(logging.DEBUG)
        self._scanner = scanner
        self._forms = [EventFormatter("json"), EventFormatter("keys"), logging.Formatter()]

    def emit(self, record: logging.LogRecord) -> None:
        for form in self._forms:
            self._scanner.look("a log line", form.format(record) + repr(vars(record)))
