"""What to call a plugin's tools with: arguments made from their parameters, or given ones.

Made arguments are valid by the manifest, and as harmless as names and types let one guess: a
path is that of a small text file, a URL one that nobody serves.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from executa_protocol.errors import UsageError
from executa_protocol.manifest import Manifest, Parameter, ParameterType, Tool

Object = dict[str, Any]
Cases = Mapping[str, list[Object]]

TEXT: Final = "Tea is at four"
"""Every text that is not something special; looked for in results, to find a tool that echoes."""

FILE_TEXT: Final = "Tea is at four.\n\nThere will be cake, and the kit will be there.\n"

_FILE: Final = re.compile(r"(^|_)(path|file|filename|filepath|document)$")
_FOLDER: Final = re.compile(r"(^|_)(dir|directory|folder)$")
_SPECIAL: Final = (
    (re.compile(r"(^|_)ur[il]$"), "http://127.0.0.1:9/"),
    (re.compile(r"(^|_)e?mail$"), "someone@example.org"),
    (re.compile(r"(^|_)date$"), "2026-11-29"),
    (re.compile(r"(^|_)time$"), "16:00"),
    (re.compile(r"(^|_)(language|lang|locale)$"), "en"),
    (re.compile(r"(^|_)(timezone|tz)$"), "UTC"),
)


class Case(Struct, frozen=True):
    """One call to make: a tool and its arguments. `otherwise` is for when the others failed."""

    tool: str
    arguments: Object
    otherwise: bool = False


def read_cases(path: Path | None) -> Cases:
    """The cases in a file: an object of arrays of arguments, by tool. Empty without a file.

    Raises `UsageError` for a file that cannot be read or has another shape.
    """
    if path is None:
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, list[Object]])
    except OSError as fault:
        msg = f"{path} cannot be read: {fault.strerror}"
        raise UsageError(msg) from None
    except msgspec.MsgspecError as fault:
        msg = f'{path}: {fault}; expected {{"TOOL": [ARGUMENTS, ...]}}'
        raise UsageError(msg) from None


def cases_of(manifest: Manifest, given: Cases, folder: Path) -> list[Case]:
    """Every call to make, in the order of the manifest.

    A tool that `given` names is called with those arguments, and with none if its array is
    empty. For the others there is a call with what is required and, where there is more, one
    with everything. A tool that wants a person's approval is called only with given arguments.
    Files are made in `folder`. Raises `UsageError` for a tool that the plugin does not have.
    """
    unknown = sorted(given.keys() - {tool.name for tool in manifest.tools})
    if unknown:
        msg = f"--cases names {', '.join(unknown)}, which the plugin does not have"
        raise UsageError(msg)
    found: list[Case] = []
    for tool in manifest.tools:
        if tool.name in given:
            found += [Case(tool.name, arguments) for arguments in given[tool.name]]
        elif not tool.approval:
            found += _made(tool, folder)
    return found


def _made(tool: Tool, folder: Path) -> list[Case]:
    needed = {
        each.name: value_of(each, folder)
        for each in tool.parameters
        if each.required and each.default is UNSET
    }
    whole = {each.name: value_of(each, folder, last=True) for each in tool.parameters}
    found = [Case(tool.name, needed)] + [Case(tool.name, whole)] * (len(whole) > len(needed))
    # What is called a path may be one in a store, where none is absolute.
    inside = {name: _inside(value, folder) for name, value in whole.items()}
    return found + [Case(tool.name, inside, otherwise=True)] * (inside != whole)


def _inside(value: Any, folder: Path) -> Any:
    if isinstance(value, str) and value.startswith(f"{folder}/"):
        return value.removeprefix(f"{folder}/")
    return value


def value_of(parameter: Parameter, folder: Path, *, last: bool = False) -> Any:
    """A valid value. With `last` it is the last of an enumeration, else the first."""
    if parameter.enum is not UNSET:
        return parameter.enum[-1 if last else 0]
    if parameter.default is not UNSET:
        return parameter.default
    if parameter.type == "array":
        kind: ParameterType = "string" if parameter.items is UNSET else parameter.items.type
        return [_plain(kind, parameter.name.removesuffix("s"), folder)]
    return _plain(parameter.type, parameter.name, folder)


def _plain(kind: ParameterType, name: str, folder: Path) -> Any:
    values: dict[ParameterType, Any] = {
        "integer": 1,
        "number": 1.5,
        "boolean": True,
        "array": [],
        "object": {},
    }
    return _text(name.casefold(), folder) if kind == "string" else values[kind]


def _text(name: str, folder: Path) -> str:
    if _FOLDER.search(name):
        return str(folder)
    if _FILE.search(name):
        path = folder / "tea.txt"
        path.write_text(FILE_TEXT, encoding="utf-8")
        return str(path)
    return next((value for pattern, value in _SPECIAL if pattern.search(name)), TEXT)


def echoed(case: Case, result: Any) -> str | None:
    """The name of the argument whose text stands in the result, or None."""
    shown = msgspec.json.encode(result).decode()
    for name, value in case.arguments.items():
        if isinstance(value, str) and len(value) > 3 and value in shown and "/" not in value:
            return name
    return None
