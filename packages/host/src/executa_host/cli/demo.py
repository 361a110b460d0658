"""`executa demo`: the whole of it in a minute, on your own file.

Starts a nexus, the host and two plugins, briefs a file, and checks that every step did what
it should. What is shown are the host's trace events; what is done is in `demo_steps`.
"""

import time
from pathlib import Path
from typing import Annotated, Any, Protocol

from cyclopts import Parameter
from msgspec import to_builtins

from executa_host.cli import exits
from executa_host.cli.demo_steps import COUNTED, PLUGINS, Demo
from executa_host.cli.nexuses import Kind
from executa_host.cli.output import Screen, write_json, write_line
from executa_host.cli.running import run
from executa_host.cli.timeline import Timeline
from executa_protocol.transcript import AnyEvent, encode_event


def demo(
    *,
    file: Annotated[Path | None, Parameter(help="The text file to brief.")] = None,
    json: Annotated[bool, Parameter(negative="", help="Print JSON lines, totals last.")] = False,
    nexus: Annotated[
        Kind, Parameter(help="Where nexus runs: in this process, or as one of its own over HTTP.")
    ] = "direct",
    faults: Annotated[
        str, Parameter(help="Have nexus fail on purpose, such as seed=7; steps are tried again.")
    ] = "",
) -> int:
    """Brief a text file with two plugins, end to end, and show who called whom."""
    examples = find_examples()
    text_file = file or examples.parent / "README.md"
    if not text_file.is_file():
        raise exits.Stop(f"{text_file} is no file; name one with --file", exits.USAGE)
    show: Show = ShowJson() if json else ShowTimeline()
    totals = run(Demo(examples, text_file.resolve(), show, nexus, faults).run())
    show.end(totals)
    return exits.OK if totals["ok"] else exits.FAILED


def find_examples() -> Path:
    """The folder with the example plugins: above the working directory, or above this file."""
    for start in (Path.cwd(), Path(__file__)):
        for folder in (start, *start.parents):
            if all((folder / "examples" / name / "plugin.py").is_file() for name in PLUGINS):
                return folder / "examples"
    msg = "the example plugins are not here; run the demo inside a clone of the repository"
    raise exits.Stop(msg, exits.USAGE)


class Show(Protocol):
    """How a demo is shown."""

    def event(self, event: AnyEvent) -> None:
        """Something happened."""
        ...

    def say(self, text: str) -> None:
        """A sentence for a person."""
        ...

    def fault(self, fault: dict[str, Any]) -> None:
        """A fault that was injected, and how it was answered."""
        ...

    def end(self, totals: dict[str, Any]) -> None:
        """It is over."""
        ...


class ShowJson:
    """One JSON object a line."""

    def event(self, event: AnyEvent) -> None:
        write_line(encode_event(event))

    def say(self, text: str) -> None:
        """Sentences are for people."""

    def fault(self, fault: dict[str, Any]) -> None:
        write_json({"event": "fault", **fault})

    def end(self, totals: dict[str, Any]) -> None:
        write_json(to_builtins(totals))


class ShowTimeline:
    """Lines for a person."""

    def __init__(self) -> None:
        self._screen = Screen(highlight=False)
        self._timeline = Timeline(self._screen, time.time())

    def event(self, event: AnyEvent) -> None:
        self._timeline.show(event)

    def say(self, text: str) -> None:
        self._print(text, "bold yellow")

    def fault(self, fault: dict[str, Any]) -> None:
        where = f"{fault['endpoint']}, call {fault['call']}"
        self._print(f"  {fault['kind']} at {where}: {fault['answered']}", "yellow")

    def end(self, totals: dict[str, Any]) -> None:
        for failure in totals["failures"]:
            self._print(f"✗ {failure}", "red")
        counts = ", ".join(f"{totals[name]} {name.replace('_', ' ')}" for name in COUNTED)
        verdict = "Every step did what it should" if totals["ok"] else "The demo failed"
        refused = f"{totals['refused']} refused as they had to be"
        style = "bold green" if totals["ok"] else "bold red"
        self._print(f"{verdict}: {counts}, {refused}.", style)

    def _print(self, text: str, style: str) -> None:
        self._screen.print(text, style=style, markup=False, soft_wrap=True)
