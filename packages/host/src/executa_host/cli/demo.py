"""`executa demo`: the whole of it in a minute, on your own file.

Starts a nexus, the host and two plugins, briefs a file, then serves durable actions from a
process that is killed, and checks that every step did what it should. What is shown are the
host's trace events and the events of actions; what is done is in `demo_steps` and
`demo_durable`.
"""

import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from importlib.metadata import metadata
from pathlib import Path
from typing import Annotated, Any, Protocol

from cyclopts import Parameter
from msgspec import to_builtins

from executa_host.actions.records import EventRecord
from executa_host.cli import exits
from executa_host.cli.action_views import event_line
from executa_host.cli.demo_durable import DurablePart
from executa_host.cli.demo_steps import COUNTED, Demo
from executa_host.cli.nexuses import Kind
from executa_host.cli.output import Screen, write_json, write_line
from executa_host.cli.recording import Record, recording
from executa_host.cli.remote import print_json
from executa_host.cli.running import run
from executa_host.cli.timeline import Timeline
from executa_host.cli.watching import watch
from executa_host.transcripts.recorder import Recorder
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
    record: Record = None,
) -> int:
    """Brief a text file with two plugins, then lose a host in the middle of durable work.

    It takes a few seconds, needs no network, and shows who called whom.
    """
    show: Show = ShowJson() if json else ShowTimeline()
    with tempfile.TemporaryDirectory(prefix="executa-demo-") as folder, _text(file) as text_file:
        part = Path(folder) / "serve.jsonl"
        with recording(record, parts=(part,)) as recorder:
            totals = run(_both(text_file, show, nexus, faults, recorder=recorder, part=part))
    show.end(totals)
    return exits.OK if totals["ok"] else exits.FAILED


async def _both(
    file: Path, show: "Show", nexus: Kind, faults: str, *, recorder: Recorder | None, part: Path
) -> dict[str, Any]:
    """The brief, then durable work, whose host records to `part`; what both came to."""
    started = time.monotonic()
    totals = await Demo(file, show, nexus, faults, recorder).run()
    recorded = None if recorder is None else part
    durable, failures = await DurablePart(show, recorded).run()
    failures = [*totals.pop("failures"), *failures]
    seconds = round(time.monotonic() - started, 3)
    counted = {**totals, "ok": not failures, "durable": durable}
    return {**counted, "seconds": seconds, "failures": failures}


@contextmanager
def _text(given: Path | None) -> Generator[Path]:
    """The file to brief: what was given, a clone's README, else what this package says of itself.

    Raises `exits.Stop`.
    """
    if given is not None:
        if not given.is_file():
            raise exits.Stop(f"{given} is no file; name one with --file", exits.USAGE)
        yield given.resolve()
        return
    for folder in (Path.cwd(), *Path.cwd().parents):
        readme = folder / "README.md"
        if readme.is_file() and (folder / "packages" / "host").is_dir():
            yield readme
            return
    with tempfile.TemporaryDirectory(prefix="executa-demo-") as folder:
        readme = Path(folder) / "README.md"
        readme.write_text(str(metadata("executa-host").json["description"]), encoding="utf-8")
        yield readme


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

    def fact(self, text: str, facts: dict[str, Any]) -> None:
        """Something was done or found: a sentence for a person, members for a program."""
        ...

    def action_event(self, event: EventRecord) -> None:
        """One event of an action's or a session's log."""
        ...

    async def follow(self, events: AsyncGenerator[EventRecord]) -> None:
        """Such events, until there are no more."""
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

    def fact(self, text: str, facts: dict[str, Any]) -> None:
        write_json({"event": "durable", **facts})

    def action_event(self, event: EventRecord) -> None:
        print_json({"event": "action_event", "record": event})

    async def follow(self, events: AsyncGenerator[EventRecord]) -> None:
        async for event in events:
            self.action_event(event)

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

    def fact(self, text: str, facts: dict[str, Any]) -> None:
        self._print(text, "cyan")

    def action_event(self, event: EventRecord) -> None:
        self._screen.print(event_line(event), soft_wrap=True)

    async def follow(self, events: AsyncGenerator[EventRecord]) -> None:
        await watch(events, self._screen)

    def end(self, totals: dict[str, Any]) -> None:
        for failure in totals["failures"]:
            self._print(f"✗ {failure}", "red")
        counts = ", ".join(f"{totals[name]} {name.replace('_', ' ')}" for name in COUNTED)
        verdict = "Every step did what it should" if totals["ok"] else "The demo failed"
        refused = f"{totals['refused']} refused as they had to be"
        durable = totals["durable"]
        if "events" in durable:
            counts += f", {durable['events']} durable events over {durable['kills']} crash"
        style = "bold green" if totals["ok"] else "bold red"
        self._print(f"{verdict}: {counts}, {refused}.", style)

    def _print(self, text: str, style: str) -> None:
        self._screen.print(text, style=style, markup=False, soft_wrap=True)
