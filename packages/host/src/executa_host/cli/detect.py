"""How to start what someone points at: a command, a file, or a folder with a plugin.

Looks at files and knows no processes. A folder is read in the field's order:
executa.json, the scripts of pyproject.toml, a plugin.py, package.json, go.mod, bin/, and at
last a source file that reads as a plugin does.
"""

import difflib
import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct

from executa_host.cli import exits
from executa_host.spec import PluginSpec

_SLOW: Final = frozenset({"uv", "uvx", "npx", "npm", "go", "docker", "pipx"})
"""Commands that may fetch or build before the plugin can answer."""

_NODE: Final = (".js", ".mjs", ".cjs")
_LOOKED_AT: Final = 200
_NAMED: Final = 5
_REQUIREMENT: Final = re.compile(r"[\w.-]+")


class Found(Struct, frozen=True):
    """One way to start a plugin: the command, where it runs, and what said so.

    `tool_id` is the id that nexus knows it by, `one_file` says that it unpacks itself first.
    """

    command: tuple[str, ...]
    cwd: str | None
    why: str
    name: str = ""
    tool_id: str = ""
    one_file: bool = False


def find_plugin(words: Sequence[str], *, name: str = "") -> PluginSpec:
    """The plugin that `words` mean: a folder, a file, or a command with its arguments.

    Raises `exits.Stop` (usage) when there is none, or more than one.
    """
    found = _found(words)
    slow = Path(found.command[0]).name in _SLOW
    return PluginSpec(
        name=name or _plain(found.name) or "plugin",
        command=found.command,
        cwd=found.cwd,
        executa_tool_id=found.tool_id,
        # A wrapper that builds first is as slow on its first launch as a one-file binary.
        type="binary" if slow or found.one_file else "program",
    )


def _found(words: Sequence[str]) -> Found:
    if not words:
        words = (".",)
    path = Path(words[0])
    if len(words) == 1 and path.is_dir():
        return _in_folder(path.resolve())
    if len(words) == 1 and path.is_file():
        return _file(path.resolve(), None)
    if shutil.which(words[0]) is None and not path.is_file():
        msg = (
            f"{words[0]} is no folder, no file and no command; "
            f"name a plugin's folder, or its command after --. {_near(path)}"
        )
        raise exits.Stop(msg.strip(), exits.USAGE)
    return Found(tuple(words), None, "the command given", _name_of(words))


def _in_folder(folder: Path) -> Found:
    for look in _LOOKS:
        found = look(folder)
        if len(found) == 1:
            return found[0]
        if found:
            ways = "; ".join(f"{shlex.join(way.command)} ({way.why})" for way in found)
            msg = f"{folder} has several plugins; name one after --: {ways}"
            raise exits.Stop(msg, exits.USAGE)
    msg = (
        f"no plugin found in {folder}: there is no executa.json, no script in pyproject.toml, "
        "no plugin.py, no package.json with bin or main, no go.mod, no program in bin/ and no "
        f"source that reads as a plugin; name its command after --. {_below(folder)}"
    )
    raise exits.Stop(msg.strip(), exits.USAGE)


def _below(folder: Path) -> str:
    """The folders in this one that hold plugins, for someone who stands above them."""
    found: list[str] = []
    for each in sorted(path for path in folder.iterdir() if path.is_dir())[:_LOOKED_AT]:
        try:
            if any(look(each) for look in _LOOKS):
                found.append(each.name)
        except exits.Stop:
            continue
    more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"There are plugins in {', '.join(found[:_NAMED])}{more}" if found else ""


def _executa_json(folder: Path) -> list[Found]:
    file = folder / "executa.json"
    if not file.is_file():
        return []
    spec = _read(file, json.loads)
    name = str(spec.get("slug") or spec.get("name") or folder.name)
    command = spec.get("command")
    words: list[str] = []
    if isinstance(command, str):
        words = _split(command, file)
    elif isinstance(command, list):
        words = [str(word) for word in cast("list[object]", command)]
    if not words:
        return []
    tool_id = spec.get("tool_id")
    return [
        Found(
            tuple(words),
            str(folder),
            "command in executa.json",
            name,
            tool_id=tool_id if isinstance(tool_id, str) else "",
            one_file=spec.get("type") == "binary",
        )
    ]


def _split(command: str, file: Path) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as fault:
        msg = f"{file}: command: {str(fault).lower()}"
        raise exits.Stop(msg, exits.USAGE) from None


