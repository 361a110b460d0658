"""Makes a host of ours do again what was recorded, with replayers as its plugins.

One host for each part of a transcript. Its client's calls are made in their order, each once
those are over that were over when it began; what the host then says to its plugins is for the
replayers to compare.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from executa_host.handle import InvokeHandle
from executa_host.host import Host
from executa_host.replaying import as_plugin
from executa_host.replaying.as_plugin import Report, read_reports
from executa_host.replaying.launches import Launch, launches_of
from executa_host.replaying.recorded import Asked, calls_of
from executa_host.runtime import LOCAL_USER
from executa_host.spec import PluginSpec
from executa_host.transcripts.reading import Part, Transcript
from executa_protocol import codec, transcript
from executa_protocol.errors import ExecutaError
from executa_protocol.nexus import Nexus
from executa_protocol.transcript import AnyEvent

NexusOf = Callable[[], AbstractAsyncContextManager[Nexus]]
"""A nexus anew for each host."""

STAND_IN: Final = "replayed-credential"
"""In place of a credential, whose value no transcript holds."""


class Drive(Struct, frozen=True):
    """How to play: seconds for each line of the host, paths that may differ, where to report."""

    timeout: float
    ignored: tuple[str, ...]
    folder: Path


async def drive(found: Transcript, nexus_of: NexusOf, how: Drive) -> list[Report]:
    """Play all parts in turn, up to the first difference. Gives what each launch came to."""
    reports: list[Report] = []
    for number, part in enumerate(found.parts, start=1):
        launches = [launch for launch in launches_of(found) if launch.part == number - 1]
        if not launches:
            continue
        folder = how.folder / f"part-{number}"
        folder.mkdir()
        file = folder / "transcript.jsonl"
        file.write_bytes(_bytes_of(part))
        bound = (part.lines[-1].stamp.t if part.lines else 0.0) + 3 * how.timeout
        async with nexus_of() as nexus:
            driver = _Driver(part, launches, how)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(bound):
                    await driver.run(nexus, file)
        played = _in_file(read_reports(folder), part)
        reports += played
        if any(report.text for report in played):
            break
    return reports


def _bytes_of(part: Part) -> bytes:
    lines = [codec.encode(part.header), *(line.raw for line in part.lines)]
    return b"".join(line + b"\n" for line in lines)


def _in_file(reports: list[Report], part: Part) -> list[Report]:
    """Rows of the part as rows of the whole file."""
    first = part.lines[0].row if part.lines else 2
    for report in reports:
        if report.row:
            report.row += first - 2
    return reports


class _Driver:
    """Drives one host."""

    def __init__(self, part: Part, launches: Sequence[Launch], how: Drive) -> None:
        self._calls = calls_of(part)
        self._launches = launches
        self._how = how
        self._handles: dict[str, InvokeHandle] = {}
        self._over: dict[str, asyncio.Event] = {}
        self._running: dict[str, int] = {}  # by plugin: the launch that its calls go to
        self._done: dict[str, int] = dict.fromkeys((each.plugin for each in launches), 0)
        self._changed = asyncio.Event()
        self._differs = False
        self._cancelling: set[asyncio.Task[Any]] = set()

    async def run(self, nexus: Nexus, file: Path) -> None:
        """Make every call, and wait until all launches are played or one differs."""
        async with Host(nexus, trace=self._heard) as host:
            for name in self._done:
                host.add(self._spec(name, file))
            waiting = [asyncio.ensure_future(self._make(host, call)) for call in self._calls]
            try:
                await self._begin_idle(host)
                await self._until(lambda: all(task.done() for task in waiting))
                await self._until(self._all_done)
            finally:
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)

    def _spec(self, name: str, file: Path) -> PluginSpec:
        ignored = [word for path in self._how.ignored for word in ("--ignore", path)]
        words = ("replay", str(file), "--side", "plugin", "--stdio", "--plugin", name, *ignored)
        words += ("--report", str(file.parent), "--timeout", str(self._how.timeout))
        return PluginSpec(
            name=name,
            command=(sys.executable, "-P", "-m", "executa_host.cli", *words),
            credentials=dict.fromkeys(_credentials(self._launches, name), STAND_IN),
            type="binary",  # it reads the whole transcript before it answers
        )

    async def _begin_idle(self, host: Host) -> None:
        """Start what was started without being called."""
        called = {call.plugin for call in self._calls}
        for name in self._done:
            if name not in called:
                with contextlib.suppress(ExecutaError):
                    await host.start(name)

    async def _make(self, host: Host, call: Asked) -> None:
        over = self._over[call.invoke_id] = asyncio.Event()
        try:
            for earlier in self._calls:
                if earlier.ended < call.began:
                    await self._event(earlier).wait()
            await self._next_launch(host, call)
            handle = host.begin(
                call.plugin,
                call.tool,
                call.arguments,
                timeout=call.seconds or None,
                user_id=call.user_id or LOCAL_USER,
            )
            self._handles[call.invoke_id] = handle
            if call.open:
                return  # its end was never recorded
            with contextlib.suppress(ExecutaError):
                await handle.result()
        finally:
            over.set()
            self._changed.set()

    def _event(self, call: Asked) -> asyncio.Event:
        return self._over.setdefault(call.invoke_id, asyncio.Event())

    async def _next_launch(self, host: Host, call: Asked) -> None:
        """Stop the process before, if it was stopped between two calls."""
        before = self._running.get(call.plugin, call.launch)
        self._running[call.plugin] = max(before, call.launch)
        if call.launch > before and any(
            each.asked for each in self._launches
            if each.plugin == call.plugin and before <= each.number < call.launch
        ):  # fmt: skip
            await host.stop(call.plugin)

    # --- What the replayers say ------------------------------------------------------------

    def _heard(self, event: AnyEvent) -> None:
        if not isinstance(event, transcript.Stderr):
            return
        line = event.line
        if line.startswith(as_plugin.WAITS_FOR_CANCEL):
            self._cancel(line.removeprefix(as_plugin.WAITS_FOR_CANCEL).strip())
        elif line.startswith(as_plugin.DONE):
            self._done[event.plugin] = self._done.get(event.plugin, 0) + 1
        elif line.startswith(as_plugin.DIFFERS):
            self._differs = True
        self._changed.set()

    def _cancel(self, invoke_id: str) -> None:
        handle = self._handles.get(invoke_id)
        call = next((each for each in self._calls if each.invoke_id == invoke_id), None)
        if handle is not None and call is not None and not call.seconds:
            task = asyncio.ensure_future(handle.cancel(call.reason))
            self._cancelling.add(task)
            task.add_done_callback(self._cancelling.discard)

    def _all_done(self) -> bool:
        wanted: dict[str, int] = {}
        for launch in self._launches:
            wanted[launch.plugin] = wanted.get(launch.plugin, 0) + 1
        return all(self._done[name] >= count for name, count in wanted.items())

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not (self._differs or holds()):
            self._changed.clear()
            await self._changed.wait()


def _credentials(launches: Sequence[Launch], plugin: str) -> list[str]:
    """The credentials that the plugin's manifest names."""
    for launch in launches:
        for line in launch.frames if launch.plugin == plugin else ():
            event = line.event
            if not isinstance(event, transcript.Frame) or event.method != "describe":
                continue
            if event.kind == "response" and isinstance(event.line, Raw):
                return [
                    each.name for each in codec.decode(event.line, _DESCRIBED).result.credentials
                ]
    return []


class _Credential(Struct):
    name: str = ""


class _Manifest(Struct):
    credentials: list[_Credential] = []


class _Answer(Struct):
    result: _Manifest


_DESCRIBED: Final = msgspec.json.Decoder(_Answer)
