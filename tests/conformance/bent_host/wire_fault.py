"""A fault on stdio: lines that pass between a host and its plugin, and how they are changed.

`down` are lines from the host to the plugin, `up` those from the plugin to the host. Standard
library only: every plugin of a faulty host starts with this.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, cast

Frame = dict[str, Any]
Line = Callable[[bytes], None]

LIMIT = 2 << 20


class Fault:
    """Changes nothing; what breaks something overrides a part of it."""

    stderr = "inherit"
    leaves_group = False
    respawns = False
    at_end: tuple[int, ...] = ()

    def attach(self, down: Line, up: Line, end: Callable[[int], None]) -> None:
        """How to write to either side, or end the plugin, out of turn."""
        self.write_down = down
        self.write_up = up
        self.end = end

    def environment(self, env: dict[str, str]) -> dict[str, str]:
        """The plugin's environment."""
        return env

    def exit_code(self, code: int) -> int:
        """The exit code that the host sees; negative for a signal."""
        return code

    def down(self, line: bytes) -> Iterable[bytes]:
        """What the plugin gets for a line of the host's."""
        frame = read(line)
        if frame is None:
            return [line]
        return [write(one) for one in self.to_plugin(frame)]

    def up(self, line: bytes) -> Iterable[bytes]:
        """What the host gets for a line of the plugin's."""
        frame = read(line) if len(line) < LIMIT else None
        if frame is None:
            return [line]
        changed = self.to_host(frame)
        return [line] if changed is None else [write(one) for one in changed]

    def to_plugin(self, frame: Frame) -> Iterable[Frame]:
        """The same for a frame."""
        self.change_down(frame)
        return [frame]

    def change_down(self, frame: Frame) -> None:
        """The same, in place."""

    def to_host(self, frame: Frame) -> Iterable[Frame] | None:
        """The same for a frame; None leaves the line as it is, byte for byte."""
        return None

    def before_end(self) -> Iterable[bytes]:
        """What the plugin gets before its stdin ends."""
        return []


def read(line: bytes) -> Frame | None:
    """The frame on a line, if there is one."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast("Frame", value) if isinstance(value, dict) else None


def write(frame: Frame) -> bytes:
    """A line."""
    return json.dumps(frame, ensure_ascii=False).encode() + b"\n"


def members(value: object) -> Frame:
    """An object's members; none of anything else."""
    return cast("Frame", value) if isinstance(value, dict) else {}


def is_answer(frame: Frame) -> bool:
    """Whether it answers something."""
    return "method" not in frame


def is_invoke(frame: Frame) -> bool:
    """Whether it is an invoke."""
    return frame.get("method") == "invoke"
