"""For authors' tests: a host in memory, and plugins run as real processes.

::

    async with TestHost(plugin, sample="A fine day.") as host:
        assert await host.invoke("greet", name="Ada") == "Hello, Ada!"
"""

from executa_sdk.testing.clock import Clock
from executa_sdk.testing.host import Running, TestHost
from executa_sdk.testing.process import PluginProcess
from executa_sdk.testing.services import ReverseCall, Services

__all__ = ["Clock", "PluginProcess", "ReverseCall", "Running", "Services", "TestHost"]
