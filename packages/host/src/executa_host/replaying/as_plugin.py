"""Plays the plugin's side: a program that a host starts as its plugin.

It says on stderr where it stands, in lines that begin with `SAYS`, because hosts show these; and
it leaves a report in a folder, because they do not show exit codes. Each start takes the next
recorded launch.
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw

from executa_host.replaying.comparing import MISSING, Difference
from executa_host.replaying.launches import Launch
from executa_host.replaying.player import Player
from executa_host.replaying.verdicts import Verdict, sentence
from executa_host.replaying.wire import Wire
from executa_host.transcripts.frames import invoke_named
from executa_protocol import codec
from executa_protocol.errors import UsageError
from executa_protocol.transcript import Frame

SAYS: Final = "executa replay:"
WAITS_FOR_CANCEL: Final = f"{SAYS} waits for the cancellation of "
DONE: Final = f"{SAYS} everything is played"
DIFFERS: Final = f"{SAYS} a difference: "

_POINTERS: Final = (b"__file_transport", b"__trans_file__")

REPORT_BYTES: Final = 4000
"""Of a value in a report; what is longer is cut."""


class Report(msgspec.Struct):
    """What came of one launch. `expected` and `got` are JSON texts, empty for nothing."""

    plugin: str
    launch: int
    frames: int = 0
    whole: bool = False
    row: int = 0
    frame: str = ""
    path: str = ""
    expected: str = ""
    got: str = ""
    text: str = ""


def claim_launch(launches: Sequence[Launch], folder: Path | None) -> tuple[Launch, Path | None]:
    """The next launch that nobody has played, and where to report. Raises `UsageError`."""
    if folder is None:
        return launches[0], None
    for number, launch in enumerate(launches, start=1):
        path = folder / f"{launch.plugin}-{number}.json"
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            continue
        except OSError as fault:
            msg = f"--report: {folder} cannot be written to: {fault.strerror}"
            raise UsageError(msg) from None
        return launch, path
    msg = f"all {len(launches)} launches of {launches[0].plugin} have been played"
    raise UsageError(msg)


async def play_plugin(launch: Launch, *, timeout: float, ignored: Sequence[str] = ()) -> Report:
    """Be the plugin of a launch on descriptors 0 and 1, to its end or the first difference."""
    player = Player(launch, "plugin", time.time, ignored)
    wire = _own_wire()
    try:
        verdict = await _play(player, wire, timeout)
    finally:
        wire.close()
    if verdict is not None:
        _say(f"{DIFFERS}{sentence(verdict)}")
    return _told(player, verdict)


def leave(launch: Launch, report: Report) -> int:
    """End as the recorded process did, by its signal if it died of one; 1 after a difference."""
    if report.text:
        return 1
    if launch.died is not None and launch.died < 0:
        os.kill(os.getpid(), -launch.died)
    return (launch.exit_code or 0) if launch.died is None else launch.died


async def _play(player: Player, wire: Wire, timeout: float) -> Verdict | None:
    said = False
    files = _Files(player.launch)
    while True:
        for line in player.due():
            wire.send(files.filled(line))
        step = player.waiting
        if step is None and not said:
            said = True
            _say(DONE)
        if step is None and player.launch.died is not None:
            return None  # it ended by itself
        if step is not None and step.frame.method == "executa/cancel":
            _say(f"{WAITS_FOR_CANCEL}{invoke_named(step.value.get('params'))}")
        try:
            got = await wire.line(timeout)
        except TimeoutError:
            if step is not None:
                return player.silence()
            continue  # the host has time
        if got is None:
            return player.silence()
        answer = player.receive(got)
        if isinstance(answer, Verdict):
            return answer
        if answer is not None:
            wire.send(answer)


class _Files:
    """The response files of a launch, written again where the host lets them be (R-12)."""

    def __init__(self, launch: Launch) -> None:
        self._contents: list[bytes] = []
        for line in launch.frames:
            frame = line.event
            if isinstance(frame, Frame) and frame.file and isinstance(frame.line, Raw):
                self._contents.append(bytes(frame.line))

    def filled(self, line: bytes) -> bytes:
        """A line whose pointer, if it has one, names a file that is there."""
        if not self._contents or not any(name in line for name in _POINTERS):
            return line
        members = msgspec.json.decode(line, type=dict[str, Raw])
        pointer = next((name for name in members if name.encode() in _POINTERS), None)
        if pointer is None:
            return line
        content = msgspec.json.decode(self._contents.pop(0), type=dict[str, Raw])
        content["id"] = members["id"]
        fd, path = tempfile.mkstemp(prefix="replayed-", suffix=".json")
        with os.fdopen(fd, "wb") as file:
            file.write(codec.encode(content))
        members[pointer] = Raw(codec.encode(path))
        return codec.encode(members) + b"\n"


def _own_wire() -> Wire:
    """Descriptors 0 and 1 for the wire alone: what else is printed goes to stderr."""
    read_fd, write_fd = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    return Wire(read_fd, write_fd)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _told(player: Player, verdict: Verdict | None) -> Report:
    frames = sum(step.done for step in player.steps)
    report = Report(player.launch.plugin, player.launch.number, frames, player.waiting is None)
    if verdict is not None:
        found: Difference = verdict.difference
        report.row, report.frame, report.path = verdict.row, verdict.frame, found.path
        report.expected, report.got = _json(found.expected), _json(found.got)
        report.text = sentence(verdict)
    return report


def _json(value: Any) -> str:
    return "" if value is MISSING else msgspec.json.encode(value).decode()[:REPORT_BYTES]


def read_reports(folder: Path) -> list[Report]:
    """What was played so far; launches under way, or that never told, have no frames."""
    reports: list[Report] = []
    for path in sorted(folder.glob("*.json")):
        try:
            reports.append(msgspec.json.decode(path.read_bytes(), type=Report))
        except (OSError, msgspec.DecodeError):
            name, _, number = path.stem.rpartition("-")
            reports.append(Report(name, int(number) if number.isdecimal() else 0))
    return reports
