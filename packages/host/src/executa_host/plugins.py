"""The plugins of one host by name, and their processes by user (R-23).

Owns which plugins there are, and that each (user, plugin) has one supervisor. What the
processes say goes on to the gateway.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Protocol

from executa_host.connection import Connection
from executa_host.invocation import InvokeRefused
from executa_host.memory import resident_by_group
from executa_host.runtime import Runtime
from executa_host.spec import PluginSpec
from executa_host.status import PluginStatus, status_of
from executa_host.supervisor import Supervisor
from executa_protocol.codes import wire_error
from executa_protocol.envelope import Message
from executa_protocol.errors import UsageError
from executa_protocol.manifest import Manifest


class ReverseGate(Protocol):
    """Where what plugins say of themselves is taken."""

    def take(self, connection: Connection, request: Message) -> None: ...
    def note(self, connection: Connection, notification: Message) -> None: ...


class Plugins:
    """All plugins. `gate` takes their reverse calls, `forget` hears of processes that ended."""

    def __init__(
        self, runtime: Runtime, gate: ReverseGate, forget: Callable[[Connection], None]
    ) -> None:
        self._runtime = runtime
        self._gate = gate
        self._forget = forget
        self._specs: dict[str, PluginSpec] = {}
        self._supervisors: dict[tuple[str, str], Supervisor] = {}
        self._closing = False

    def __iter__(self) -> Iterator[Supervisor]:
        return iter(list(self._supervisors.values()))

    # --- Which there are -----------------------------------------------------------------

    @property
    def specs(self) -> dict[str, PluginSpec]:
        """The specs by name. Look, do not touch."""
        return self._specs

    def add(self, spec: PluginSpec) -> None:
        """Make a plugin known. Raises `UsageError` if its name is taken."""
        if spec.name in self._specs:
            msg = f"a plugin named {spec.name!r} is known already"
            raise UsageError(msg)
        if any(self._of(spec.name)):
            msg = f"the plugin that was named {spec.name!r} is still being removed"
            raise UsageError(msg)
        self._specs[spec.name] = spec

    async def remove(self, name: str, drain: float) -> None:
        """Forget a plugin; its invokes have `drain` seconds to end. Raises `UsageError`."""
        self._known(name)
        del self._specs[name]
        gone = UsageError(f"the plugin {name!r} has been removed")
        leaving = list(self._of(name))
        for supervisor in leaving:
            supervisor.close(gone)
        await asyncio.gather(*(supervisor.stop(drain) for supervisor in leaving))
        for supervisor in leaving:
            self._supervisors.pop((supervisor.user_id, name), None)

    async def reload(self, spec: PluginSpec, drain: float) -> None:
        """Run a plugin by another spec, for every user who runs it. Raises as `ready`."""
        self._known(spec.name)
        self._specs[spec.name] = spec
        reloading = [supervisor.reload(spec, drain) for supervisor in self._of(spec.name)]
        results = await asyncio.gather(*reloading, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def supervisor(self, name: str, user_id: str) -> Supervisor:
        """The plugin's keeper for this user. Raises `UsageError`, `InvokeRefused`."""
        supervisor = self._supervisors.get((user_id, name))
        if supervisor is not None:
            return supervisor
        spec = self._known(name)
        if self._closing:
            raise self._stopping()
        supervisor = Supervisor(spec, user_id, self, self._runtime)
        self._supervisors[user_id, name] = supervisor
        return supervisor

    def find(self, name: str, user_id: str) -> Supervisor | None:
        """The plugin's keeper for this user, None if he never used it. Raises `UsageError`."""
        supervisor = self._supervisors.get((user_id, name))
        if supervisor is None:
            self._known(name)
        return supervisor

    def live(self, name: str, user_id: str) -> Connection | None:
        """The process that takes calls now, if there is one."""
        supervisor = self._supervisors.get((user_id, name))
        connection = None if supervisor is None else supervisor.connection
        return connection if connection is not None and connection.takes_calls else None

    def status(self) -> list[PluginStatus]:
        """Every plugin that was ever started, of every user."""
        resident = resident_by_group()
        now = self._runtime.clock.monotonic()
        return [status_of(supervisor, now, resident) for supervisor in self]

    async def close(self) -> None:
        """Stop everything, and start nothing any more. Idempotent."""
        self._closing = True
        stopping = self._stopping()
        for supervisor in self:
            supervisor.close(stopping)
        await asyncio.gather(*(supervisor.stop() for supervisor in self))

    def _of(self, name: str) -> Iterator[Supervisor]:
        return (supervisor for supervisor in self if supervisor.spec.name == name)

    def _known(self, name: str) -> PluginSpec:
        spec = self._specs.get(name)
        if spec is None:
            names = ", ".join(sorted(self._specs)) or "none"
            msg = f"no plugin is named {name!r}; known are: {names}"
            raise UsageError(msg)
        return spec

    @staticmethod
    def _stopping() -> InvokeRefused:
        error = wire_error("HOST_STOPPING", "the host is stopping")
        return InvokeRefused(error.code, error.message, error.data)

    # --- What connections tell -------------------------------------------------------------

    def on_reverse(self, connection: Connection, request: Message) -> None:
        self._gate.take(connection, request)

    def on_notification(self, connection: Connection, notification: Message) -> None:
        self._gate.note(connection, notification)

    def on_late(self, connection: Connection) -> None:
        self._supervisors[connection.user_id, connection.name].suspect(connection)

    def on_gone(self, connection: Connection) -> None:
        self._forget(connection)
        self._supervisors[connection.user_id, connection.name].on_gone(connection)


def manifest_of(connection: Connection) -> Manifest:
    """The manifest of a plugin that has come up."""
    if connection.manifest is None:
        msg = f"{connection.name} has no manifest yet"
        raise UsageError(msg)
    return connection.manifest
