"""The application: its subcommands, and one way for all of them to end.

Subcommands of other distributions join by the entry-point group ``executa.commands``.
"""

import sys
from importlib import import_module
from importlib.metadata import entry_points, version
from typing import Any, Final

from cyclopts import App, CycloptsError
from rich.console import Console

from executa_host.cli import exits
from executa_host.cli.demo import demo
from executa_host.cli.oneshot import describe, health, invoke, why
from executa_host.cli.output import silence
from executa_host.cli.running import exit_code
from executa_protocol.errors import ExecutaError

COMMANDS: Final = "executa.commands"
"""The entry-point group of subcommands."""

_OURS: Final = {
    "serve": "executa_host.cli.serve:serve",
    "actions": "executa_host.cli.actions:actions_app",
    "sessions": "executa_host.cli.sessions:sessions_app",
    "keys": "executa_host.cli.keys:keys_app",
}


def build(*, eager: bool = True) -> App:
    """The application with every subcommand that is installed.

    Without `eager` those of other distributions are imported when they are called; with it
    their help is there.
    """
    app = App(
        name="executa",
        help="Run, write and watch Executa plugins.",
        version=lambda: version("executa-host"),
        result_action="return_value",
    )
    for command in (demo, describe, invoke, health, why):
        app.command(command)
    for name, where in _OURS.items():
        # What only a server or its callers need is imported when it is called.
        app.command(_loaded(where) if eager else where, name=name)
    for entry in entry_points(group=COMMANDS):
        app.command(entry.load() if eager else entry.value, name=entry.name)
    return app


def _loaded(where: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit. A person gets a sentence, never a traceback."""
    errors = Console(stderr=True)
    code: Any = exits.OK
    words = sys.argv[1:] if arguments is None else arguments
    eager = not words or words[0].startswith("-")
    try:
        code = build(eager=eager)(
            arguments, exit_on_error=False, print_error=True, error_console=errors
        )
    except CycloptsError:
        code = exits.USAGE  # it has been printed
    except exits.Stop as stop:
        if str(stop):
            errors.print(str(stop), markup=False, highlight=False, style="red")
        code = stop.code
    except ExecutaError as fault:
        errors.print(str(fault), markup=False, highlight=False, style="red")
        code = exit_code(fault)
    except KeyboardInterrupt:
        errors.print("interrupted", style="yellow")
        code = exits.INTERRUPTED
    except BrokenPipeError:
        silence()
    sys.exit(code if isinstance(code, int) else exits.OK)
