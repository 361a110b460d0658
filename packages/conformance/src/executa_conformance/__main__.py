"""Runs the kit: ``python -m executa_conformance plugin -- COMMAND...``."""

import sys

from executa_conformance import commands
from executa_conformance.cli.arguments import call, parser
from executa_protocol.errors import UsageError


def main(words: list[str] | None = None) -> int:
    """The command. Returns its exit code."""
    functions = {name: getattr(commands, name) for name in commands.__all__}
    summary = (commands.__doc__ or "").partition("\n")[0]
    whole = parser("executa_conformance", summary, functions)
    try:
        return call(functions, sys.argv[1:] if words is None else words, whole)
    except UsageError as fault:
        whole.exit(2, f"{fault}\n")
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
