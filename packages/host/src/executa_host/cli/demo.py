"""`executa demo`: the whole of it in a minute, on your own file.

Starts nexus's stand-in, the host and two plugins, briefs a file, and checks that every
step did what it should. What is shown are the host's trace events.
"""

import asyncio
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from executa_host.cli import exits
from executa_host.cli.nexuses import in_process
from executa_host.cli.output import Screen, write_json, write_line
from executa_host.cli.running import run
from executa_host.cli.timeline import Timeline, clean
from executa_host.host import Host
from executa_host.invocation import InvokeOutcome
from executa_host.spec import PluginSpec
from executa_protocol import transcript
from executa_protocol.codes import STORAGE_NOT_GRANTED
from executa_protocol.errors import ExecutaError
from executa_protocol.transcript import AnyEvent, encode_event

PLUGINS: Final = ("notebook", "brief")
COUNTED: Final = (
    "invokes",
    "sampling_calls",
    "storage_calls",
    "agent_runs",
    "frames",
    "nested_tool_calls",
)
"""What must all have happened for the demo to be one."""


def demo(
    *,
    file: Annotated[Path | None, Parameter(help="The text file to brief.")] = None,
    json: Annotated[bool, Parameter(negative="", help="Print JSON lines, totals last.")] = False,
) -> int:
    """Brief a text file with two plugins, end to end, and show who called whom."""
    examples = find_examples()
    text_file = file or examples.parent / "README.md"
    if not text_file.is_file():
        raise exits.Stop(f"{text_file} is no file; name one with --file", exits.USAGE)
    show = _Json() if json else _Timeline()
    totals = run(_Demo(examples, text_file.resolve(), show).run())
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


class _Json:
    """One JSON object a line."""

    def event(self, event: AnyEvent) -> None:
        write_line(encode_event(event))

    def say(self, text: str) -> None:
        """Sentences are for people."""

    def end(self, totals: dict[str, Any]) -> None:
        write_json(totals)


class _Timeline:
    """Lines for a person."""

    def __init__(self) -> None:
        self._console = Screen(highlight=False)
        self._timeline = Timeline(self._console, time.time())

    def event(self, event: AnyEvent) -> None:
        self._timeline.show(event)

    def say(self, text: str) -> None:
        self._console.print(text, style="bold yellow", markup=False, soft_wrap=True)

    def end(self, totals: dict[str, Any]) -> None:
        for failure in totals["failures"]:
            self._console.print(f"✗ {failure}", style="red", markup=False, soft_wrap=True)
        counts = ", ".join(f"{totals[name]} {name.replace('_', ' ')}" for name in COUNTED)
        verdict = "Every step did what it should" if totals["ok"] else "The demo failed"
        style = "bold green" if totals["ok"] else "bold red"
        refused = totals["refused"]
        self._console.print(
            f"{verdict}: {counts}, {refused} refused as they had to be.", style=style
        )


