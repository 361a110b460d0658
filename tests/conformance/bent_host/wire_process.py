"""What a host can get wrong with a plugin's process."""

from collections.abc import Callable
from typing import Any

from tests.conformance.bent_host.wire_fault import Fault


def surroundings(change: Callable[[dict[str, str]], Any]) -> type[Fault]:
    """A host that gives its plugins another environment."""

    class Changed(Fault):
        def environment(self, env: dict[str, str]) -> dict[str, str]:
            change(env)
            return env

    return Changed


def exits(code_of: Callable[[int], int]) -> type[Fault]:
    """A host that reads exit codes in its own way."""

    class Read(Fault):
        def exit_code(self, code: int) -> int:
            return code_of(code)

    return Read


def ending(*numbers: int) -> type[Fault]:
    """A host that sends signals as soon as it has closed stdin."""

    class Ends(Fault):
        at_end = numbers

    return Ends


class NoStderr(Fault):
    """stderr is no pipe."""

    stderr = "null"


class StuckStderr(Fault):
    """Nobody reads stderr."""

    stderr = "stuck"


class LeavesGroup(Fault):
    """What the plugin started is not known to the host."""

    leaves_group = True


class Respawns(Fault):
    """A plugin that fell is started again at once, however often."""

    respawns = True
