"""`docs/reference/python*.md`: the public names of the Python packages, from their docstrings.

What is listed here is what the versioning policy protects. Names with an underscore, and
modules that are not listed, may change at any time.
"""

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, cast, get_origin

from msgspec import Struct

import executa_protocol
from scripts.docs.limits import texts_of
from scripts.docs.markdown import code, page, paragraphs, prose, table

PACKAGES: Final[dict[str, tuple[str, ...]]] = {
    "executa_sdk": (),
    "executa_sdk.testing": (),
    "executa_host": (),
    "executa_host.config": (),
    "executa_host.client": (),
    "executa_host.actions": (),
    "executa_host.actions.engine": ("Engine",),
    "executa_host.actions.sqlite": (),
    "executa_host.keys": ("Key", "KeyFile", "keys_beside"),
    "executa_host.observe.logs": ("EventLog", "log_to", "stop_logging"),
    "executa_host.observe.metrics": ("Metrics", "serve_metrics"),
    "executa_host.observe.spans": ("Spans",),
    "executa_host.transcripts.recorder": ("Recorder",),
    "executa_nexus_stub": (),
    "executa_nexus_stub.faults": (),
    "executa_nexus_stub.grants": (),
}
"""Packages and modules with public names: these, or all of them. Every name is explained."""

PROTOCOL: Final = "executa_protocol"
"""Its modules are public as they are: whoever speaks the wire needs their parts."""

_HIDDEN: Final = frozenset({"schema"})
"""Modules of the protocol that are commands."""


def names_page() -> str:
    """SDK, host and stub: every public name with signature, docstring and public methods."""
    parts = [
        "The public names of SDK, host and stand-in for nexus. What is here follows the",
        "[versioning policy](../project/versioning.md).",
        "",
    ]
    for name in PACKAGES:
        parts += _package(import_module(name))
    return page("Python names", parts)


def protocol_page() -> str:
    """The protocol's modules, with one line a name."""
    parts = [
        "`executa_protocol` is for whoever speaks the wire: hosts, SDKs, kits. Each module owns",
        "one concern; its docstring says which.",
        "",
    ]
    for module in protocol_modules():
        parts += [f"## {module.__name__}", "", *paragraphs(module.__doc__)]
        rows = [(code(name), prose(_doc(module, name))) for name in own_names(module)]
        parts += table(("Name", "What it is"), rows) if rows else []
    return page("Python names of the protocol", parts)


def protocol_modules() -> Iterator[ModuleType]:
    """The protocol's public modules, by name."""
    folder = Path(str(executa_protocol.__file__)).parent
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(folder).with_suffix("").parts
        if parts[-1].startswith("_") or parts[0] in _HIDDEN:
            continue
        yield import_module(".".join((PROTOCOL, *parts)))


def names_of(module: ModuleType) -> list[str]:
    """The public names of a package or module: as listed, those of its `__all__`, else its own."""
    named = PACKAGES.get(module.__name__) or getattr(module, "__all__", None)
    return own_names(module) if named is None else sorted(named)


def own_names(module: ModuleType) -> list[str]:
    """The public names that a module itself defines."""
    return [name for name in _definitions(module) if not name.startswith("_")]


def _definitions(module: ModuleType) -> list[str]:
    source = inspect.getsource(module)
    pattern = r"^(?:class|def|async def) (\w+)|^([A-Za-z]\w*)(?:: Final\b[^=\n]*)? = "
    found = [match[1] or match[2] for match in re.finditer(pattern, source, re.MULTILINE)]
    # A single letter is a type variable.
    return sorted(name for name in dict.fromkeys(found) if len(name) > 1)


def _doc(module: ModuleType, name: str) -> str:
    """A name's docstring, or the text under a constant."""
    value = getattr(module, name)
    if isinstance(value, type) or callable(value):
        own = value.__dict__.get("__doc__") if isinstance(value, type) else value.__doc__
        if isinstance(own, str) and getattr(value, "__module__", "") == module.__name__:
            return own
    return texts_of(module).get(name, "")


