"""The `executa` command, from the extra ``cli``."""

import sys


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit. Without the extra it says how to install it."""
    try:
        from executa_host.cli.app import main as run  # noqa: PLC0415 - it needs the extra
    except ModuleNotFoundError as fault:
        library = (fault.name or "").partition(".")[0]
        if library == "executa_host":
            raise
        message = f'the executa command needs {library}: pip install "executa-host[cli]"\n'
        sys.stderr.write(message)
        sys.exit(2)
    run(arguments)
