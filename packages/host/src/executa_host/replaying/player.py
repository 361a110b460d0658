"""One launch played again, from one side, without I/O.

Lines of our side leave in their order, each once all that the other side had said before it has
been said again; in which order it says these is its own business. Every line of the other side
must be one of the recorded ones, and is told from it by the first difference.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct, UnsetType

from executa_host.replaying.comparing import MISSING, Comparison, Difference, Names, Side
from executa_host.replaying.launches import Launch
from executa_host.replaying.verdicts import Verdict
from executa_host.transcripts.frames import invoke_named
from executa_host.transcripts.reading import Line
from executa_protocol import codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.transcript import Frame

_INVOKE_CANCELLED: Final = "INVOKE_CANCELLED"
_POINTERS: Final = ("__file_transport", "__trans_file__")
_INSTANTS: Final = re.compile(rb'("(?:deadline_ms|expires_at)"\s*:\s*)(\d{10,13})(?=[.,\s}])')
"""Instants that a plugin goes by; one in the past would end what it does at once."""


class Step(Struct):
    """A recorded frame. `value` is its line decoded, or its text if it was no JSON."""

    line: Line
    frame: Frame
    ours: bool
    value: Any
    tool: str = ""
    done: bool = False

    @property
    def name(self) -> str:
        """What it is, in words."""
        if self.frame.file:
            return f"response file of {self.frame.method}"
        if self.frame.kind in ("response", "error"):
            tool = f" {self.tool}" if self.tool else ""
            return f"answer to {self.frame.method or 'a request'}{tool}"
        return f"{self.frame.kind} {self.frame.method} {self.tool}".strip()


class Player:
    """Plays `launch` from one side. `now` gives epoch seconds, and moves recorded deadlines.

    `ignored` are patterns of paths that may differ.
    """

    def __init__(
        self, launch: Launch, side: Side, now: Callable[[], float], ignored: Sequence[str] = ()
    ) -> None:
        self.launch = launch
        self.side: Side = side
        self.names = Names()
        self.extra = 0
        """Probes of the other side's own, which were answered."""
        self._now = now
        self._ignored = ignored
        self._position = 0
        self._ids: dict[bytes, Raw] = {}  # of requests: the recorded id → that of now
        self._cancelled: set[str] = set()
        self.steps = _steps(launch, side)

    @property
    def waiting(self) -> Step | None:
        """The first frame that the other side still owes; None once everything is played."""
        return next((step for step in self.steps if not step.done), None)

    @property
    def over(self) -> bool:
        """Whether everything has been said."""
        return self._position >= len(self.steps)

    # --- Our side --------------------------------------------------------------------------

    def due(self) -> list[bytes]:
        """The lines that leave now, each with its LF."""
        lines: list[bytes] = []
        while self._position < len(self.steps):
            step = self.steps[self._position]
            if not step.done:
                if not step.ours:
                    break
                step.done = True
                lines.append(self._line(step) + b"\n")
            self._position += 1
        return lines

    def _line(self, step: Step) -> bytes:
        line = bytes(cast("Raw", step.frame.line))
        if step.frame.method == "executa/cancel":
            self._cancelled.add(step.frame.invoke_id)
        if step.frame.kind in ("response", "error") and isinstance(step.frame.id, Raw):
            now = self._ids.get(bytes(step.frame.id))
            if now is not None and bytes(now) != bytes(step.frame.id):
                members = msgspec.json.decode(line, type=dict[str, Raw])
                members["id"] = now
                line = codec.encode(members)
        line = self.names.current(line.decode()).encode()
        shift = self._now() - step.frame.at
        return _INSTANTS.sub(lambda match: match[1] + _moved(match[2], shift), line)

    # --- The other side ----------------------------------------------------------------------

    def receive(self, line: bytes) -> Verdict | bytes | None:
        """Take a line of the other side: its first difference, an answer to send, or neither."""
        try:
            codec.check_content(line)
            value: Any = codec.decode_any(line)
        except DecodeFailure:
            value = line.decode(errors="replace")
        steps = self._candidates(value)
        if not steps:
            return self._unexpected(value)
        differences: list[Difference] = []
        for step in steps:
            trial = self.names.copy()
            found = self._compare(step, value, trial)
            if found is None:
                self._taken(step, value, trial)
                return None
            differences.append(found)
        return self._verdict(steps[0], differences[0], value)

    def receive_file(self, now: Any) -> Verdict | None:
        """Take the message in a response file, decoded, after its pointer has been received."""
        for step in self.steps:
            if step.frame.file and not step.done and _at(step.value, "id") == _at(now, "id"):
                found = self._compare(step, now, self.names)
                step.done = True
                return None if found is None else self._verdict(step, found, now)
        return None

    def _candidates(self, value: Any) -> list[Step]:
        """The recorded frames that a line may be, the likeliest first."""
        owed = [step for step in self.steps if not step.ours and not step.done]
        owed = [step for step in owed if not step.frame.file]
        if not isinstance(value, dict):
            return [step for step in owed if not isinstance(step.value, dict)]
        members = cast("dict[str, Any]", value)
        method = members.get("method")
        if method is None:
            return [
                step
                for step in owed
                if step.frame.kind in ("response", "error", "other")
                and _at(step.value, "id") == members.get("id")
            ]
        invoke = invoke_named(members.get("params"))
        is_request = "id" in members
        same = [
            step
            for step in owed
            if step.frame.method == method and (step.frame.kind == "request") is is_request
        ]
        if self.side == "plugin" and method in ("invoke", "executa/cancel"):
            return same  # which one it is, only its content tells
        return [
            step
            for step in same
            if not step.frame.invoke_id
            or not invoke
            or self.names.now.get(step.frame.invoke_id, step.frame.invoke_id) == invoke
        ]

    def _compare(self, step: Step, value: Any, names: Names) -> Difference | None:
        if step.frame.sha256:
            return None  # it was too long to be kept
        recorded, now = step.value, value
        if isinstance(recorded, dict) and isinstance(now, dict):
            recorded, now = _comparable(step, recorded, now)
        found = Comparison(names, self._ignored).first(recorded, now)
        if found is not None and self._either_way(step, value):
            return None
        return found

    def _either_way(self, step: Step, value: Any) -> bool:
        """An invoke that was cancelled may still have ended by itself, or the other way."""
        if step.frame.method != "invoke" or step.frame.invoke_id not in self._cancelled:
            return False
        where = ("error", "data", "errorCode")
        return _INVOKE_CANCELLED in (_at(step.value, *where), _at(value, *where))

    def _taken(self, step: Step, value: Any, names: Names) -> None:
        step.done = True
        self.names = names
        if step.frame.kind == "request" and isinstance(step.frame.id, Raw):
            self._ids[bytes(step.frame.id)] = Raw(codec.encode(_at(value, "id")))

    def _unexpected(self, value: Any) -> Verdict | bytes | None:
        method = _at(value, "method")
        if method == "executa/progress" and invoke_named(_at(value, "params")) in self._cancelled:
            return None  # how much it still says once it is told to end is a matter of time
        if self.side == "plugin" and method == "health" and _at(value, "id") is not MISSING:
            self.extra += 1
            answer = {"jsonrpc": "2.0", "id": _at(value, "id"), "result": {"status": "ready"}}
            return codec.encode(answer) + b"\n"
        step = self.waiting
        expected = MISSING if step is None else step.value
        name = "the end" if step is None else step.name
        row = 0 if step is None else step.line.row
        return Verdict(self.launch.number, row, name, Difference("", expected, value))

    def _verdict(self, step: Step, found: Difference, got: Any = MISSING) -> Verdict:
        return Verdict(self.launch.number, step.line.row, step.name, found, got)

    def silence(self) -> Verdict | None:
        """What it means that nothing more comes; None if nothing is owed."""
        step = self.waiting
        if step is None:
            return None
        return self._verdict(step, Difference("", step.value, MISSING))


