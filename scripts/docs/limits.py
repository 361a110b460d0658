"""`docs/reference/limits.md`: every limit with its value, its unit and its reason."""

import ast
import itertools
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

from msgspec import Struct

from scripts.docs.markdown import code, page, prose, table

MODULES: Final = {
    "executa_protocol.limits": "The protocol",
    "executa_host.actions.limits": "Durable work",
    "executa_host.api.limits": "The HTTP API",
}
"""Every module of limits, and the heading that it gets."""

_TIMES: Final = {"DAY": "days", "HOUR": "h", "MINUTE": "min", "SECOND": "s"}
_SIZES: Final = frozenset({"KIB", "MIB"})
UNITS: Final = frozenset({*_TIMES, *_SIZES})
"""Constants that are units and no limits."""


class Limit(Struct, frozen=True):
    """One constant: its name, the text under it, and how its value is written."""

    name: str
    why: str
    value: ast.expr


def limits_page() -> str:
    """Every constant of every module."""
    parts = [
        "Plain numbers are seconds where they are times, and milliseconds for durable work, as in",
        "its records. What may be set names its constant as the default.",
        "",
    ]
    for name, heading in MODULES.items():
        module = import_module(name)
        parts += [f"## {heading}", "", f"`{name}`", ""]
        rows = (
            (code(limit.name), _value(limit, module), prose(limit.why))
            for limit in limits_of(module)
        )
        parts += table(("Limit", "Value", "Why"), rows)
    return page("Limits", parts)


def limits_of(module: ModuleType) -> list[Limit]:
    """The constants of a module, without units; a text speaks for all that stand right above it."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    found: list[Limit] = []
    waiting: list[tuple[str, ast.expr]] = []
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            waiting.append((node.target.id, node.value))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and waiting:
            found += [Limit(name, str(node.value.value), value) for name, value in waiting]
            waiting = []
    found += [Limit(name, "", value) for name, value in waiting]
    return [limit for limit in found if limit.name not in UNITS]


def texts_of(module: ModuleType) -> dict[str, str]:
    """The text under each constant or type of a module, where there is one."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for node, after in itertools.pairwise(tree.body):
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", 0)]
            found |= {
                each.id: str(after.value.value) for each in targets if isinstance(each, ast.Name)
            }
    return found


def _value(limit: Limit, module: ModuleType) -> str:
    """The value in the unit that it is written in."""
    value: float = getattr(module, limit.name)
    names = {node.id for node in ast.walk(limit.value) if isinstance(node, ast.Name)}
    for unit, word in _TIMES.items():
        size: int = getattr(module, unit, 0)
        if names & set(_TIMES) and size and value % size == 0:
            return f"{value // size:,} {word}"
    if names and isinstance(value, int) and value % 1024 == 0:
        size = value // 1024
        return f"{size:,} KiB" if size % 1024 else f"{size // 1024} MiB"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.10g}"
