"""Our host and our SDK: the host in the driver's process, plugins as its children."""

import itertools
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.contenders.direct_nexus import ANSWER, RUN_TEXT, DirectNexus
from benchmarks.drivers.contender import Call, Options, Task, text
from benchmarks.model import WrongAnswer
from executa_host import Host, InvokeOutcome, PluginSpec
from executa_nexus_stub import NexusStub
from executa_protocol.nexus import Nexus

PEERS: Final = Path(__file__).parents[1] / "peers"


class Executa:
    """One host with some plugins; its callers are spread over them as the task says.

    Tasks are ``inline``, ``async`` and ``thread`` (a text there and back), ``sample`` (an
    invoke with `count` sampling calls) and ``agent`` (an invoke with one run of an agent
    session).
    """

    def __init__(self, host: Host, names: list[str], servers: list[int]) -> None:
        self.servers = servers
        self._host = host
        self._names = names

    def call(self, task: Task) -> Call:
        """See `Opened.call`."""
        if task.kind in _ECHOES:
            return self._echo(task)
        return self._checked(task.kind, *_TASKS[task.kind](task))

    def _echo(self, task: Task) -> Call:
        host, kind, size, plugin = self._host, task.kind, task.size, self._picking(task)

        async def call(number: int) -> None:
            given = text(number, size)
            outcome = await host.invoke(plugin(number), kind, {"text": given})
            if outcome.data != given:
                raise _wrong(outcome)

        return call

    def _checked(self, kind: str, arguments: "Arguments", expected: "Expected") -> Call:
        host, plugin = self._host, self._picking(Task())

        async def call(number: int) -> None:
            given = arguments(number)
            outcome = await host.invoke(plugin(number), kind, given)
            if outcome.data != expected(given):
                raise _wrong(outcome)

        return call

    def _picking(self, task: Task) -> Callable[[int], str]:
        """Which plugin an operation goes to."""
        names, count, each = self._names, len(self._names), task.each
        if not each:
            turns = itertools.cycle(names)
            return lambda _: next(turns)
        if count == 1:
            only = names[0]
            return lambda _: only
        return lambda number: names[number // each % count]


def _wrong(outcome: InvokeOutcome) -> WrongAnswer:
    found = f"{outcome.data!r:.80}, {outcome.error!r:.80}"
    return WrongAnswer(f"{outcome.plugin}.{outcome.tool} answered {found}")


@asynccontextmanager
async def open_executa(options: Options) -> AsyncGenerator[Executa]:
    """A host with `plugins` plugins (1) of the program `peer` (``inline``).

    `nexus` is ``stub`` (the default), or ``direct``: one that answers in the same process
    with constants, as the callbacks of other protocols do.
    """
    nexus: Nexus = DirectNexus() if options.get("nexus") == "direct" else NexusStub()
    peer = PEERS / f"{options.get('peer', 'inline')}_plugin.py"
    names = [f"plugin{number:03d}" for number in range(options.get("plugins", 1))]
    async with Host(nexus, closes_nexus=True) as host:
        for name in names:
            host.add(PluginSpec(name=name, command=(sys.executable, str(peer))))
        for name in names:
            await host.start(name)
        servers = [pid for name in names if (pid := host.pid(name)) is not None]
        yield Executa(host, names, servers)


Arguments = Callable[[int], dict[str, Any]]
Expected = Callable[[dict[str, Any]], object]


def _sample(task: Task) -> tuple[Arguments, Expected]:
    expected = ANSWER * task.count
    return (
        lambda number: {"text": text(number, task.size), "count": task.count},
        lambda given: given["text"] + expected,
    )


def _agent(task: Task) -> tuple[Arguments, Expected]:
    expected = [task.count, RUN_TEXT]
    return lambda number: {"count": task.count}, lambda given: expected


_ECHOES: Final = ("inline", "async", "thread")
_TASKS: Final[dict[str, Callable[[Task], tuple[Arguments, Expected]]]] = {
    "sample": _sample,
    "agent": _agent,
}
