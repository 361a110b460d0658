"""Finds a nexus that runs in this process, by the entry-point group ``executa.nexus``."""

from importlib.metadata import entry_points
from typing import Final, cast

from executa_host.cli import exits
from executa_protocol.nexus import Nexus

GROUP: Final = "executa.nexus"


def in_process(name: str = "stub") -> Nexus:
    """The nexus of this name, made anew."""
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        msg = f"no nexus named {name!r} is installed (there is {known}); install executa-nexus-stub"
        raise exits.Stop(msg, exits.USAGE)
    return cast("Nexus", found[name].load()())
