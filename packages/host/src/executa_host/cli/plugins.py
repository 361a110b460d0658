"""`executa plugins` and `executa logs`: the plugins of a running host.

Needs a key with the scope `admin`: processes serve every tenant of a user.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Final

from cyclopts import App, Parameter
from rich.table import Table
from rich.text import Text

from executa_host.api.plugins import PluginLog
from executa_host.cli import exits
from executa_host.cli.output import Screen, reader_gone, tell
from executa_host.cli.plugin_views import show_status, state_text
from executa_host.cli.remote import HERE, Remote, print_json, screen, speak
from executa_host.cli.timeline import clean
from executa_host.cli.working import indented
from executa_host.client import Client
from executa_host.status import PluginStatus
from executa_protocol.limits import QUERY_DEFAULT, QUERY_MAX

plugins_app: Final = App(
    name="plugins", help="See, restart and reload the plugins of a running host."
)

Name = Annotated[str, Parameter(help="The plugin's name in the host's configuration.")]
User = Annotated[
    str, Parameter(help="Whose process. Default: that of the key's own user.", name="--user")
]

ASK_AGAIN: Final = 0.5
"""Seconds between two looks at a log that is followed."""

_MIB: Final = 1024 * 1024
_ROOMY: Final = 72


@plugins_app.command
def status(plugin: Name = "", /, *, user: User = "", remote: Remote = HERE) -> int:
    """Show how every plugin is, or one of them."""
    if plugin:
        return _show(speak(remote, lambda client: client.plugins.get(plugin, user_id=user)), remote)
    found = speak(remote, lambda client: client.plugins.list())
    if remote.json:
        return print_json({"ok": True, "plugins": found})
    _print_table(found)
    return exits.OK


@plugins_app.command
def restart(plugin: Name, /, *, user: User = "", remote: Remote = HERE) -> int:
    """Stop a plugin at once, forget its faults, and start it anew."""
    return _by_hand(lambda client: client.plugins.restart(plugin, user_id=user), remote)


@plugins_app.command(name="reload")
def reload_plugin(plugin: Name, /, *, user: User = "", remote: Remote = HERE) -> int:
    """Let what runs end, then start a plugin anew as the configuration has it now."""
    return _by_hand(lambda client: client.plugins.reload(plugin, user_id=user), remote)


def logs(
    plugin: Name,
    /,
    *,
    follow: Annotated[
        bool, Parameter(help="Go on with what it writes, until Ctrl-C.", name=("--follow", "-f"))
    ] = False,
    lines: Annotated[int, Parameter(help=f"How many of the last ones, 1 to {QUERY_MAX:,}.")] = (
        QUERY_DEFAULT
    ),
    user: User = "",
    remote: Remote = HERE,
) -> int:
    """Show what a plugin of a running host wrote to stderr last."""
    if not 1 <= lines <= QUERY_MAX:
        raise exits.Stop(f"--lines: {lines} is not from 1 to {QUERY_MAX:,}", exits.USAGE)

    async def read(client: Client) -> None:
        shown = _Lines(remote)
        shown.take(await client.plugins.log(plugin, user_id=user, limit=lines))
        while follow and not reader_gone():
            await asyncio.sleep(ASK_AGAIN)
            shown.take(await client.plugins.log(plugin, user_id=user, limit=QUERY_MAX))

    speak(remote, read)
    return exits.OK


class _Lines:
    """Prints the lines of a log that have not been printed yet."""

    def __init__(self, remote: Remote) -> None:
        self._json = remote.json
        self._screen = Screen(highlight=False)
        self._written = -1

    def take(self, log: PluginLog) -> None:
        """Print what is new in it."""
        fresh, left_out = log.lines, 0
        if 0 <= self._written <= log.written:
            count = log.written - self._written
            fresh = log.lines[-count:] if count else ()
            left_out = count - len(fresh)
        if left_out and not self._json:
            tell(f"{left_out:,} lines were not kept", style="yellow")
        for line in fresh:
            if self._json:
                print_json({"plugin": log.plugin, "line": line})
            else:
                self._screen.print(indented(line), markup=False, soft_wrap=True)
        self._written = log.written


def _by_hand(ask: Callable[[Client], Awaitable[PluginStatus]], remote: Remote) -> int:
    return _show(speak(remote, ask), remote)


def _show(found: PluginStatus, remote: Remote) -> int:
    if remote.json:
        return print_json({"ok": True, "plugin": found})
    show_status(screen(), found)
    return exits.OK


def _print_table(found: Sequence[PluginStatus]) -> None:
    """One plugin a line; where there is little room name and state alone."""
    if not found:
        screen().print("no plugins", style="dim")
        return
    console = screen()
    headings = ("plugin", "state", "user", "process", "memory", "running", "launches", "last fault")
    shown = len(headings) if console.width >= _ROOMY else 2
    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(headings[:shown]):
        table.add_column(heading, overflow="fold", no_wrap=number == 0)
    for each in found:
        memory = "" if each.resident_bytes is None else f"{each.resident_bytes / _MIB:.0f} MiB"
        cells = (
            Text(clean(each.plugin)),
            state_text(each.state),
            Text(clean(each.user_id)),
            Text("" if each.pid is None else str(each.pid)),
            Text(memory),
            Text(str(each.in_flight)),
            Text(str(each.launches)),
            Text(clean(each.last_fault)),
        )
        table.add_row(*cells[:shown])
    console.print(table)
