"""Users, plans and grants: who may do what, changeable while the stub runs.

Owns what a user allowed each plugin, the plan that bounds a user, and credentials.
Everything has a default that lets a demo run, and a switch that takes it away. This
module knows neither tokens nor invokes.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from executa_protocol.errors import UsageError
from executa_protocol.limits import MIB
from executa_protocol.nexus import Caps, Grants

ALL_TOOLS: Final = "*"
"""In `granted_tools`: every tool that the host serves (*observed*)."""

_GIB: Final = 1024 * MIB


class PluginGrant(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one user allows one plugin.

    Four switches, the tools that agent runs may use as ``PLUGIN.TOOL`` names or ``*``
    (seed agent-sessions, Pre-conditions), and the caps of one root invoke (R-35).
    """

    sampling: bool = True
    agent: bool = True
    storage: bool = True
    files: bool = True
    granted_tools: tuple[str, ...] = (ALL_TOOLS,)
    caps: Caps = Caps()
    credentials: dict[str, str] = {}

    def chapters(self) -> Grants:
        """The four switches, as the host reads them."""
        return Grants(self.sampling, self.agent, self.storage, self.files)

    def __repr__(self) -> str:
        return f"PluginGrant({self.chapters()!r}, granted_tools={self.granted_tools!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Keeps pretty printers from looking at the credentials."""
        return [("repr", repr(self))]


class Plan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What bounds one user (*assumed*, but for the 5 GB and the ten runs, *observed*).

    `tokens_per_day` is None for no bound. `storage_bytes` counts keys and files.
    """

    tokens_per_day: int | None = None
    storage_bytes: int = 5 * _GIB
    concurrent_runs: int = 10
    agent_sessions: int = 1024


class User(Struct, kw_only=True, forbid_unknown_fields=True):
    """One user: plan, preferred model, credentials for all plugins, grants by plugin name."""

    plan: str = ""
    model: str = ""
    credentials: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    plugins: dict[str, PluginGrant] = msgspec.field(default_factory=dict[str, PluginGrant])

    def __repr__(self) -> str:
        return f"User(plan={self.plan!r}, plugins={sorted(self.plugins)!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Keeps pretty printers from looking at the credentials."""
        return [("repr", repr(self))]


class Directory:
    """All users. One that nobody configured gets the defaults, unless the stub is closed."""

    def __init__(
        self,
        *,
        users: Mapping[str, User] | None = None,
        plans: Mapping[str, Plan] | None = None,
        default: PluginGrant | None = None,
        open_to_all: bool = True,
    ) -> None:
        # Copies: what is changed here must not change the settings that others start from.
        self._users = {
            name: msgspec.structs.replace(user, plugins=dict(user.plugins))
            for name, user in (users or {}).items()
        }
        self._plans = dict(plans or {})
        self._default = default or PluginGrant()
        self._open = open_to_all
        self._nobody = User()
        for name, user in self._users.items():
            if user.plan and user.plan not in self._plans:
                msg = f"user {name!r} has the plan {user.plan!r}, which is not configured"
                raise UsageError(msg)

    def knows(self, user_id: str) -> bool:
        """Whether this user may come in at all."""
        return self._open or user_id in self._users

    def user(self, user_id: str) -> User:
        """The user's entry; the defaults for one that has none."""
        return self._users.get(user_id, self._nobody)

    def plan(self, user_id: str) -> Plan:
        """What bounds the user."""
        return self._plans.get(self.user(user_id).plan) or self._plans.get("") or _DEFAULT_PLAN

    def grant(self, user_id: str, plugin: str) -> PluginGrant:
        """What the user allows the plugin, now."""
        return self.user(user_id).plugins.get(plugin, self._default)

    def change(self, user_id: str, plugin: str, **changes: Any) -> PluginGrant:
        """Change members of one grant, such as ``sampling=False``. Holds from the next call on.

        Raises `msgspec.ValidationError` for a member that is unknown or of the wrong type.
        """
        current = msgspec.to_builtins(self.grant(user_id, plugin))
        grant = msgspec.convert({**current, **changes}, PluginGrant)
        self._users.setdefault(user_id, User()).plugins[plugin] = grant
        return grant

    def credentials(self, user_id: str, plugin: str, names: Iterable[str]) -> dict[str, str]:
        """The declared credentials that are known: the plugin's own override the user's."""
        known = {**self.user(user_id).credentials, **self.grant(user_id, plugin).credentials}
        return {name: known[name] for name in names if name in known}


_DEFAULT_PLAN: Final = Plan()


def allows(granted: Iterable[str], tool: str) -> bool:
    """Whether `granted` names the tool, or all of them."""
    names = frozenset(granted)
    return ALL_TOOLS in names or tool in names
