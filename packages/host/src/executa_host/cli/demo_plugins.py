"""The plugins that the demo runs: the SDK's examples, each a program started by its name."""

import sys
from typing import Final

_PACKAGE: Final = "executa_sdk.examples"


def command_of(plugin: str) -> tuple[str, ...]:
    """How an example is started, from any folder; -P keeps what lies there out of its imports."""
    return (sys.executable, "-P", "-m", f"{_PACKAGE}.{plugin}")