def _package(package: ModuleType) -> list[str]:
    names = names_of(package)
    lines = [f"## {package.__name__}", "", *paragraphs(package.__doc__)]
    constants = [name for name in names if not is_code(getattr(package, name))]
    for name in names:
        value = getattr(package, name)
        if name in constants:
            continue
        lines += [f"### {package.__name__}.{name}", ""]
        # Not `python`, which is what runs or compiles: a signature is neither.
        lines += ["```py", _signature(name, value), "```", ""]
        lines += paragraphs(_own_doc(value))
        if isinstance(value, type) and issubclass(value, Enum):
            lines += [f"One of {', '.join(code(each.name) for each in value)}.", ""]
        elif isinstance(value, type):
            lines += _methods(value)
    if constants:
        lines += ["### Constants", ""]
        texts = texts_of(package)
        rows = [
            (code(name), _value(getattr(package, name)), prose(texts.get(name)))
            for name in constants
        ]
        lines += table(("Name", "Value", "What it is"), rows)
    return lines


def is_code(value: Any) -> bool:
    """Whether a name is a class or a function, and no value and no name of a type."""
    return isinstance(value, type) or inspect.isroutine(value)


def _value(value: Any) -> str:
    """A constant, if it is written the same way everywhere."""
    if isinstance(value, str | int | float | tuple) or get_origin(value) is Literal:
        return code(f"{value!s}".removeprefix("typing."))
    return ""


def _methods(kind: type) -> list[str]:
    """Public methods and properties that the class itself, or one of ours above it, defines."""
    rows: list[tuple[str, str]] = []
    seen: set[str] = set()
    for owner in kind.__mro__:
        if not owner.__module__.startswith("executa_"):
            continue
        for name in vars(owner):
            if name.startswith("_") or name in seen:
                continue
            # Without its binding, which classes and instances would see differently.
            value: Any = inspect.getattr_static(owner, name)
            plain: Any = getattr(value, "__func__", value)
            if isinstance(plain, property):
                seen.add(name)
                rows.append((code(name), prose(plain.__doc__)))
            elif inspect.isfunction(plain):
                seen.add(name)
                rows.append((code(_signature(name, plain)), prose(plain.__doc__)))
    return table(("Member", "What it does"), rows) if rows else []


def _own_doc(value: Any) -> str:
    text = value.__dict__.get("__doc__") if isinstance(value, type) else value.__doc__
    return inspect.cleandoc(text) if isinstance(text, str) else ""


def _signature(name: str, value: Any) -> str:
    """How it is called. Defaults and annotations are written as in the source."""
    if isinstance(value, type) and issubclass(value, BaseException | Enum):
        return f"class {name}({', '.join(base.__name__ for base in value.__bases__)})"
    if isinstance(value, type) and issubclass(value, Struct):
        return f"class {name}({', '.join(value.__struct_fields__)})"
    try:
        signature = inspect.signature(cast("Any", value))
    except (TypeError, ValueError):
        return name
    words: list[str] = []
    star = False
    for each in signature.parameters.values():
        if each.name in ("self", "cls"):
            continue
        if each.kind is each.KEYWORD_ONLY and not star:
            words.append("*")
            star = True
        star = star or each.kind is each.VAR_POSITIONAL
        prefix = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else f"={_default(each.default)}"
        words.append(f"{prefix}{each.name}{default}")
    kind = "class " if isinstance(value, type) else ""
    start = "async " if inspect.iscoroutinefunction(value) else ""
    return f"{kind}{start}{name}({', '.join(words)})"


def _default(value: Any) -> str:
    """A default as it is written everywhere: without an address, and in one order."""
    text = repr(value)
    vague = " at 0x" in text or text.startswith("<") or isinstance(value, frozenset)
    return "..." if vague else text
