"""The house rules that a reviewer would otherwise have to remember.

One version, imports that flow one way, a protocol core without I/O, files of a readable size, and
nothing that names the machine the project was written on.
"""

import ast
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.support.sources import (
    PACKAGES,
    ROOT,
    imports,
    mentions,
    parse,
    source_files,
    source_folder,
)

# What each package may import of ours. Host and plugin meet the others only through entry points.
FLOW = {
    "executa_protocol": set[str](),
    "executa_sdk": {"executa_protocol"},
    "executa_nexus_stub": {"executa_protocol"},
    "executa_host": {"executa_protocol"},
    "executa_conformance": {"executa_protocol"},
}

MAX_LINES = 350

# What the protocol's core leaves to `aio` and to the programs around it.
IO_MODULES = {
    "aiohttp",
    "asyncio",
    "concurrent",
    "fcntl",
    "http",
    "mmap",
    "multiprocessing",
    "select",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "socketserver",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "urllib.request",
    "uvloop",
}
IO_NAMES = {"open", "input", "print"}
# Of these modules, what names things, stays in memory or draws randomness; all else may do I/O.
PURE_NAMES = {
    "io": {"BytesIO", "StringIO"},
    "os": {"PathLike", "fspath", "linesep", "sep", "stat_result", "urandom"}
    | {name for name in dir(os) if name.startswith("O_")},
    "pathlib": {"PurePath", "PurePosixPath", "PureWindowsPath"},
}

in_each_package = pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)


def _project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _requirement(line: str) -> tuple[str, str]:
    """Name and specifier of a requirement, without its extras and markers."""
    match = re.match(r"([\w.-]+)(?:\[[^]]*\])?\s*([^;]*)", line)
    assert match, f"not a requirement: {line!r}"
    return _normal(match[1]), match[2].strip()


def _where(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


# --- One version. ---------------------------------------------------------------------------------


@in_each_package
def test_every_package_has_the_version_of_the_workspace(package: Path) -> None:
    project, version = _project(package), _project(ROOT)["version"]

    assert project["version"] == version
    assert metadata.version(project["name"]) == version, "stale install; run `uv sync`"


@in_each_package
def test_packages_pin_each_other_to_the_version_of_the_workspace(package: Path) -> None:
    project, version = _project(package), _project(ROOT)["version"]
    extras = project.get("optional-dependencies", {}).values()
    ours = {_normal(_project(other)["name"]) for other in PACKAGES}

    for line in [*project["dependencies"], *(line for extra in extras for line in extra)]:
        name, specifier = _requirement(line)
        if name in ours:
            assert specifier == f"=={version}", line


# --- Imports flow one way. ------------------------------------------------------------------------


@in_each_package
def test_imports_of_our_own_flow_one_way(package: Path) -> None:
    own = source_folder(package).name
    allowed = {own, *FLOW[own]}

    wrong = [
        f"{_where(path, found.line)} imports {found.name}"
        for path in source_files(package)
        for found in imports(parse(path))
        if found.top.startswith("executa_") and found.top not in allowed
    ]

    assert not wrong


@in_each_package
def test_every_imported_library_is_declared(package: Path) -> None:
    """A dependency of an extra may be imported in the folder or module named like the extra.

    Elsewhere only in a function or a try block, so that the package loads without the extra.
    """
    project = _project(package)
    own = source_folder(package)
    required = {_requirement(line)[0] for line in project["dependencies"]}
    extras = {
        extra: {_requirement(line)[0] for line in lines}
        for extra, lines in project.get("optional-dependencies", {}).items()
    }
    providers: dict[str, list[str]] = dict(metadata.packages_distributions()) | {
        # Installed from the workspace, ours have no list of modules.
        source_folder(other).name: [_project(other)["name"]]
        for other in PACKAGES
    }

    wrong: list[str] = []
    for path in source_files(package):
        room = path.relative_to(own).with_suffix("").parts[0]
        for found in imports(parse(path)):
            if found.top in sys.stdlib_module_names or found.top == own.name:
                continue
            allowed = required.union(
                *(names for extra, names in extras.items() if found.deferred or room == extra)
            )
            if not allowed & {_normal(name) for name in providers.get(found.top, [])}:
                wrong.append(f"{_where(path, found.line)} imports {found.name}")

    assert not wrong


# --- No I/O in the protocol. ----------------------------------------------------------------------


def _core_files() -> list[Path]:
    """The protocol's files, but `aio` and the command module `schema`, which writes a file."""
    folder = source_folder(ROOT / "packages" / "protocol")
    return [
        path
        for path in source_files(ROOT / "packages" / "protocol")
        if path.relative_to(folder).parts[0] not in {"aio", "schema", "schema.py"}
    ]


def _does_io(name: str) -> bool:
    """Whether a dotted name, imported or read, belongs to what the core must not touch."""
    module, _, rest = name.partition(".")
    if module in PURE_NAMES:
        return bool(rest) and rest.partition(".")[0] not in PURE_NAMES[module]
    parts = name.split(".")
    return any(".".join(parts[: count + 1]) in IO_MODULES for count in range(len(parts)))


def _io_in(tree: ast.Module) -> list[tuple[str, int]]:
    return [
        *((found.name, found.line) for found in imports(tree) if _does_io(found.name)),
        *(
            (name, line)
            for name, line in mentions(tree)
            if name in IO_NAMES or (name.partition(".")[0] in PURE_NAMES and _does_io(name))
        ),
    ]


@pytest.mark.parametrize("path", _core_files(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_protocol_outside_aio_does_no_io(path: Path) -> None:
    assert not [f"{_where(path, line)} uses {name}" for name, line in _io_in(parse(path))]


@pytest.mark.parametrize(
    ("source", "does_io"),
    [
        ("import asyncio", True),
        ("from asyncio import Event", True),
        ("import urllib.request", True),
        ("from urllib.parse import urlsplit", False),
        ("import importlib; importlib.import_module('socket')", True),
        ("from os import remove", True),
        ("import os; os.remove('x')", True),
        ("import os; os.fspath(x)", False),
        ("from pathlib import Path", True),
        ("import pathlib; pathlib.Path('x').read_text()", True),
        ("from pathlib import PurePosixPath", False),
        ("from io import BytesIO", False),
        ("open('x')", True),
        ("session.open('x')", False),
    ],
)
def test_io_is_told_from_what_only_looks_like_it(source: str, does_io: bool) -> None:
    assert bool(_io_in(ast.parse(source))) is does_io


# --- Files. ---------------------------------------------------------------------------------------


@in_each_package
def test_every_package_is_typed_licensed_and_described(package: Path) -> None:
    assert (source_folder(package) / "py.typed").is_file()
    assert (package / "README.md").read_text(encoding="utf-8").strip()
    assert (package / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@in_each_package
def test_no_source_file_is_longer_than_one_can_hold_in_mind(package: Path) -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in source_files(package)
    }

    assert {name: count for name, count in lengths.items() if count > MAX_LINES} == {}


def test_no_file_names_the_machine_it_was_written_on() -> None:
    # Files that git tracks or would track: also what is about to be committed.
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    # In pieces, or this file would name them.
    private = re.compile(rb"/work" + rb"/|\.\./" + rb"shared")

    named: list[str] = []
    for name in filter(None, listing.stdout.decode().split("\0")):
        path = ROOT / name
        if path.is_file() and (match := private.search(path.read_bytes())):
            named.append(f"{name}: {match[0].decode()}")

    assert not named
