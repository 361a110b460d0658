"""The half of a host's facade that is about plugins: which there are, and how they are."""

from collections.abc import Callable

from executa_host import why
from executa_host.phases import health
from executa_host.plugins import Plugins, manifest_of
from executa_host.runtime import LOCAL_USER, Runtime
from executa_host.spec import PluginSpec
from executa_host.status import PluginStatus, status_of
from executa_protocol.errors import UsageError
from executa_protocol.gate import Verdict
from executa_protocol.lifecycle import State
from executa_protocol.limits import DRAIN_TIMEOUT
from executa_protocol.manifest import Manifest
from executa_protocol.methods.core import HealthResult
from executa_protocol.nexus import Nexus
from executa_protocol.transcript import Trace


class Administration:
    """What a `Host` does with its plugins beside calling them."""

    def __init__(self, plugins: Plugins, nexus: Nexus, runtime: Runtime) -> None:
        self._plugins = plugins
        self._nexus = nexus
        self._runtime = runtime

    # --- Which there are -----------------------------------------------------------------

    def add(self, spec: PluginSpec) -> None:
        """Make a plugin known. It starts with its first call. Raises `UsageError`."""
        self._plugins.add(spec)

    async def remove(self, plugin: str, *, drain: float = DRAIN_TIMEOUT) -> None:
        """Stop a plugin for every user and forget it. Raises `UsageError`.

        It takes no new invokes from now on; those that run have `drain` seconds to end.
        """
        await self._plugins.remove(plugin, drain)

    async def reload(self, spec: PluginSpec, *, drain: float = DRAIN_TIMEOUT) -> None:
        """Run a plugin by a new spec from now on, and start it anew where it ran.

        Invokes that run have `drain` seconds to end; new ones wait for the new process.
        Raises `UsageError` for a name that is not known, and what `start` raises.
        """
        await self._plugins.reload(spec, drain)

    def plugins(self) -> tuple[PluginSpec, ...]:
        """The plugins that are known."""
        return tuple(self._plugins.specs.values())

    # --- Their processes -----------------------------------------------------------------

    async def start(self, plugin: str, *, user_id: str = LOCAL_USER) -> Manifest:
        """Start a plugin if it does not run, and give its manifest.

        Raises `StartFailed`, `SpawnFailed`, `PluginFaulted` and `UsageError`.
        """
        return manifest_of(await self._plugins.supervisor(plugin, user_id).ready())

    async def restart(
        self, plugin: str, *, user_id: str = LOCAL_USER, drain: float = 0.0
    ) -> Manifest:
        """Stop a plugin, forget its faults, and start it anew. Raises as `start`."""
        return manifest_of(await self._plugins.supervisor(plugin, user_id).restart(drain))

    async def stop(self, plugin: str, *, user_id: str = LOCAL_USER, drain: float = 0.0) -> None:
        """Stop a plugin by the ladder (R-26). The next call starts it again."""
        await self._plugins.supervisor(plugin, user_id).stop(drain)

    async def health(self, plugin: str, *, user_id: str = LOCAL_USER) -> HealthResult:
        """Probe a plugin. Raises as `start`, `CallTimeout` and `PeerViolation`."""
        connection = await self._plugins.supervisor(plugin, user_id).ready()
        return await health(connection.peer, connection.reader, self._runtime.patience.health)

    # --- How they are ----------------------------------------------------------------------

    def state(self, plugin: str, *, user_id: str = LOCAL_USER) -> State:
        """Where the plugin is in its lifecycle. Raises `UsageError`."""
        supervisor = self._plugins.find(plugin, user_id)
        return State.STOPPED if supervisor is None else supervisor.state

    def pid(self, plugin: str, *, user_id: str = LOCAL_USER) -> int | None:
        """The process of the plugin, None while there is none that takes calls."""
        connection = self._plugins.live(plugin, user_id)
        return None if connection is None else connection.pid

    def status(self, plugin: str, *, user_id: str = LOCAL_USER) -> PluginStatus:
        """All that there is to say of one plugin now. Raises `UsageError`."""
        supervisor = self._plugins.find(plugin, user_id)
        if supervisor is None:
            return PluginStatus(plugin=plugin, user_id=user_id, state=State.STOPPED)
        return status_of(supervisor, self._runtime.clock.monotonic())

    def statuses(self) -> list[PluginStatus]:
        """The status of every plugin that was used, once for each user who used it."""
        return self._plugins.status()

    def follow(self, callback: Trace) -> Callable[[], None]:
        """Give every event from now on to `callback`; what is returned ends that.

        Any number may follow, and none may block. What one raises goes to the log.
        """
        return self._runtime.followers.follow(callback)

    # --- What they may ---------------------------------------------------------------------

    def why(self, plugin: str, method: str, *, user_id: str = LOCAL_USER) -> list[Verdict]:
        """Walk the gate for a reverse call without making it: one verdict a step (R-22).

        The user's grant is known once an invoke has been opened at nexus, and open before;
        `ask_why` asks. Raises `UsageError` for a method that no plugin can call, or a plugin
        that does not run.
        """
        info = why.method_of(method)
        self._plugins.find(plugin, user_id)
        connection = self._plugins.live(plugin, user_id)
        if connection is None:
            msg = f"{plugin} does not run; start it first"
            raise UsageError(msg)
        now = self._runtime.clock.now()
        return why.explain(info, connection, now, grants=connection.grants)

    async def ask_why(
        self, plugin: str, method: str, *, user_id: str = LOCAL_USER
    ) -> list[Verdict]:
        """As `why`, having started the plugin and asked nexus for the user's grant.

        To ask, an invoke is opened at nexus and closed again; the plugin hears nothing of
        it. Raises as `start`, and `NexusError`.
        """
        info = why.method_of(method)
        connection = await self._plugins.supervisor(plugin, user_id).ready()
        fresh = await why.ask_grant(self._nexus, connection, self._runtime)
        connection.grants = fresh.grants
        return why.explain(info, connection, self._runtime.clock.now(), fresh=fresh)
