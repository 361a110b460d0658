"""`executa dev`: the command itself, which puts the parts together and takes them down."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Annotated

from cyclopts import Parameter

from executa_host.cli import exits
from executa_host.cli.detect import find_plugin
from executa_host.cli.dev.commands import Commands
from executa_host.cli.dev.completing import DevCompleter
from executa_host.cli.dev.lines import Lines, PipedLines, TerminalLines
from executa_host.cli.dev.loop import Loop
from executa_host.cli.dev.session import DevSession
from executa_host.cli.dev.show import Show
from executa_host.cli.faults import ending
from executa_host.cli.nexus_options import DEFAULT, NexusOptions, open_host
from executa_host.cli.oneshot import Json, Words
from executa_host.cli.recording import Record
from executa_host.cli.running import run
from executa_host.cli.views import typed
from executa_host.spec import PluginSpec


def dev(
    *plugin: Words,
    json: Json = False,
    no_watch: Annotated[bool, Parameter(help="Do not reload when the source changes.")] = False,
    record: Record = None,
    options: NexusOptions = DEFAULT,
) -> int:
    """Try a plugin at a prompt while you write it; it is started anew when its source changes.

    Without a terminal, lines are read from standard input, and the exit code is that of the
    first one that failed.
    """

    def find() -> PluginSpec:
        return options.equip(find_plugin(plugin))

    async def work() -> int:
        spec = find()
        show = Show(json=json)
        async with open_host(spec, options, trace=show.trace, record=record) as (host, nexus):
            session = DevSession(host, nexus, spec, find, show)
            commands = Commands(session, show)
            terminal = sys.stdin.isatty() and sys.stdout.isatty() and not json
            async with _watching(session, () if no_watch else plugin or (".",)):
                show.hint(typed(spec.command))
                if not await session.start() and not terminal:
                    return exits.BROKEN
                lines: Lines = PipedLines()
                if terminal:
                    show.hint("help lists commands, TAB completes, Ctrl-D leaves")
                    completer = DevCompleter(session, commands)
                    lines = TerminalLines(spec.name, completer, spec.credentials)
                try:
                    return await Loop(lines, commands, session, show, terminal=terminal).run()
                finally:
                    lines.close()

    with ending(json=json):
        return run(work())


@asynccontextmanager
async def _watching(session: DevSession, words: Sequence[str]) -> AsyncGenerator[None]:
    """The source is watched in the block; without words it is not."""
    if not words:
        yield
        return
    task = asyncio.create_task(session.follow_source(words))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
