"""The application: its subcommands, and one way for all of them to end.

Subcommands of other distributions join by the entry-point group ``executa.commands``, as
``module:function``, ``module:app``, or a module whose ``__all__`` are subcommands of it. A
command is imported when it is called; the list of all of them is made from their sources.
"""

import difflib
import sys
from importlib import import_module
from importlib.metadata import entry_points, version
from typing import Any, Final

from cyclopts import App, CycloptsError, Group, Parameter
from rich.text import Text

from executa_host.cli import exits
from executa_host.cli.output import Screen, silence, tell
from executa_host.cli.summaries import summary
from executa_protocol.errors import ExecutaError

COMMANDS: Final = "executa.commands"
"""The entry-point group of subcommands."""

_WRITE: Final = Group("Write a plugin", sort_key=1)
_WATCH: Final = Group("See what happened", sort_key=2)
_RUN: Final = Group("Run a host", sort_key=3)
_MORE: Final = Group("More", sort_key=4)

_OURS: Final = {
    "dev": "executa_host.cli.dev.command:dev",
    "describe": "executa_host.cli.oneshot:describe",
    "invoke": "executa_host.cli.oneshot:invoke",
    "health": "executa_host.cli.oneshot:health",
    "why": "executa_host.cli.why:why",
    "doctor": "executa_host.cli.doctor.command:doctor",
    "demo": "executa_host.cli.demo:demo",
    "show": "executa_host.cli.show:show",
    "replay": "executa_host.cli.replay:replay",
    "serve": "executa_host.cli.serve:serve",
    "plugins": "executa_host.cli.plugins:plugins_app",
    "logs": "executa_host.cli.plugins:logs",
    "actions": "executa_host.cli.actions:actions_app",
    "sessions": "executa_host.cli.sessions:sessions_app",
    "keys": "executa_host.cli.keys:keys_app",
    "store": "executa_host.cli.store:store_app",
    "completion": "executa_host.cli.completion:completion",
}
_GROUPS: Final = {
    _WRITE: ("new", "dev", "describe", "invoke", "health", "why", "doctor", "check"),
    _WATCH: ("demo", "show", "replay"),
    _RUN: ("serve", "plugins", "logs", "actions", "sessions", "keys", "store", "nexus"),
    _MORE: ("completion",),
}
_GROUP_OF: Final = {name: group for group, names in _GROUPS.items() for name in names}

_EPILOGUE: Final = (
    "Exit codes: 0 fine, 1 a tool or a step failed, 2 usage, 3 a plugin is broken or a host "
    "cannot be reached, 4 refused, 130 interrupted."
)


def build(*, listing: bool = False, called: str = "") -> App:
    """The application with every subcommand that is installed.

    With `listing` each says what it is for; without it a command brings its own words when
    it is called. `called` is the one that will be, if that is known.
    """
    app = App(
        name="executa",
        help="Run, write and watch Executa plugins.",
        help_epilogue=_EPILOGUE,
        version=lambda: version("executa-host"),
        default_parameter=Parameter(negative=(), show_default=_told_default),
        error_formatter=_told_error,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for name, where in sorted(_commands().items()):
        group = _GROUP_OF.get(name, _MORE)
        if listing:
            app.command(where, name=name, group=group, help=summary(where))
        elif ":" in where:
            app.command(where, name=name, group=group)
        elif called in (name, ""):
            app.command(_family(name, where, group))
    for flag in ("--help", "--version"):
        app[flag].group = _MORE
    return app


def _commands() -> dict[str, str]:
    """Where every command is, by its name."""
    return {entry.name: entry.value for entry in entry_points(group=COMMANDS)} | _OURS


def _check_name(word: str) -> None:
    """Raises `exits.Stop` for a command that there is none of, without importing the others."""
    known = _commands()
    if word and not word.startswith(("-", "__")) and word not in known:
        near = difflib.get_close_matches(word, list(known), n=2)
        advice = f"did you mean {' or '.join(near)}?" if near else "executa --help lists them"
        raise exits.Stop(f"there is no command {word[:40]!r}; {advice}", exits.USAGE)


def _family(name: str, where: str, group: Group) -> App:
    """The functions in a module's ``__all__`` as subcommands of one command."""
    module = import_module(where)
    app = App(name=name, help=summary(where), group=group)
    for each in module.__all__:
        app.command(getattr(module, each))
    return app


def _told_default(value: object) -> str | None:
    """A default as help shows it: what is off, empty or open needs no word."""
    return None if value is None or value is False or value in ("", ()) else str(value)


def _told_error(fault: CycloptsError) -> Text:
    """A wrong command line, in the words of every other fault."""
    return Text(str(fault).strip(), style="red")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit. A person gets a sentence, never a traceback."""
    words = sys.argv[1:] if arguments is None else arguments
    code: Any = exits.OK
    try:
        called = "".join(words[:1])
        _check_name(called)
        app = build(listing=not words or words[0] in ("--help", "-h"), called=called)
        code = app(
            words,
            exit_on_error=False,
            print_error=True,
            console=Screen(),
            error_console=Screen(stderr=True),
        )
    except CycloptsError:
        code = exits.USAGE  # it has been printed
    except exits.Stop as stop:
        if str(stop):
            tell(str(stop))
        code = stop.code
    except ExecutaError as fault:
        # Not above: what faults mean is known where plugins are run.
        from executa_host.cli.faults import exit_code  # noqa: PLC0415

        tell(str(fault))
        code = exit_code(fault)
    except KeyboardInterrupt:
        tell("interrupted", style="yellow")
        code = exits.INTERRUPTED
    except BrokenPipeError:
        silence()
    sys.exit(code if isinstance(code, int) else exits.OK)
