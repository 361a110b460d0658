"""Runs the stranger: ``python -I -S tests/conformance/peers [--v1] [--fault NAME]``."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.conformance.peers import broken_calls, broken_life, broken_services, broken_wire
from tests.conformance.peers.faults import FAULTS
from tests.conformance.peers.plugin import Plugin, claim

FAULTY = (broken_calls, broken_life, broken_services, broken_wire)
"""Whose import fills `FAULTS`."""


def main(words: list[str]) -> int:
    """Serve, with the fault that is asked for."""
    plugin = Plugin(claim())
    plugin.v1 = "--v1" in words
    if "--fault" in words:
        FAULTS[words[words.index("--fault") + 1]](plugin)
    return plugin.run()


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # threads that wait for a host that has gone are not waited for
