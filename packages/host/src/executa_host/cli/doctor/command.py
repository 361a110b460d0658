"""`executa doctor`: the command, and how its checks are shown."""

from typing import Annotated, Any, Final

from cyclopts import Parameter
from msgspec import structs
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from executa_host.cli import exits
from executa_host.cli.arguments import read_arguments
from executa_host.cli.detect import find_plugin
from executa_host.cli.doctor.checks import Check, Status
from executa_host.cli.doctor.evidence import Evidence
from executa_host.cli.doctor.examination import Examination, Wanted
from executa_host.cli.faults import ending
from executa_host.cli.nexus_options import DEFAULT, NexusOptions, open_host
from executa_host.cli.oneshot import Json, Words
from executa_host.cli.output import Screen, write_json
from executa_host.cli.recording import Record
from executa_host.cli.running import run
from executa_host.cli.views import typed
from executa_host.cli.working import working
from executa_host.patience import Patience

_SIGNS: Final[dict[Status, tuple[str, str]]] = {
    "ok": ("✓", "green"),
    "warning": ("!", "yellow"),
    "failed": ("✗", "red"),
    "skipped": ("-", "dim"),
}
_NAME_WIDTH: Final = 13


def doctor(
    *plugin: Words,
    json: Json = False,
    tool: Annotated[
        str, Parameter(help="Call this tool. Default: the most harmless ones, with made-up values.")
    ] = "",
    args: Annotated[
        str,
        Parameter(help="Its arguments as JSON, @FILE, or - for stdin.", allow_leading_hyphen=True),
    ] = "{}",
    no_invoke: Annotated[bool, Parameter(help="Call no tool.")] = False,
    timeout: Annotated[float, Parameter(help="Seconds that a call may take.")] = 30.0,
    patience: Annotated[
        float, Parameter(help="Multiplies the time-outs of starting, 0.01 to 100.")
    ] = 1.0,
    record: Record = None,
    options: NexusOptions = DEFAULT,
) -> int:
    """Find out what is wrong with a plugin, and what to do about it.

    Checks follow each other from starting it to a reverse call that comes back, and end at the
    first failure.
    """
    with ending(json=json):
        if not 0.01 <= patience <= 100 or not timeout > 0:
            msg = "--patience is from 0.01 to 100, and --timeout more than 0"
            raise exits.Stop(msg, exits.USAGE)
        wanted = Wanted(tool, read_arguments(args), not no_invoke, timeout)
        spec = options.equip(find_plugin(plugin))
        show = _Show(json=json)
        show.check(Check("command", "ok", typed(spec.command)))
        waits = _scaled(patience)

        async def examine() -> str:
            evidence = Evidence()
            opened = open_host(spec, options, trace=evidence.take, patience=waits, record=record)
            async with opened as (host, _):
                with working(quiet=json) as shown:
                    examination = Examination(
                        host, spec, evidence, waits, wanted=wanted, on=shown.on
                    )
                    async for check in examination.run():
                        show.check(check)
                return examination.name

        name = run(examine())
    return show.end(name)


def _scaled(factor: float) -> Patience:
    plain = Patience()
    starting = ("initialize", "describe", "describe_onefile", "health", "stop")
    return structs.replace(plain, **{name: getattr(plain, name) * factor for name in starting})


class _Show:
    """Checks as they come, and what they came to."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._checks: list[Check] = []
        self._screen = Screen(highlight=False)

    def check(self, check: Check) -> None:
        self._checks.append(check)
        if self._json:
            return
        sign, style = _SIGNS[check.status]
        line = Table.grid(padding=(0, 1))
        line.add_column(width=1)
        line.add_column(width=_NAME_WIDTH)
        line.add_column(overflow="fold")
        found = Text(check.found, style="dim" if check.status == "skipped" else "")
        line.add_row(Text(sign, style=style), Text(check.name, style="bold"), found)
        self._screen.print(line)
        if check.advice:
            advice = Text(f"→ {check.advice}", style="cyan")
            self._screen.print(Padding(advice, (0, 0, 0, 4), expand=False))

    def end(self, name: str) -> int:
        """The sum of it; the exit code."""
        failed = [check for check in self._checks if check.status == "failed"]
        code = exits.BROKEN if failed else exits.OK
        if self._json:
            document: dict[str, Any] = {"ok": not failed, "plugin": name}
            write_json({**document, "checks": self._checks})
            return code
        warnings = sum(check.status == "warning" for check in self._checks)
        if failed:
            text = f"{name} fails at: {failed[0].name}"
        elif warnings:
            text = f"{name} works, with {warnings} warning{'s' * (warnings != 1)}"
        else:
            text = f"{name} is well"
        self._screen.print(Text(text, style="bold red" if failed else "bold green"))
        return code
