"""What happens before a plugin's first call and after its last, wherever it is served."""

from inspect import isawaitable, iscoroutinefunction
from typing import Final

from executa_sdk.connection import Connection
from executa_sdk.log import tell
from executa_sdk.plugin import Hook, Plugin
from executa_sdk.server import Server
from executa_sdk.timing import within

HOOK_GRACE: Final = 1.0
"""Seconds for the shut-down hooks: with the default grace all fits into a host's 5 s."""


async def start_up(server: Server, plugin: Plugin) -> bool:
    """Run the start-up hooks, then take calls; False if a hook failed."""
    if not await _run_hooks(plugin.startup_hooks, server.connection):
        return False
    server.open()
    return True


async def wind_down(server: Server, plugin: Plugin) -> bool:
    """Finish the calls in flight within the plugin's grace, then run the shut-down hooks.

    False if some calls did not even end when they were told to.
    """
    finished = await server.calls.drain(plugin.grace)
    hooks = _run_hooks(plugin.shutdown_hooks, server.connection)
    await within(hooks, HOOK_GRACE, server.connection.loop)
    server.connection.workers.stop()
    return finished


async def _run_hooks(hooks: list[Hook], connection: Connection) -> bool:
    """Run hooks in order; the first that fails ends it, with its story on stderr."""
    for hook in hooks:
        try:
            result = hook() if iscoroutinefunction(hook) else await connection.blocking(hook)
            if isawaitable(result):
                await result
        except Exception:  # noqa: BLE001 - a hook is the author's code
            import traceback  # noqa: PLC0415 - faults are rare

            tell(f"hook {hook!r} failed\n{traceback.format_exc().rstrip()}")
            return False
    return True
