"""What followers get to know of one process, and how much of it.

Diagnostics and lines of stderr come as fast as a plugin likes; they are passed on at a
bounded rate, and what was left out is told as a number.
"""

import time
from typing import Final

from executa_host.rate import RateLimit
from executa_host.runtime import Runtime
from executa_host.stderr import StderrLog
from executa_protocol import transcript
from executa_protocol.aio.handler import Diagnostic
from executa_protocol.limits import NOISE_PER_SECOND, SAMPLE_BYTES, STDERR_PER_SECOND
from executa_protocol.readings import Finding, Reader
from executa_protocol.transcript import AnyEvent

_QUOTED: Final = 3
"""Last lines of stderr that an error message quotes."""


class Telling:
    """Tells of one process of `plugin`. `reader` reads its spellings and tells what it tolerates.

    `stderr` is to be fed with what it writes there, `user` is how events name the user.
    """

    def __init__(self, runtime: Runtime, plugin: str, user_id: str) -> None:
        self.followers = runtime.followers
        self.reader = Reader(strict=runtime.strict, report=self._tolerated)
        monotonic = runtime.clock.monotonic
        limit = RateLimit(STDERR_PER_SECOND, monotonic)
        self.stderr = StderrLog(limit, self._said, self._unsaid)
        self._noises = RateLimit(NOISE_PER_SECOND, monotonic)
        self._plugin = plugin
        self.user = runtime.shown_user(user_id)

    def emit(self, event: AnyEvent) -> None:
        """Give an event of this plugin to whoever follows."""
        event.plugin = self._plugin
        event.user_id = self.user
        self.followers.emit(event)

    def diagnostic(self, found: Diagnostic) -> None:
        """The plugin did something odd on the wire."""
        self.noise(found.kind, found.message, found.sample)

    def noise(self, kind: str, message: str, sample: bytes = b"") -> None:
        """Tell that something was odd, if it is not one of too many."""
        if not self.followers.callbacks or not self._noises.allow():
            return
        dropped = self._noises.take_dropped()
        if dropped:
            self._tell("dropped", f"{dropped:,} diagnostics were left out", b"")
        self._tell(kind, message, sample)

    @property
    def last_words(self) -> list[str]:
        """The last lines that it wrote to stderr."""
        return list(self.stderr.lines)

    def quoting(self, text: str) -> str:
        """`text` with the last words of the process."""
        words = self.last_words[-_QUOTED:]
        return f"{text}; it said: {' | '.join(words)}" if words else text

    def _tell(self, kind: str, message: str, sample: bytes) -> None:
        shown = sample[:SAMPLE_BYTES].decode(errors="replace")
        self.emit(transcript.Noise(at=time.time(), kind=kind, message=message, sample=shown))

    def _tolerated(self, finding: Finding) -> None:
        self.noise("tolerated", f"{finding.requirement}: {finding.message}")

    def _said(self, line: str) -> None:
        if self.followers.callbacks:
            self.emit(transcript.Stderr(at=time.time(), line=line))

    def _unsaid(self, count: int) -> None:
        if self.followers.callbacks:
            self._tell("dropped", f"{count:,} lines of stderr were left out", b"")
