"""``python -m executa_host.cli`` is the `executa` command."""

from executa_host.cli import main

main()
