"""Records a host: every frame both ways and every event, redacted, as lines of a file.

The host's loop only puts what it saw into a bounded queue; one thread redacts, encodes and
writes it, and flushes whatever it has, so that a crash leaves a transcript that can be read up
to there. Without a recorder nothing of this costs anything.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from msgspec import UNSET

from executa_host.spec import PluginSpec
from executa_host.transcripts import lines
from executa_host.transcripts.files import append_transcript, open_transcript
from executa_host.transcripts.redaction import Redactor, is_secret_name
from executa_host.transcripts.secrets import Secrets
from executa_protocol import transcript
from executa_protocol.aio.handler import Direction
from executa_protocol.envelope import Message
from executa_protocol.handshake import V2
from executa_protocol.limits import KIB, MIB
from executa_protocol.nexus import InvokeGrant
from executa_protocol.transcript import FORMAT, FORMAT_VERSION, AnyEvent, Header

_log: Final = logging.getLogger(__name__)

QUEUE_BYTES: Final = 32 * MIB
"""Bytes of frames that wait for the disk: two of the largest."""

EVENT_BYTES: Final = 512
"""What an event counts for."""

BATCH_BYTES: Final = 256 * KIB
"""What is written at once."""

GATHER: Final = 0.02
"""Seconds that the thread waits for more, and so what a killed host may lose."""

TURN: Final = 0.001
"""Seconds that the thread works before it lets the loop go on."""

ROOM_WAIT: Final = 0.05
"""Seconds that the loop waits for a full queue, before it drops and counts."""

_LEAST_ENVIRON: Final = 8
"""Characters of an environment variable from which its value is a secret, by its name."""

_Item = Callable[["lines.Writer"], Iterable[bytes]]


class Recorder:
    """Records one host, or several in turn, into the file at `path` until `close`.

    A transcript that is there is replaced, or continued with `append`; `command` is the command
    line, for the header. `secrets` are values that stand nowhere in it. Raises `UsageError`
    if the file cannot be had; what goes wrong later ends the recording, not the host, and is
    in `fault`.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        append: bool = False,
        command: Iterable[str] = (),
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self.path = Path(path)
        self.fault = ""
        """Why nothing more is recorded; empty while all is well."""
        self._fd = open_transcript(self.path, append=append)
        self._began = time.monotonic()
        self._queue: deque[tuple[int, _Item]] = deque()
        self._waiting = 0
        self._dropped = 0  # since they were last told of
        self._all_dropped = 0
        self._changed = threading.Condition()
        self._closed = False
        self._gave_way = 0.0
        self._launches: dict[tuple[str, str], int] = {}
        self._writer = lines.Writer(Redactor(known := Secrets()), known)
        for name, value in (*(secrets or {}).items(), *_secrets_in(os.environ)):
            known.add(name, value)
        header = Header(
            format=FORMAT,
            version=FORMAT_VERSION,
            protocol=V2,
            at=time.time(),
            host=f"executa-host {version('executa-host')}",
            command=tuple(command),
        )
        try:
            self._write(self._writer.header(header))
        except OSError as fault:
            self._failed(fault)
        self._thread = threading.Thread(target=self._work, name="executa-recorder", daemon=True)
        self._thread.start()

    # --- What a host tells -----------------------------------------------------------------

    def know(self, name: str, value: str) -> None:
        """`value` is a secret: a credential, a key. `name` stands in its place."""
        self.put(0, lambda writer: writer.know(name, value))

    def know_token(self, name: str, value: str) -> None:
        """As `know`, for one of many that are secret for a while."""
        self.put(0, lambda writer: writer.know_token(name, value))

    def know_grant(self, grant: InvokeGrant) -> None:
        """What nexus gave for an invoke is secret."""
        for name, token in (("sampling", grant.sampling_token), ("storage", grant.storage_token)):
            if token is not None:
                self.know_token(f"{name}_token", token.value)
        for name, value in grant.credentials.items():
            self.know(name, value)

    def know_environment(self, environ: Mapping[str, str], secret: Iterable[str] = ()) -> None:
        """The variables named in `secret` are secrets, and those whose names say so."""
        for name, value in _secrets_in(environ, secret):
            self.know(name, value)

    def take(self, event: AnyEvent) -> None:
        """Record an event: a follower of the host."""
        whose = (event.user_id, event.plugin)
        if isinstance(event, transcript.Spawned):
            self._launches[whose] = event.launch
        launch = self._launches.get(whose, 0)
        t = time.monotonic() - self._began
        self.put(EVENT_BYTES, lambda writer: writer.event(t, launch, event))

    def process(
        self, spec: PluginSpec, user_id: str, launch: int, env: Mapping[str, str]
    ) -> "ConnectionRecord":
        """What sees the lines of a process of `spec`, whose environment is `env`."""
        for name, value in spec.credentials.items():
            self.know(name, value)
        self.know_environment(env, spec.secret_env)
        return ConnectionRecord(self, lines.Process(spec.name, user_id, launch))

    def now(self) -> tuple[float, float]:
        """Seconds since it began, and since the epoch."""
        return time.monotonic() - self._began, time.time()

    def put(self, size: int, item: _Item) -> None:
        """Let the thread write something of about `size` bytes; of 0 it is never dropped."""
        with self._changed:
            if self._closed or self.fault:
                return
            if size and not self._has_room(size):
                if not self._dropped:  # a disk that stands still is waited for once
                    self._changed.wait_for(lambda: self._has_room(size), ROOM_WAIT)
                if not self._has_room(size):
                    self._dropped += 1
                    return
            self._queue.append((size, item))
            self._waiting += size
            # Each waking takes the interpreter from the loop for a moment.
            if len(self._queue) == 1 or self._waiting > BATCH_BYTES:
                self._changed.notify_all()

    def _has_room(self, size: int) -> bool:
        return not self._waiting or self._waiting + size <= QUEUE_BYTES

    # --- The end -----------------------------------------------------------------------------

    def close(self, absorb: Iterable[Path] = ()) -> None:
        """Write what waits and the end, and let go of the file. Idempotent.

        `absorb` are transcripts of processes that belonged to this host's work: they follow as
        parts of this one, whole or cut off, and their files go.
        """
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        try:
            if not self.fault:
                for part in absorb:
                    append_transcript(self._fd, part)
        except OSError as fault:
            self._failed(fault)
        os.close(self._fd)

    def _work(self) -> None:
        try:
            while self._step():
                pass
            self._write([self._writer.end(*self.now(), self._all_dropped)])
        except Exception as fault:  # noqa: BLE001 - a recording that fails harms nothing else
            self._failed(fault)

    def _step(self) -> bool:
        """Write what waits; False once it was the last."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            self._changed.wait_for(lambda: self._closed or self._waiting > BATCH_BYTES, GATHER)
            batch, self._queue = self._queue, deque()
            dropped, self._dropped = self._dropped, 0
            if not batch and not dropped:
                return False
        made: list[bytes] = []
        held = 0
        for size, item in batch:
            made += item(self._writer)
            self._give_way()
            held += size
            if held > BATCH_BYTES:
                self._written(made, held)
                made, held = [], 0
        self._written(made, held)
        if dropped:
            self._all_dropped += dropped
            self._write(self._writer.dropped(*self.now(), dropped))
        return True

    def _give_way(self) -> None:
        """Let the loop have the interpreter, which it would else wait for a switch interval."""
        now = time.monotonic()
        if now - self._gave_way > TURN and not self._closed:
            time.sleep(0)
            self._gave_way = time.monotonic()

    def _written(self, made: list[bytes], size: int) -> None:
        self._write(made)
        with self._changed:
            self._waiting -= size
            self._changed.notify_all()

    def _write(self, made: Iterable[bytes]) -> None:
        data = b"".join(line + b"\n" for line in made)
        while data:
            data = data[os.write(self._fd, data) :]

    def _failed(self, fault: Exception) -> None:
        reason = fault.strerror if isinstance(fault, OSError) else type(fault).__name__
        _log.error("recording to %s ended: %s", self.path, reason, exc_info=fault)
        with self._changed:
            self.fault = f"{self.path} could not be recorded any further: {reason}"
            self._queue.clear()
            self._waiting = 0
            self._changed.notify_all()


class ConnectionRecord:
    """What one process and its host say to each other."""

    def __init__(self, recorder: Recorder, process: lines.Process) -> None:
        self._recorder = recorder
        self._process = process

    def tap(self, direction: Direction, line: bytes) -> None:
        """Take a line: the tap of a peer. Its "in" came from the plugin."""
        t, at = self._recorder.now()
        inward = direction == "out"
        process = self._process
        self._recorder.put(len(line), lambda writer: writer.frame(t, at, process, line, inward))

    def file(self, message: Message) -> None:
        """Take what stood in a response file (R-12)."""
        t, at = self._recorder.now()
        process = self._process
        size = sum(len(memoryview(r)) for r in (message.result, message.error) if r is not UNSET)
        self._recorder.put(size, lambda writer: writer.file(t, at, process, message))


def _secrets_in(
    environ: Mapping[str, str], secret: Iterable[str] = ()
) -> Iterator[tuple[str, str]]:
    """The variables that are secrets: those named in `secret`, and those whose names say so."""
    certain = set(secret)
    for name, value in environ.items():
        likely = len(value) >= _LEAST_ENVIRON and is_secret_name(name)
        # Where a secret lies is none.
        if (likely and not value.startswith("/")) or name in certain:
            yield name, value