def _pyproject(folder: Path) -> list[Found]:
    file = folder / "pyproject.toml"
    if not file.is_file():
        return []
    project = _read(file, tomllib.loads).get("project", {})
    scripts: dict[str, str] = project.get("scripts", {})
    name = str(project.get("name", folder.name))
    if scripts and _runs_here(folder, project):
        return _plugin_file(folder)  # without waiting for an environment of its own
    ways = [
        Found(("uv", "run", "--project", str(folder), script), str(folder), "its script", name)
        for script in scripts
    ]
    same = [way for way in ways if way.command[-1] == name]
    return same or ways


def _runs_here(folder: Path, project: dict[str, Any]) -> bool:
    """Whether its plugin.py runs by itself, and all that it needs is installed beside us."""
    file = folder / "plugin.py"
    if not file.is_file() or "__main__" not in file.read_text(encoding="utf-8", errors="replace"):
        return False
    names = [_REQUIREMENT.match(str(line)) for line in project.get("dependencies", [])]
    try:
        for name in names:
            metadata.distribution(name[0] if name else "")
    except (metadata.PackageNotFoundError, ValueError):
        return False
    return True


def _plugin_file(folder: Path) -> list[Found]:
    file = folder / "plugin.py"
    return [_file(file, folder)] if file.is_file() else []


def _package_json(folder: Path) -> list[Found]:
    file = folder / "package.json"
    if not file.is_file():
        return []
    package = _read(file, json.loads)
    name = str(package.get("name", folder.name))
    entries: Any = package.get("bin") or package.get("main") or []
    if isinstance(entries, dict):
        entries = list(cast("dict[str, str]", entries).values())
    if isinstance(entries, str):
        entries = [entries]
    return [
        Found(("node", str(folder / entry)), str(folder), "package.json", name)
        for entry in cast("list[str]", entries)
    ]


def _go_mod(folder: Path) -> list[Found]:
    if not (folder / "go.mod").is_file():
        return []
    if shutil.which("go") is None:
        msg = f"{folder} is a Go module, and there is no go command here; build it and name it"
        raise exits.Stop(msg, exits.USAGE)
    return [Found(("go", "run", "."), str(folder), "go.mod", folder.name)]


def _bin(folder: Path) -> list[Found]:
    programs = sorted((folder / "bin").glob("*")) if (folder / "bin").is_dir() else []
    return [
        Found((str(program),), str(folder), "bin/", folder.name)
        for program in programs
        if program.is_file() and os.access(program, os.X_OK)
    ]


def _sources(folder: Path) -> list[Found]:
    """Programs that speak of what every plugin does, none of the other ways being there."""
    found: list[Found] = []
    for file in sorted(folder.iterdir()):
        if file.suffix in (".py", *_NODE) and not file.name.startswith(("test_", "conftest")):
            text = file.read_text(encoding="utf-8", errors="replace")
            if "executa_sdk" in text or ("describe" in text and "jsonrpc" in text):
                found.append(_file(file, folder))
    return found


def _near(path: Path) -> str:
    """A question after what was perhaps meant."""
    try:
        names = [each.name for each in path.parent.iterdir()]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, n=1)
    return f"Did you mean {path.parent / near[0]}?" if near else ""


def _file(file: Path, folder: Path | None) -> Found:
    cwd = None if folder is None else str(folder)
    name = file.parent.name if file.stem in ("plugin", "main", "index") else file.stem
    if file.suffix == ".py":
        return Found((sys.executable, str(file)), cwd, "a Python file", name)
    if file.suffix in _NODE:
        return Found(("node", str(file)), cwd, "a Node file", name)
    if os.access(file, os.X_OK):
        return Found((str(file),), cwd, "a program", name)
    msg = f"{file} is neither a program nor a .py or .js file; name its command after --"
    raise exits.Stop(msg, exits.USAGE)


def _read(file: Path, load: Any) -> dict[str, Any]:
    try:
        value: object = load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        msg = f"{file} cannot be read: {fault}"
        raise exits.Stop(msg, exits.USAGE) from None
    if not isinstance(value, dict):
        msg = f"{file}: expected an object"
        raise exits.Stop(msg, exits.USAGE)
    return cast("dict[str, Any]", value)


def _name_of(words: Sequence[str]) -> str:
    """A name for a command: its script's folder or stem, else the program's own."""
    for word in reversed(words):
        path = Path(word)
        if path.suffix in (".py", *_NODE):
            generic = path.stem in ("plugin", "main", "index")
            return path.resolve().parent.name if generic else path.stem
    return Path(words[0]).stem


def _plain(name: str) -> str:
    """A name without what separates a plugin from its tool."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name.lstrip("@")).strip("-")


_LOOKS: Final = (
    _executa_json,
    _pyproject,
    _plugin_file,
    _package_json,
    _go_mod,
    _bin,
    _sources,
)
"""Where a folder's plugin may be, in the field's order."""
