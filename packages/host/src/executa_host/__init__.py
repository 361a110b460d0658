"""Run Executa plugins: lifecycle, reverse-call gateway, agent sessions, and more."""

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
