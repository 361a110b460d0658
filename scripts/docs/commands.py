"""`docs/reference/commands.md`: every command and option, from the command line itself."""

import os
import re
import sys
from typing import Final

from executa_host.cli import exits
from executa_host.cli.app import build
from scripts.docs.limits import limits_of
from scripts.docs.markdown import page, table

_INTRO: Final = """\
`pip install "executa-host[cli]"` brings the `executa` command. PLUGIN is a folder, a file, or a
command after `--`. Results go to standard output, everything else to standard error, and
`--json` makes both ends machine-readable.

The stand-in for nexus is also `python -m executa_nexus_stub`, and the schemas of the wire are
written by `python -m executa_protocol.schema`.

## Exit codes

They are the same for every command.
"""

_MEANINGS: Final = {
    "OK": "Fine.",
    "INTERRUPTED": "Ctrl-C, as shells count it.",
}


def commands_page() -> str:
    """The help of every command, as one page."""
    codes = [
        (str(getattr(exits, limit.name)), _MEANINGS.get(limit.name) or limit.why)
        for limit in limits_of(exits)
    ]
    parts = [*_INTRO.splitlines(), "", *table(("Code", "Meaning"), codes), *_commands()]
    return page("Commands", parts)


def _commands() -> list[str]:
    # Defaults that come from the environment are shown as if nothing were set there, and the
    # usage of subcommands begins with the name of the program, whatever this one is called.
    kept = {name: value for name, value in os.environ.items() if name.startswith("EXECUTA_")}
    words = sys.argv
    for name in kept:
        del os.environ[name]
    sys.argv = ["executa"]
    try:
        text = build().generate_docs(output_format="markdown", heading_level=2)
    finally:
        sys.argv = words
        os.environ.update(kept)
    lines = text.splitlines()
    # Before the first group stand a title and a table of contents, which this page has already.
    start = next(n for n, line in enumerate(lines) if line.startswith("**"))
    return ["## Commands", "", *(_plain(line) for line in lines[start:])]


def _plain(line: str) -> str:
    """Headings without code marks, for their anchors, and no default that says nothing."""
    if re.match(r"#+ ", line):
        return line.replace("`", "")
    return re.sub(r" \*\[default: (?:\"\"|\(\)|False)\]\*", "", line)
