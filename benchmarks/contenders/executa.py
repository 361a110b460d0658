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
from executa_host import Host, PluginSpec
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
        host, names = self._host, self._names
        arguments, expected = _TASKS[task.kind](task)
        kind, count, each = task.kind, len(names), task.each
        turns = itertools.cycle(names)

        async def call(number: int) -> None:
            name = names[number // each % count] if each else next(turns)
            given = arguments(number)
            outcome = await host.invoke(name, kind, given)
            if outcome.data != expected(given):
                msg = f"{name}.{kind} answered {outcome.data!r:.80}, {outcome.error!r:.80}"
                raise WrongAnswer(msg)

        return call


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


def _echo(task: Task) -> tuple[Arguments, Expected]:
    return lambda number: {"text": text(number, task.size)}, lambda given: given["text"]


def _sample(task: Task) -> tuple[Arguments, Expected]:
    expected = ANSWER * task.count
    return (
        lambda number: {"text": text(number, task.size), "count": task.count},
        lambda given: given["text"] + expected,
    )


def _agent(task: Task) -> tuple[Arguments, Expected]:
    expected = [task.count, RUN_TEXT]
    return lambda number: {"count": task.count}, lambda given: expected


_TASKS: Final[dict[str, Callable[[Task], tuple[Arguments, Expected]]]] = {
    "inline": _echo,
    "async": _echo,
    "thread": _echo,
    "sample": _sample,
    "agent": _agent,
}
