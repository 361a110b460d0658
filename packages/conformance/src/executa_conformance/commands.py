"""Check whether a plugin, a host or an HTTP side speaks Executa.

Exit code 0: no must failed. 1: one did, or an expected failure did not.
2: the command line is wrong.
"""

import shlex
from pathlib import Path

from executa_conformance.cli.options import Options, reporting
from executa_conformance.cli.running import run
from executa_protocol.errors import UsageError

__all__ = ["golden", "host", "plugin"]  # each is a subcommand of `executa check`


@reporting
def plugin(*command: str, cases: Path | None = None, options: Options) -> int:
    """Check a plugin: play its host, and nexus, over its stdin and stdout.

    Parameters
    ----------
    command
        The plugin's command, after --.
    cases
        A JSON file of the arguments to call its tools with, in place of generated ones.
    """
    from executa_conformance.plugin.target import check_plugin  # noqa: PLC0415 - late
    from executa_conformance.plugin.tools import read_cases  # noqa: PLC0415 - late

    if not command and not options.list:
        raise UsageError("no command; executa check plugin -- COMMAND...")
    given = read_cases(cases)
    return run("plugin", shlex.join(command), options, check_plugin(command, given))


@reporting
def host(*command: str, hurry: bool = False, options: Options) -> int:
    """Check a host: play scripted plugins, and nexus, against it, through a small adapter.

    Parameters
    ----------
    command
        The command of the host's adapter, after --.
    hurry
        Ask the host to keep time-outs a tenth as long, where its adapter can.
    """
    from executa_conformance.host.target import check_host  # noqa: PLC0415 - late

    if not command and not options.list:
        raise UsageError("no command; executa check host -- COMMAND...")
    work = check_host(command, hurry=hurry)
    return run("host", shlex.join(command), options, work)


@reporting
def golden(*command: str, options: Options) -> int:
    """Check a parser in any language: have it read the golden lines, through an adapter.

    With --strict it is asked to read strictly, and to refuse what is tolerated otherwise.

    Parameters
    ----------
    command
        The adapter's command, after --. It reads a question a line, and prints an answer a line.
    """
    from executa_conformance.golden.target import check_parser  # noqa: PLC0415 - late

    if not command and not options.list:
        raise UsageError("no command; executa check golden -- COMMAND...")
    work = check_parser(command, strict=options.strict)
    return run("parser", shlex.join(command), options, work)
