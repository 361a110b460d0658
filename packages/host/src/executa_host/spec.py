"""What to start: the description of one plugin, and the environment it gets.

Knows nothing of processes. Reading specs from a file is `config`'s business.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from msgspec import Struct, field

from executa_protocol.errors import UsageError

SECRET_PREFIX: Final = "EXECUTA_"  # noqa: S105 - the prefix of names, no secret
"""The host's own settings and secrets; plugins get none of them (R-27)."""

MINIMAL_NAMES: Final = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SYSTEMROOT",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
)
"""What ``env = "minimal"`` lets through."""


class PluginSpec(Struct, frozen=True, kw_only=True):
    """One plugin that a host can run.

    `name` is what clients call it, the first part of ``PLUGIN.TOOL``. `command` is the
    program and its arguments. `cwd` defaults to the host's own. `env` is added to the
    user's environment (R-27). `type` ``binary`` marks a one-file program that unpacks
    itself on its first launch. `executa_tool_id` is the id that nexus knows it by.
    `secret_env` names members of `env` that no transcript may show.
    `tool_timeouts` are seconds by tool and override the manifest. `file_transport` is
    off for plugins whose files this host cannot see (R-12). `idle_after` are the seconds
    without an invoke after which its process is stopped, as the host has it when None.
    """

    name: str
    command: tuple[str, ...]
    cwd: str | None = None
    env: dict[str, str] = field(default_factory=dict[str, str])
    env_mode: Literal["user", "minimal"] = "user"
    hide_env: tuple[str, ...] = ()
    secret_env: tuple[str, ...] = ()
    type: Literal["program", "binary"] = "program"
    executa_tool_id: str = ""
    credentials: dict[str, str] = field(default_factory=dict[str, str])
    tool_timeouts: dict[str, float] = field(default_factory=dict[str, float])
    file_transport: bool = True
    idle_after: float | None = None

    def __post_init__(self) -> None:
        if not self.name or "." in self.name or any(c.isspace() for c in self.name):
            msg = f"plugin name {self.name!r}: expected a word without dots or spaces"
            raise UsageError(msg)
        if not self.command or not self.command[0]:
            msg = f"plugin {self.name}: the command is empty"
            raise UsageError(msg)

    def __repr__(self) -> str:
        return f"PluginSpec(name={self.name!r}, command={self.command!r}, cwd={self.cwd!r})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        """What pretty printers show, which look at all members otherwise: nothing secret."""
        return [("name", self.name), ("command", self.command), ("cwd", self.cwd)]

    @property
    def tool_id(self) -> str:
        """The id that nexus knows the plugin by; its name where none was given."""
        return self.executa_tool_id or self.name


def build_env(
    spec: PluginSpec, base: Mapping[str, str] | None = None, *, secrets: Iterable[str] = ()
) -> dict[str, str]:
    """The environment of the plugin's process (R-27).

    `base` is the user's environment, the host's own when None. `secrets` are names that
    the configuration withholds beside ``EXECUTA_*`` and the spec's `hide_env`.
    """
    source = os.environ if base is None else base
    withheld = {*secrets, *spec.hide_env}
    if spec.env_mode == "minimal":
        kept = {name: source[name] for name in MINIMAL_NAMES if name in source}
    else:
        kept = dict(source)
    env = {
        name: value
        for name, value in kept.items()
        if not name.startswith(SECRET_PREFIX) and name not in withheld
    }
    return env | spec.env
