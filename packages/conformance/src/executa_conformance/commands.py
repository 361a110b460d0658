"""Check whether a plugin, a host or an HTTP side speaks Executa.

Exit code 0: no must failed. 1: one did, or an expected failure did not.
2: the command line is wrong.
"""

import os
import shlex
from pathlib import Path

from executa_conformance.cli.options import Options, reporting
from executa_conformance.cli.running import run
from executa_protocol.errors import UsageError

__all__ = [
    "actions",
    "golden",
    "host",
    "nexus",
    "plugin",
]  # each is a subcommand of `executa check`


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
        Ask the host to keep shorter time-outs, where its adapter can.
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


@reporting
def nexus(*, url: str = "", options: Options) -> int:
    """Check a nexus over HTTP: invokes and their tokens, completions, agent runs, storage.

    The host's key, where one is needed, comes from the environment: EXECUTA_NEXUS_KEY.

    Parameters
    ----------
    url
        Its address, such as http://127.0.0.1:8460.
    """
    from executa_conformance.nexus.target import check_nexus  # noqa: PLC0415 - late

    if not url and not options.list:
        raise UsageError("no address; executa check nexus --url URL")
    work = check_nexus(url, os.environ.get("EXECUTA_NEXUS_KEY", ""))
    return run("nexus", url, options, work)


@reporting
def actions(*, url: str = "", plugin: str = "conformance", options: Options) -> int:
    """Check durable actions and sessions over HTTP.

    The runtime has to serve the kit's own plugin (python -m executa_conformance.actions.plugin).
    Keys come from the environment: EXECUTA_API_KEY, and EXECUTA_OTHER_KEY of a second principal.

    Parameters
    ----------
    url
        Its address, such as http://127.0.0.1:8470.
    plugin
        The name under which the runtime serves the kit's plugin.
    """
    from executa_conformance.actions.target import check_actions  # noqa: PLC0415 - late

    if not url and not options.list:
        raise UsageError("no address; executa check actions --url URL")
    keys = [os.environ.get(name, "") for name in ("EXECUTA_API_KEY", "EXECUTA_OTHER_KEY")]
    return run("actions", url, options, check_actions(url, plugin, *keys))
