"""What the source of our packages says about itself: which modules it imports and what it touches.

Owns the reading of a file with `ast`; which import is allowed where is for the tests that use it.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(path.parent for path in (ROOT / "packages").glob("*/pyproject.toml"))


@dataclass(frozen=True)
class Import:
    """One absolute import: `name` is the dotted module, with the imported name after it if any."""

    name: str
    line: int
    # Inside a function or a try block: the module loads where the import would fail.
    deferred: bool

    @property
    def top(self) -> str:
        """The top-level module."""
        return self.name.partition(".")[0]


def source_folder(package: Path) -> Path:
    """The one import package of a distribution."""
    (folder,) = (path.parent for path in package.glob("src/*/py.typed"))
    return folder


def source_files(package: Path) -> list[Path]:
    """Every Python file of a distribution."""
    return sorted((package / "src").rglob("*.py"))


def parse(path: Path) -> ast.Module:
    """The syntax tree of one file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(tree: ast.Module) -> Iterator[Import]:
    """Every absolute import, also those that are written as a call with a literal name."""
    yield from _imports(tree, deferred=False)


def _imports(node: ast.AST, *, deferred: bool) -> Iterator[Import]:
    match node:
        case ast.Import(names=names):
            yield from (Import(alias.name, node.lineno, deferred) for alias in names)
        case ast.ImportFrom(module=str(module), names=names, level=0):
            yield from (Import(f"{module}.{alias.name}", node.lineno, deferred) for alias in names)
        case ast.Call(
            func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__"),
            args=[ast.Constant(value=str(module)), *_],
        ):
            yield Import(module, node.lineno, deferred)
        case _:
            inside = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Try
            deferred = deferred or isinstance(node, inside)
            for child in ast.iter_child_nodes(node):
                yield from _imports(child, deferred=deferred)


def mentions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every plain or dotted name that is read, such as `open` or `os.remove`, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                yield name, node.lineno
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                yield f"{owner}.{name}", node.lineno
            case _:
                pass
