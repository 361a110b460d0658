"""What the demo does, and how it knows that each step did what it should.

With faults on, a step that failed is tried again as a careful client would: every tool that
is called here may be called twice.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from executa_host.cli.demo_plugins import command_of
from executa_host.cli.nexuses import Cloud, Injected, Kind, open_cloud
from executa_host.cli.timeline import clean
from executa_host.host import Host
from executa_host.spec import PluginSpec
from executa_host.transcripts.recorder import Recorder
from executa_protocol import transcript
from executa_protocol.codes import STORAGE_NOT_GRANTED
from executa_protocol.errors import ExecutaError
from executa_protocol.transcript import AnyEvent

if TYPE_CHECKING:
    from executa_host.cli.demo import Show

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

ATTEMPTS: Final = 8
"""How often a step is tried while faults are on."""

PLANTS: Final = "Water the plants on Friday."


class StepFailed(ExecutaError):
    """A step did not do what it should."""


class Demo:
    """The steps, in order, and the counts of what happened meanwhile."""

    def __init__(
        self, file: Path, show: "Show", kind: Kind, faults: str, recorder: Recorder | None = None
    ) -> None:
        self._file = file
        self._show = show
        self._kind: Kind = kind
        self._faults = faults
        self._recorder = recorder
        self._counts: Counter[str] = Counter()
        self._failures: list[str] = []
        self._exits: dict[str, transcript.Exited] = {}
        self._told: defaultdict[str, list[str]] = defaultdict(list)

    async def run(self) -> dict[str, Any]:
        """Walk the steps and give the totals."""
        started = time.monotonic()
        async with open_cloud(self._kind, self._faults) as cloud:
            async with Host(cloud.nexus, trace=self._take, recorder=self._recorder) as host:
                for name in PLUGINS:
                    host.add(PluginSpec(name=name, command=command_of(name)))
                await self._walk(host)
                self._show.say("Stop: stdin is closed, and the plugins leave by themselves")
            injected = await self._tell_faults(cloud)
        for name in PLUGINS:
            gone = self._exits.get(name)
            left = gone is not None and gone.code == 0 and gone.rung == "stdin"
            self._check(f"{name} did not stop cleanly", holds=left)
        for name in COUNTED:
            missing = f"there were no {name.replace('_', ' ')}"
            self._check(missing, holds=self._counts[name] > 0)
        return {
            "ok": not self._failures,
            **{name: self._counts[name] for name in COUNTED},
            "refused": self._counts["refused"],
            "tokens": self._counts["tokens"],
            "faults": len(injected),
            "tried_again": self._counts["tried_again"],
            "seconds": round(time.monotonic() - started, 3),
            "failures": self._failures,
        }

    async def _walk(self, host: Host) -> None:
        steps: tuple[tuple[str, Callable[[Host], Awaitable[None]]], ...] = (
            ("Start: spawn, initialize and describe both plugins", self._start),
            ("1. The notebook remembers, in persistent storage", self._remember),
            (f"2. The brief of {self._file.name}: sampling, then an agent session", self._brief),
            ("3. One sentence by agent/complete", self._gist),
            ("4. A call that is not declared is refused, and says why", self._overreach),
            ("5. The notebook finds a note, and nothing where there is nothing", self._recall),
        )
        for title, step in steps:
            self._show.say(title)
            try:
                await self._persist(step, host)
            except ExecutaError as fault:
                self._failures.append(str(fault))
                return

    async def _persist(self, step: Callable[[Host], Awaitable[None]], host: Host) -> None:
        """One try, or several while faults are on."""
        attempts = ATTEMPTS if self._faults else 1
        for attempt in range(1, attempts + 1):
            try:
                await step(host)
            except ExecutaError as fault:
                if attempt == attempts:
                    raise
                self._counts["tried_again"] += 1
                self._show.say(f"   {clean(str(fault))}: tried again")
            else:
                return

    # --- Steps -----------------------------------------------------------------------------

    async def _start(self, host: Host) -> None:
        await asyncio.gather(*(host.start(name) for name in PLUGINS))

    async def _remember(self, host: Host) -> None:
        subject = self._file.stem
        for note in (
            f"The briefing on {subject} is for readers who have two minutes.",
            f"After the briefing on {subject}, say which part to read first.",
            PLANTS,
        ):
            await self._invoke(host, "notebook", "remember", text=note)

    async def _brief(self, host: Host) -> None:
        question = f"Who is the briefing on {self._file.stem} for?"
        outcome = await host.invoke(
            "brief", "brief", {"path": str(self._file), "question": question}
        )
        insist(outcome.success, f"brief.brief failed: {outcome.error}")
        data, ledger = outcome.data, outcome.ledger
        self._show.say(f"   summary: {clean(data['summary'])}")
        self._show.say(f"   answer:  {clean(data['answer'])}")
        insist(1 <= data["pieces"] <= 6, f"the brief took {data['pieces']} pieces")
        insist(bool(data["summary"]), "the summary is empty")
        insist("notebook.recall" in data["tools_called"], "the run did not call the notebook")
        insist("two minutes" in data["answer"], "the answer does not come from the notebook")
        insist(ledger.sampling_calls == data["pieces"], "the ledger counts other samplings")
        insist(ledger.frames == data["frames"], "the ledger counts other frames")

    async def _gist(self, host: Host) -> None:
        text = f"The demo has briefed {self._file.name}. It took a moment."
        gist = await self._invoke(host, "brief", "gist", text=text)
        insist(bool(gist), "brief.gist gave nothing")

    async def _overreach(self, host: Host) -> None:
        told = await self._invoke(host, "brief", "overreach")
        as_it_should = told.get("code") == STORAGE_NOT_GRANTED
        as_it_should = as_it_should and told["missing"]["step"] == "manifest"
        insist(as_it_should, f"brief.overreach was answered otherwise: {told}")

    async def _recall(self, host: Host) -> None:
        found = await self._invoke(host, "notebook", "recall", query="plants")
        insist(found == [PLANTS], f"recall gave {found}")
        nothing = await self._invoke(host, "notebook", "recall", query="zeppelin")
        insist(nothing == [], f"recall gave {nothing}")

    async def _invoke(self, host: Host, plugin: str, tool: str, **arguments: Any) -> Any:
        outcome = await host.invoke(plugin, tool, arguments)
        insist(outcome.success, f"{plugin}.{tool} failed: {outcome.error}")
        return outcome.data

    def _check(self, otherwise: str, *, holds: bool) -> None:
        if not holds:
            self._failures.append(otherwise)

    # --- What happened meanwhile -------------------------------------------------------------

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
            case transcript.ReverseEnded(verdict="failed"):
                answer = f"{event.plugin} was answered {event.code} {event.symbol}"
                self._told[event.method].append(answer)
            case transcript.RunFrame():
                counts["frames"] += 1
            case transcript.ToolExecuted(ok=True):
                counts["nested_tool_calls"] += 1
            case transcript.Exited():
                self._exits[event.plugin] = event
            case _:
                pass
        self._show.event(event)

    async def _tell_faults(self, cloud: Cloud) -> Sequence[Injected]:
        """Print what was injected, each with how it was answered."""
        struck = await cloud.injected() if self._faults else ()
        # Invokes are closed in the background, so the order among endpoints says nothing.
        injected = sorted(struck, key=lambda each: (each.endpoint, each.call))
        if self._faults:
            self._show.say(f"Faults by {self._faults}: {len(injected)} were injected")
        for each in injected:
            self._show.fault(
                {
                    "endpoint": each.endpoint,
                    "call": each.call,
                    "kind": each.kind,
                    "answered": self._answered(each),
                }
            )
        return injected

    def _answered(self, fault: Injected) -> str:
        if fault.kind in ("latency", "slow_first_byte"):
            return "the host waited, within its time-outs"
        told = self._told.get(fault.endpoint)
        if told:
            return told.pop(0)
        if fault.kind == "duplicate":
            return "the second frame was dropped"
        if self._kind == "http":
            return "the host's client tried again after the pause it was told"
        return "the invoke was refused before the plugin heard of it, and tried again"


def insist(holds: bool, otherwise: str) -> None:
    """Raise `StepFailed` unless something holds."""
    if not holds:
        raise StepFailed(otherwise)


def _counter(method: str) -> str:
    """Which total a served reverse call belongs to."""
    if method.startswith(("storage/", "files/")):
        return "storage_calls"
    if method == "agent/session.run":
        return "agent_runs"
    return "sampling_calls" if method in ("sampling/createMessage", "agent/complete") else "others"
