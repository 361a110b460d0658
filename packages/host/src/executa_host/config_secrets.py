"""Secrets that a configuration names and does not hold: from the environment or from files.

A value itself is refused in the file, which gets copied, shown and committed. What is read
here goes into specs and into the client of nexus, and its text into no message.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from executa_host.config_reading import Table
from executa_protocol.limits import KIB

NEXUS: Final = "nexus"
"""In place of a source: nexus gives the credential, as for one that is not mentioned."""

MAX_SECRET: Final = 64 * KIB
"""Largest file that holds a secret; a larger one is some other file."""

_SOURCES: Final = '{ env = "NAME" } or { file = "path" }'


class Secrets:
    """Reads secrets for one configuration file, whose folder is `base`.

    `named` are the environment variables that were named: plugins do not inherit them
    (R-27). `unset` are those that are not set: what they were for counts as not given. `given`
    are the secrets themselves.
    """

    def __init__(self, base: Path, environ: Mapping[str, str]) -> None:
        self._base = base
        self._environ = environ
        self.named: set[str] = set()
        self.unset: set[str] = set()
        self.given: set[str] = set()

    def read(self, table: Table, name: str) -> str | None:
        """The secret that a member names; None if it gives none or the member is at fault."""
        value: object = table.take(name)
        if isinstance(value, dict) and len(cast("dict[str, Any]", value)) == 1:
            ((kind, where),) = cast("dict[str, Any]", value).items()
            if isinstance(where, str) and where and kind in ("env", "file"):
                if kind == "env":
                    secret = self._from_env(where)
                else:
                    secret = self._from_file(table, name, where)
                if secret:
                    self.given.add(secret)
                return secret
        table.fault(name, f"expected {_SOURCES}; a secret itself does not belong into this file")
        return None

    def wanted(self, table: Table, name: str) -> str:
        """The same for a secret that whoever wrote the file wants now and always: that there is
        none is a fault, too."""
        value = self.read(table, name)
        source: object = table.take(name)
        if value is None and isinstance(source, dict):
            variable = cast("dict[str, Any]", source).get("env")
            if isinstance(variable, str) and variable in self.unset:
                table.fault(name, f"the environment variable {variable} is not set")
        elif value == "":
            table.fault(name, "the file is empty")
        return value or ""

    def credentials(self, table: Table) -> dict[str, str]:
        """The credentials of a plugin that this host gives; the others are nexus's."""
        found: dict[str, str] = {}
        for name in table.names():
            if table.take(name) == NEXUS:
                continue
            value = self.read(table, name)
            if value is not None:
                found[name] = value
        return found

    def environment(self, table: Table) -> dict[str, str]:
        """Variables of a plugin's environment: plain texts, or secrets."""
        found: dict[str, str] = {}
        for name in table.names():
            given: object = table.take(name)
            value = given if isinstance(given, str) else self.read(table, name)
            if value is None:
                continue
            if not name or "=" in name or "\0" in name + value:
                table.fault(name, "expected a name without = and NUL, and a value without NUL")
                continue
            found[name] = value
        return found

    def _from_env(self, name: str) -> str | None:
        self.named.add(name)
        value = self._environ.get(name)
        if not value:
            self.unset.add(name)
            return None
        return value

    def _from_file(self, table: Table, name: str, where: str) -> str | None:
        path = self._base / Path(where).expanduser()
        try:
            with path.open("rb") as file:
                data = file.read(MAX_SECRET + 1)
            if len(data) <= MAX_SECRET:
                return data.decode().removesuffix("\n").removesuffix("\r")
            reason = f"it has more than {MAX_SECRET:,} bytes"
        except OSError as fault:
            reason = fault.strerror or type(fault).__name__
        except UnicodeDecodeError:
            reason = "it is not UTF-8"
        table.fault(name, f"the file {path} cannot be read: {reason}")
        return None
