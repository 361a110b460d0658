"""For authors' tests: a host in memory, and plugins run as real processes.

::

    async with TestHost(plugin, sample="A fine day.") as host:
        assert await host.invoke("greet", name="Ada") == "Hello, Ada!"

Names are loaded when they are first used: pytest loads the fixtures beside them in every
run, and measures nothing that was loaded before it began.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from executa_sdk.testing.clock import Clock
    from executa_sdk.testing.host import Running, TestHost
    from executa_sdk.testing.process import PluginProcess
    from executa_sdk.testing.services import ReverseCall, Services

__all__ = ["Clock", "PluginProcess", "ReverseCall", "Running", "Services", "TestHost"]

_HOMES = {
    "Clock": "clock",
    "PluginProcess": "process",
    "ReverseCall": "services",
    "Running": "host",
    "Services": "services",
    "TestHost": "host",
}

if not TYPE_CHECKING:  # or type checkers would believe that every name is here

    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        return getattr(import_module(f"{__name__}.{home}"), name)