def _steps(launch: Launch, side: Side) -> list[Step]:
    """What is played. What stood in a file of our side goes with its pointer."""
    tools: dict[str, str] = {}
    steps: list[Step] = []
    for line in launch.frames:
        frame = cast("Frame", line.event)
        ours = (frame.direction == "in") is (side == "host")
        step = Step(line, frame, ours, _value_of(frame))
        if frame.method == "invoke":
            if frame.kind == "request":
                tools[frame.invoke_id] = str(_at(step.value, "params", "tool"))
            step.tool = tools.get(frame.invoke_id, "")
        if not ours or (isinstance(frame.line, Raw) and not frame.file):
            steps.append(step)
    return steps


def _comparable(step: Step, recorded: Any, now: Any) -> tuple[Any, Any]:
    """Both without what only the connection goes by: ids of requests, and paths of files."""
    recorded, now = dict(recorded), dict(now)
    if step.frame.kind == "request":
        recorded.pop("id", None)
        if "id" in now:
            now.pop("id")
    for name in _POINTERS:
        if name in recorded and name in now:
            del recorded[name], now[name]
    return recorded, now


def _value_of(frame: Frame) -> Any:
    if isinstance(frame.line, Raw):
        return codec.decode_any(frame.line)
    return "" if isinstance(frame.text, UnsetType) else frame.text


def _at(value: Any, *path: str) -> Any:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = cast("dict[str, Any]", value)[name]
    return value


def _moved(digits: bytes, shift: float) -> bytes:
    unit = 1000 if len(digits) > 10 else 1
    return str(int(digits) + int(shift * unit)).encode()
