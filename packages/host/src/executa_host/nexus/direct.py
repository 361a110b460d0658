"""A nexus in this process, found by the entry-point group ``executa.nexus``."""

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, Final, cast

from executa_protocol.errors import UsageError
from executa_protocol.nexus import Nexus

GROUP: Final = "executa.nexus"


def in_process(name: str = "stub", options: Mapping[str, Any] | None = None) -> Nexus:
    """The nexus of this name, made anew with its own `options`.

    Raises `UsageError` if none of this name is installed, or for what it says of its options.
    """
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        msg = f"no nexus named {name!r} is installed (there is {known}); install executa-nexus-stub"
        raise UsageError(msg)
    make = found[name].load()
    return cast("Nexus", make(options) if options else make())
