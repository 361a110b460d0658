"""What a command is for, read from its source: the list of commands is shown without imports.

Owns how the source of an object is found and how its first sentence is read: the docstring of
a function or a module, or the ``help`` of a cyclopts ``App``. A command whose source cannot be
had is imported.
"""

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any


def summary(where: str) -> str:
    """The first line of help of ``module:name`` or of a module; empty if it has none."""
    module, _, name = where.partition(":")
    path = _source(module)
    text = None if path is None else _written(path, name)
    if text is None:
        text = _imported(module, name)
    return _first_line(text)


def _source(module: str) -> Path | None:
    """The file of a module, none of whose packages is imported for that."""
    folders: list[str] | None = None
    origin: str | None = None
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:count]), folders)
        if spec is None:
            return None
        folders = list(spec.submodule_search_locations or ())
        origin = spec.origin
    return Path(origin) if origin is not None and origin.endswith(".py") else None


def _written(path: Path, name: str) -> str | None:
    """The help text in the source; None if it is not there."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    if not name:
        return ast.get_docstring(tree) or ""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return ast.get_docstring(node) or ""
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in _targets(node):
            return _help_of(node.value)
    return None


def _targets(node: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    for target in node.targets if isinstance(node, ast.Assign) else (node.target,):
        if isinstance(target, ast.Name):
            yield target.id


def _help_of(value: ast.expr | None) -> str | None:
    for keyword in value.keywords if isinstance(value, ast.Call) else ():
        if keyword.arg == "help" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    return None


def _imported(module: str, name: str) -> str:
    try:
        found: Any = import_module(module)
        if name:
            found = getattr(found, name)
    except (ImportError, AttributeError) as fault:
        # One that is broken must not hide the others.
        return f"Cannot be loaded: {fault}"
    return str(getattr(found, "help", None) or getattr(found, "__doc__", None) or "")


def _first_line(text: str) -> str:
    """The first paragraph on one line."""
    paragraph = text.strip().partition("\n\n")[0]
    return " ".join(paragraph.split())
