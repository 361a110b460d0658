"""The `executa` command. Needs the extra ``cli``."""

from executa_host.cli.app import main

__all__ = ["main"]
