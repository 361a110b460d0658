"""Which host capabilities a tool's code asks for, found without running it.

The rule: in a tool, and in the functions of the same module and the methods of the same
class that it names, a parameter that is annotated `Context` or `SyncContext`, or called
``ctx`` or ``context``, is the context. Taking one of the attributes of `NEEDS` from it
needs the strings beside it. A function that names `current_context`, or the classes'
own ``current``, may hold the context anywhere: there every attribute of those names
counts. What this cannot see, such as a context that travels through a container or
another module, is stated with ``Plugin(host_capabilities=...)``.
"""

import dis
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, cast

from executa_sdk.schema import CONTEXT_TYPES

_SAMPLE: Final = ("llm.sample",)
_AGENT: Final = ("llm.sample", "llm.agent.auto")

NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "sample": _SAMPLE,
    "sampling": _SAMPLE,
    "complete": _SAMPLE,
    "agent": _AGENT,
    "agents": _AGENT,
    "storage": ("aps.kv",),
    "files": ("aps.files",),
}
"""Attributes of a context, and the capability strings that they need."""

_ORDER: Final = ("llm.sample", "llm.agent.auto", "aps.kv", "aps.files")
_NAMES: Final = frozenset({"ctx", "context"})
_FINDERS: Final = frozenset({"current_context", *CONTEXT_TYPES})


def capabilities(functions: Iterable[Callable[..., Any]]) -> list[str]:
    """The capability strings that these functions ask for, in the manifest's order."""
    found: set[str] = set()
    seen: set[types.CodeType] = set()
    for fn in functions:
        owner = type(fn.__self__) if isinstance(fn, types.MethodType) else None
        for attribute in _attributes(_plain(fn), owner, seen):
            found.update(NEEDS.get(attribute, ()))
    return [string for string in _ORDER if string in found]


def _plain(given: object) -> types.FunctionType | None:
    """The function itself, behind methods, callables and decorators that wrap."""
    fn: Any = given
    while True:
        if isinstance(fn, types.FunctionType):
            if not hasattr(fn, "__wrapped__"):
                return fn
            fn = vars(fn)["__wrapped__"]
        elif isinstance(fn, partial):
            fn = fn.func
        elif hasattr(fn, "__func__"):
            fn = fn.__func__
        else:
            fn = None if isinstance(fn, type) else inspect.getattr_static(fn, "__call__", None)
            return fn if isinstance(fn, types.FunctionType) else None


def _attributes(
    fn: types.FunctionType | None, owner: type | None, seen: set[types.CodeType]
) -> Iterator[str]:
    """The attributes taken from the context by `fn` and by what it names."""
    if fn is None or fn.__code__ in seen:
        return
    seen.add(fn.__code__)
    contexts = _contexts(fn)
    for code in _codes(fn.__code__):
        taken = list(_taken(code, contexts))
        yield from taken
        if _FINDERS.intersection(code.co_names):
            yield from code.co_names
        if "wait" in taken:  # its function gets the context under a name of its own
            yield from (name for inner in _codes(code) for name in inner.co_names)
        for name in code.co_names:
            helper = fn.__globals__.get(name)
            if isinstance(helper, types.FunctionType) and helper.__module__ == fn.__module__:
                yield from _attributes(_plain(helper), None, seen)
            if owner is not None:
                yield from _attributes(_plain(vars(owner).get(name)), owner, seen)


def _contexts(fn: types.FunctionType) -> frozenset[str]:
    """The names of parameters that hold the context."""
    code = fn.__code__
    names = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    found = names & _NAMES
    for name, hint in fn.__annotations__.items():
        text = hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))
        if name in names and any(kind in text for kind in CONTEXT_TYPES):
            found.add(name)
    return frozenset(found)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _taken(code: types.CodeType, contexts: frozenset[str]) -> Iterator[str]:
    """Attributes loaded right after one of the names in `contexts`."""
    top: object = None
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name.startswith("LOAD_FAST") or name in ("LOAD_DEREF", "LOAD_FROM_DICT_OR_DEREF"):
            value: Any = instruction.argval
            # One instruction may load two variables; the second is on top.
            top = cast("tuple[object, ...]", value)[-1] if isinstance(value, tuple) else value
            continue
        if name in ("LOAD_ATTR", "LOAD_METHOD") and top in contexts:
            yield instruction.argval
        if name not in ("CACHE", "NOP", "EXTENDED_ARG"):
            top = None
