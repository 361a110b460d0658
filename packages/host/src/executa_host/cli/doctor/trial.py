"""Which tool may be called to see whether calls work, and with what.

A tool that the manifest calls read-only comes first. One that asks for approval, or whose
name sounds as if it could not be undone, is only called if the user names it.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import UNSET

from executa_protocol.manifest import Manifest, Parameter, Tool

_ORDER: Final = {"read": 0, "idempotent": 1, "mutating": 2}
_FINAL: Final = frozenset(
    {
        "buy", "cancel", "charge", "clear", "commit", "delete", "deploy", "destroy", "drop",
        "erase", "exec", "execute", "format", "kill", "mail", "order", "pay", "post", "publish",
        "purge", "push", "remove", "reset", "restart", "revoke", "rm", "send", "shutdown", "stop",
        "terminate", "transfer", "uninstall", "unlink", "wipe",
    }
)  # fmt: skip
"""Words in the names of tools that are better not called by way of trial."""

_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_EXAMPLES: Final[dict[str, Any]] = {
    "string": "example",
    "integer": 1,
    "number": 1,
    "boolean": False,
    "array": [],
    "object": {},
}


def candidates(manifest: Manifest) -> Iterator[Tool]:
    """The tools that may be called, the most harmless first."""
    harmless = [tool for tool in manifest.tools if not tool.approval and not sounds_final(tool)]
    yield from sorted(harmless, key=lambda tool: (_ORDER[tool.effect], _needed(tool)))


def sounds_final(tool: Tool) -> bool:
    """Whether its name has a word of something that cannot be undone."""
    words = {word.lower() for word in _WORDS.findall(tool.name)}
    return tool.effect == "mutating" and bool(words & _FINAL)


def example_arguments(tool: Tool) -> dict[str, Any]:
    """Values of the right types for what is required."""
    return {each.name: _example(each) for each in tool.parameters if each.required}


def _example(parameter: Parameter) -> Any:
    if parameter.default is not UNSET:
        return parameter.default
    if isinstance(parameter.enum, list) and parameter.enum:
        return parameter.enum[0]
    return _EXAMPLES[parameter.type]


def _needed(tool: Tool) -> int:
    return sum(parameter.required for parameter in tool.parameters)
