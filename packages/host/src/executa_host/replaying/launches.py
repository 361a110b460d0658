"""The processes of a transcript, each with its frames in order and how it ended."""

import difflib
import signal
from typing import Final

from msgspec import Struct, field

from executa_host.transcripts.reading import Line, Transcript
from executa_protocol import transcript
from executa_protocol.errors import UsageError

_CUTS: Final = frozenset({-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT})
"""Exit codes of a process that somebody else ended."""


class Launch(Struct):
    """One process: its frames, and how it ended.

    `exit_code` is None if that cannot be repeated: it was killed, or the transcript ends before.
    `asked` says that its input was closed first, `died` how it ended if nobody asked for it.
    """

    plugin: str
    user_id: str
    number: int
    part: int
    frames: list[Line] = field(default_factory=list[Line])
    exit_code: int | None = None
    asked: bool = False
    died: int | None = None


def launches_of(found: Transcript) -> list[Launch]:
    """Every process of every plugin, in the order in which they began."""
    launches: dict[tuple[int, str, str, int], Launch] = {}
    for part, each in enumerate(found.parts):
        for line in each.lines:
            event = line.event
            if event is None or not line.stamp.launch:
                continue
            key = (part, event.user_id, event.plugin, line.stamp.launch)
            if isinstance(event, transcript.Spawned):
                launches[key] = Launch(event.plugin, event.user_id, line.stamp.launch, part)
            elif isinstance(event, transcript.Frame):
                begun = Launch(event.plugin, event.user_id, line.stamp.launch, part)
                launches.setdefault(key, begun).frames.append(line)
            elif isinstance(event, transcript.Exited) and key in launches:
                launch = launches[key]
                by_hand = event.rung not in ("", "stdin")
                launch.asked = event.rung == "stdin"
                launch.died = None if event.rung else event.code
                launch.exit_code = None if by_hand or event.code in _CUTS else event.code
    return list(launches.values())


def plugin_of(launches: list[Launch], name: str) -> str:
    """The plugin that is meant: `name`, or the only one. Raises `UsageError`."""
    known = list(dict.fromkeys(launch.plugin for launch in launches))
    if not known:
        msg = "this transcript has no process of a plugin, so there is nothing to replay"
        raise UsageError(msg)
    if not name and len(known) == 1:
        return known[0]
    listed = ", ".join(sorted(known))
    if not name:
        msg = f"this transcript has several plugins; name one with --plugin: {listed}"
        raise UsageError(msg)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=2)
        advice = f"did you mean {' or '.join(near)}?" if near else f"there are {listed}"
        msg = f"no plugin {name!r} in this transcript; {advice}"
        raise UsageError(msg)
    return name
