"""The methods by chapter: wire structs, their checks, and the table of all of them.

Names are loaded when they are first used: a plugin that only answers invokes does not pay
for the structs of every chapter, which the table needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from executa_protocol.methods.extensions import canonical_name
    from executa_protocol.methods.info import MethodInfo
    from executa_protocol.methods.reading import InvalidParams, refusal
    from executa_protocol.methods.registry import METHODS, unlocks

__all__ = ["METHODS", "InvalidParams", "MethodInfo", "canonical_name", "refusal", "unlocks"]

_HOMES = {
    "METHODS": "registry",
    "InvalidParams": "reading",
    "MethodInfo": "info",
    "canonical_name": "extensions",
    "refusal": "reading",
    "unlocks": "registry",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{home}"), name)
