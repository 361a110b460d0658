"""Where checks are found: `check` registers one, `checks` gives those of a role.

Each role's checks live in a package of its own and are imported when they are asked for.
"""

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from importlib import import_module
from pkgutil import iter_modules
from typing import Final, TypeVar

from executa_conformance.catalogue import requirements
from executa_conformance.model import Check, CheckFunction, Role

F = TypeVar("F", bound=CheckFunction)

_FOUND: Final[dict[tuple[Role, str], Check]] = {}

_PACKAGES: Final[dict[Role, str]] = {
    "plugin": "executa_conformance.plugin.checks",
    "host": "executa_conformance.host.checks",
    "nexus": "executa_conformance.nexus.checks",
    "actions": "executa_conformance.actions.checks",
    "parser": "executa_conformance.golden.checks",
}


def check(
    requirement: str,
    *,
    role: Role,
    level: str = "core",
    passive: bool = False,
    patience: float = 1.0,
    name: str = "",
) -> Callable[[F], F]:
    """Register the decorated coroutine function as a check of a requirement.

    Its one argument is the scene that the role's target sets up. The function's name in
    words (or `name`) becomes part of the check's. Raises ValueError if there is no such
    requirement, if it does not concern the role, or if the name is taken.
    """

    def register(function: F) -> F:
        words = name or getattr(function, "__name__", "").replace("_", "-")
        full = f"{requirement}:{words}"
        row = requirements().get(requirement)
        if row is None or role not in row.roles:
            msg = f"{full}: there is no requirement {requirement} for a {role}"
            raise ValueError(msg)
        if (role, full) in _FOUND:
            msg = f"{full} is registered twice"
            raise ValueError(msg)
        _FOUND[role, full] = Check(full, requirement, role, level, function, passive, patience)
        return function

    return register


def checks(role: Role) -> tuple[Check, ...]:
    """Every check of a role, by name."""
    package = import_module(_PACKAGES[role])
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        import_module(module.name)
    found = (check for check in _FOUND.values() if check.role == role)
    return tuple(sorted(found, key=lambda check: check.name))


def select(found: Iterable[Check], patterns: Iterable[str]) -> tuple[Check, ...]:
    """The checks whose requirement, name or level fits one of the patterns; all if there are none.

    Raises ValueError for a pattern that fits nothing.
    """
    candidates = tuple(found)
    wanted: set[str] = set()
    every = True
    for pattern in patterns:
        every = False
        fitting = {
            check.name
            for check in candidates
            if any(fnmatchcase(word, pattern) for word in _words(check))
        }
        if not fitting:
            msg = f"no check fits {pattern!r}; --list shows all of them"
            raise ValueError(msg)
        wanted |= fitting
    return tuple(check for check in candidates if every or check.name in wanted)


def _words(check: Check) -> tuple[str, str, str]:
    return check.requirement, check.name, check.level
