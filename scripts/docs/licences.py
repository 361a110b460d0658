"""`docs/project/licences.md`: what our packages bring along, and under which licences.

Read from the metadata of what is installed, for everything that a package of ours needs to
run, with every extra. A licence that is not in `ACCEPTED` stops the page, and so the tests.
"""

import re
from importlib import metadata
from typing import Final

from packaging.requirements import Requirement

from scripts.docs.markdown import code, page, table

OURS: Final = (
    "executa-protocol",
    "executa-sdk",
    "executa-host",
    "executa-nexus-stub",
    "executa-conformance",
)

ACCEPTED: Final = {
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "MPL-2.0",
    "PSF-2.0",
    "Unlicense",
}
"""SPDX names of licences that the MIT licence of this project gets along with."""

_SPELLINGS: Final = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache": "Apache-2.0",
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
    "the unlicense (unlicense)": "Unlicense",
}
"""How metadata older than SPDX expressions names the same licences."""


_OLDEST: Final = {
    "python_version": "3.11",
    "python_full_version": "3.11.0",
    "sys_platform": "linux",
    "platform_system": "Linux",
}
"""Where the most is needed; everywhere else it is the same or less."""


class LicenceError(ValueError):
    """A dependency's licence is unknown or not accepted."""


def licences_page() -> str:
    """Every distribution that ours need to run, with its licence."""
    rows = [
        (code(name), licence_of(name), ", ".join(sorted(users)))
        for name, users in sorted(dependencies().items())
    ]
    parts = [
        "Executa itself is under the MIT licence. Its packages need these others to run; an extra",
        "is named in brackets. Tools for development are not distributed and not listed.",
        "",
        *table(("Distribution", "Licence", "Needed by"), rows),
    ]
    return page("Licences of dependencies", parts)


def dependencies() -> dict[str, set[str]]:
    """Every distribution that is needed, with which package of ours, or extra of it, needs it."""
    needed: dict[str, set[str]] = {}
    for name in OURS:
        extras = metadata.metadata(name).get_all("Provides-Extra") or []
        for extra in ["", *extras]:
            user = f"{name}[{extra}]" if extra else name
            for each in _closure(name, extra):
                needed.setdefault(each, set()).add(user)
    # What a package needs anyway, its extras need not repeat.
    return {
        name: {user for user in users if user.partition("[")[0] not in users or "[" not in user}
        for name, users in needed.items()
        if name not in OURS
    }


def _closure(name: str, extra: str) -> set[str]:
    found: set[str] = set()
    waiting = [(name, extra)]
    while waiting:
        current, wanted = waiting.pop()
        for line in metadata.requires(current) or []:
            requirement = Requirement(line)
            each = _normal(requirement.name)
            if requirement.marker and not requirement.marker.evaluate({**_OLDEST, "extra": wanted}):
                continue
            if each not in found:
                found.add(each)
                waiting += [(each, ""), *((each, more) for more in requirement.extras)]
    return found


def licence_of(name: str) -> str:
    """The SPDX expression of a distribution's licence. Raises `LicenceError`."""
    info = metadata.metadata(name)
    told = _first(info, "License-Expression") or _from_classifiers(info) or _first(info, "License")
    words = re.split(r"\s+(?:AND|OR)\s+", told) if told else []
    known = [_SPELLINGS.get(word.strip("()").lower(), word.strip("()")) for word in words]
    if not known or not all(word in ACCEPTED for word in known):
        raise LicenceError(f"{name}: licence {told[:80]!r} is not among {sorted(ACCEPTED)}")
    joint = re.findall(r"\s+(AND|OR)\s+", told)
    return " ".join(part for pair in zip(known, [*joint, ""], strict=True) for part in pair).strip()


def _first(info: metadata.PackageMetadata, key: str) -> str:
    return (info.get_all(key) or [""])[0]


def _from_classifiers(info: metadata.PackageMetadata) -> str:
    prefix = "License :: OSI Approved :: "
    found = [each.removeprefix(prefix) for each in info.get_all("Classifier") or []]
    found = [each for each in found if each.lower() in _SPELLINGS]
    return found[0] if len(found) == 1 else ""


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