class _Demo:
    """The steps, and what they must have done."""

    def __init__(self, examples: Path, file: Path, show: _Json | _Timeline) -> None:
        self._examples = examples
        self._file = file
        self._show = show
        self._counts: Counter[str] = Counter()
        self._failures: list[str] = []
        self._exits: dict[str, transcript.Exited] = {}

    async def run(self) -> dict[str, Any]:
        """Walk the steps and give the totals."""
        started = time.monotonic()
        nexus = in_process()
        try:
            async with Host(nexus, trace=self._take) as host:
                for name in PLUGINS:
                    plugin = str(self._examples / name / "plugin.py")
                    host.add(PluginSpec(name=name, command=(sys.executable, plugin)))
                try:
                    await self._steps(host)
                except ExecutaError as fault:
                    self._failures.append(str(fault))
                self._show.say("Stop: stdin is closed, and the plugins leave by themselves")
        finally:
            await nexus.aclose()
        for name in PLUGINS:
            gone = self._exits.get(name)
            clean_stop = gone is not None and gone.code == 0 and gone.rung == "stdin"
            self._expect(clean_stop, f"{name} did not stop cleanly")
        for name in COUNTED:
            self._expect(self._counts[name] > 0, f"there were no {name.replace('_', ' ')}")
        return {
            "ok": not self._failures,
            **{name: self._counts[name] for name in COUNTED},
            "refused": self._counts["refused"],
            "tokens": self._counts["tokens"],
            "seconds": round(time.monotonic() - started, 3),
            "failures": self._failures,
        }

    async def _steps(self, host: Host) -> None:
        self._show.say("Start: spawn, initialize and describe both plugins")
        await asyncio.gather(*(host.start(name) for name in PLUGINS))

        self._show.say("1. The notebook remembers, in persistent storage")
        subject = self._file.stem
        for note in (
            f"The briefing on {subject} is for readers who have two minutes.",
            f"After the briefing on {subject}, say which part to read first.",
            "Water the plants on Friday.",
        ):
            outcome = await host.invoke("notebook", "remember", {"text": note})
            self._expect(outcome.success, f"notebook.remember failed: {outcome.error}")

        self._show.say(f"2. The brief of {self._file.name}: sampling, then an agent session")
        question = f"Who is the briefing on {subject} for?"
        outcome = await host.invoke(
            "brief", "brief", {"path": str(self._file), "question": question}
        )
        self._check_brief(outcome)

        self._show.say("3. One sentence by agent/complete")
        summary = outcome.data["summary"] if outcome.success else subject
        gist = await host.invoke("brief", "gist", {"text": summary})
        self._expect(gist.success and bool(gist.data), f"brief.gist failed: {gist.error}")

        self._show.say("4. A call that the manifest does not declare is refused, and says why")
        refused = await host.invoke("brief", "overreach")
        told: Any = refused.data if refused.success else {}
        as_it_should = (
            told.get("code") == STORAGE_NOT_GRANTED and told["missing"]["step"] == "manifest"
        )
        self._expect(as_it_should, f"brief.overreach was answered otherwise: {told}")

        self._show.say("5. The notebook finds a note, and nothing where there is nothing")
        found = await host.invoke("notebook", "recall", {"query": "plants"})
        self._expect(found.data == ["Water the plants on Friday."], f"recall gave {found.data}")
        nothing = await host.invoke("notebook", "recall", {"query": "zeppelin"})
        self._expect(nothing.success and nothing.data == [], f"recall gave {nothing.data}")

    def _check_brief(self, outcome: InvokeOutcome) -> None:
        if not outcome.success:
            self._failures.append(f"brief.brief failed: {outcome.error}")
            return
        data = outcome.data
        self._show.say(f"   summary: {clean(data['summary'])}")
        self._show.say(f"   answer:  {clean(data['answer'])}")
        self._expect(1 <= data["pieces"] <= 6, f"the brief took {data['pieces']} pieces")
        self._expect(bool(data["summary"]), "the summary is empty")
        self._expect("notebook.recall" in data["tools_called"], "the run did not call the notebook")
        self._expect("two minutes" in data["answer"], "the answer does not come from the notebook")
        ledger = outcome.ledger
        self._expect(ledger.sampling_calls == data["pieces"], "the ledger counts other samplings")
        self._expect(ledger.frames == data["frames"], "the ledger counts other frames")

    def _expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self._failures.append(otherwise)

    def _take(self, event: AnyEvent) -> None:
        counts = self._counts
        match event:
            case transcript.InvokeEnded():
                counts["invokes"] += 1
            case transcript.ReverseEnded(verdict="served"):
                counts["tokens"] += event.tokens
                counts[_counter(event.method)] += 1
            case transcript.ReverseEnded(verdict="refused"):
                counts["refused"] += 1
            case transcript.RunFrame():
                counts["frames"] += 1
            case transcript.ToolExecuted(ok=True):
                counts["nested_tool_calls"] += 1
            case transcript.Exited():
                self._exits[event.plugin] = event
            case _:
                pass
        self._show.event(event)


def _counter(method: str) -> str:
    """Which total a served reverse call belongs to."""
    if method.startswith(("storage/", "files/")):
        return "storage_calls"
    if method == "agent/session.run":
        return "agent_runs"
    return "sampling_calls" if method in ("sampling/createMessage", "agent/complete") else "others"
