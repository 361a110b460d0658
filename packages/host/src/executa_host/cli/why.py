"""`executa why`: whether a plugin may make a reverse call, step by step."""

from typing import Annotated, Any

from cyclopts import Parameter

from executa_host.cli import exits
from executa_host.cli.faults import ending, nearest
from executa_host.cli.nexus_options import DEFAULT, NexusOptions
from executa_host.cli.oneshot import DEFAULT_TIMEOUT, Json, Timeout, Words, ask_plugin
from executa_host.cli.output import Screen, write_json
from executa_host.cli.recording import Record
from executa_host.cli.views import show_verdicts
from executa_host.cli.working import Working
from executa_host.host import Host
from executa_protocol.gate import Verdict
from executa_protocol.methods import METHODS


def callable_methods() -> list[str]:
    """The methods that a plugin can call, in the order of the table."""
    return [
        info.name
        for info in METHODS.values()
        if info.direction == "plugin_to_host" and info.kind == "request"
    ]


def check_method(method: str) -> None:
    """Raises `exits.Stop`, with the nearest names, for what no plugin can call."""
    known = callable_methods()
    if method not in known:
        near = nearest(method, known) or f"There are {', '.join(known)}"
        raise exits.Stop(f"{method!r} is no method that a plugin can call. {near}", exits.USAGE)


def refused(verdicts: list[Verdict]) -> bool:
    """Whether any step says no."""
    return any(verdict.passed is False for verdict in verdicts)


def why(
    method: Annotated[
        str,
        Parameter(
            help="A reverse call, such as sampling/createMessage.",
            completer=lambda _: callable_methods(),
        ),
    ],
    /,
    *plugin: Words,
    json: Json = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    record: Record = None,
    options: NexusOptions = DEFAULT,
) -> int:
    """Say, step by step, whether a plugin may make a reverse call, and what would unlock it."""

    async def ask(host: Host, name: str, _: Working) -> Any:
        return await host.ask_why(name, method)

    with ending(json=json):
        check_method(method)
        verdicts = ask_plugin(plugin, ask, options, timeout=timeout, quiet=json, record=record)
    if json:
        write_json({"ok": not refused(verdicts), "method": method, "steps": verdicts})
    else:
        show_verdicts(Screen(highlight=False), verdicts)
    return exits.REFUSED if refused(verdicts) else exits.OK
