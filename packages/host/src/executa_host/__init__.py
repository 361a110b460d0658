"""Run Executa plugins: lifecycle, reverse-call gateway, agent sessions, and more.

Names are loaded when they are first used: the command line starts without what it does not need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from executa_host.connection import StartFailed
    from executa_host.handle import InvokeHandle
    from executa_host.host import Host
    from executa_host.invocation import CancelOutcome, InvokeOutcome, InvokeRefused, InvokeTimeout
    from executa_host.patience import Patience
    from executa_host.process import SpawnFailed
    from executa_host.reverse.budget import Ledger
    from executa_host.runtime import LOCAL_USER
    from executa_host.spec import PluginSpec
    from executa_host.status import PluginStatus
    from executa_host.supervisor import PluginFaulted

__all__ = [
    "LOCAL_USER",
    "CancelOutcome",
    "Host",
    "InvokeHandle",
    "InvokeOutcome",
    "InvokeRefused",
    "InvokeTimeout",
    "Ledger",
    "Patience",
    "PluginFaulted",
    "PluginSpec",
    "PluginStatus",
    "SpawnFailed",
    "StartFailed",
]

# Where each name lives; a test holds this against the imports above, which type checkers read.
_HOMES = {
    "executa_host.connection": "StartFailed",
    "executa_host.handle": "InvokeHandle",
    "executa_host.host": "Host",
    "executa_host.invocation": "CancelOutcome InvokeOutcome InvokeRefused InvokeTimeout",
    "executa_host.patience": "Patience",
    "executa_host.process": "SpawnFailed",
    "executa_host.reverse.budget": "Ledger",
    "executa_host.runtime": "LOCAL_USER",
    "executa_host.spec": "PluginSpec",
    "executa_host.status": "PluginStatus",
    "executa_host.supervisor": "PluginFaulted",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:  # or type checkers would believe that every name is here

    def __getattr__(name: str) -> Any:
        home = _HOME.get(name)
        if home is None:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        value = getattr(import_module(home), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOME})
