"""`docs/reference/commands.md`: every command and option, from the command line itself."""

import os
import re
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
    # Defaults that come from the environment are shown as if nothing were set there.
    kept = {name: value for name, value in os.environ.items() if name.startswith("EXECUTA_")}
    for name in kept:
        del os.environ[name]
    try:
        text = build().generate_docs(output_format="markdown", heading_level=2)
    finally:
        os.environ.update(kept)
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("## executa "))
    return [_plain(line) for line in lines[start:]]


def _plain(line: str) -> str:
    """Headings without code marks, so that their anchors are those that others link to."""
    return line.replace("`", "") if re.match(r"#+ ", line) else line
