"""Run Executa plugins: lifecycle, reverse-call gateway, agent sessions, and more."""

from executa_host.connection import StartFailed
from executa_host.host import LOCAL_USER, Host
from executa_host.invocation import InvokeOutcome, InvokeRefused, InvokeTimeout
from executa_host.process import SpawnFailed
from executa_host.reverse.budget import Ledger
from executa_host.spec import PluginSpec
from executa_host.supervisor import PluginFaulted

__all__ = [
    "LOCAL_USER",
    "Host",
    "InvokeOutcome",
    "InvokeRefused",
    "InvokeTimeout",
    "Ledger",
    "PluginFaulted",
    "PluginSpec",
    "SpawnFailed",
    "StartFailed",
]
