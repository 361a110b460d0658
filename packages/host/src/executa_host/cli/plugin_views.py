"""A plugin's grant and its process, as a person reads them."""

from rich.console import Console
from rich.text import Text

from executa_host.cli.timeline import clean
from executa_host.status import PluginStatus
from executa_protocol.lifecycle import State
from executa_protocol.manifest import Manifest
from executa_protocol.nexus import InvokeGrant

_STATES = {State.READY: "green", State.FAULTED: "bold red", State.RESTARTING: "yellow"}
_KIB = 1024


def show_grant(console: Console, grant: InvokeGrant, manifest: Manifest) -> None:
    """What the user allows, beside what the manifest asks for."""
    given = grant.grants
    for name in given.__struct_fields__:
        on = bool(getattr(given, name))
        word = Text("allowed", style="green") if on else Text("not allowed", style="red")
        console.print(Text(f"{name:<10}", style="bold") + word)
    caps = grant.caps
    console.print(
        Text(
            f"{caps.sampling_calls:,} model calls, {caps.tokens:,} tokens "
            f"({caps.tokens_per_call:,} a call) and {caps.storage_calls:,} storage calls an invoke",
            style="dim",
        )
    )
    tools = ", ".join(map(clean, grant.granted_tools)) or "none"
    console.print(Text(f"tools for agent runs: {tools}", style="dim"))
    declared = ", ".join(map(clean, manifest.host_capabilities)) or "nothing"
    console.print(Text(f"the manifest declares {declared}", style="dim"))
    for credential in manifest.credentials:
        there = credential.name in grant.credentials
        console.print(
            Text(f"credential {clean(credential.name)}: {'there' if there else 'not at nexus'}")
        )


def state_text(state: State) -> Text:
    """A plugin's state in its colour."""
    return Text(str(state), style=_STATES.get(state, "cyan"))


def show_status(console: Console, status: PluginStatus) -> None:
    """One plugin: what a person asks first."""
    console.print(Text(f"{clean(status.plugin)} ", style="bold") + state_text(status.state))
    facts: list[tuple[str, str]] = []
    if status.pid is not None:
        facts.append(("process", f"{status.pid}, protocol {status.protocol or 'not known yet'}"))
    if status.uptime is not None:
        facts.append(("ready for", f"{status.uptime:.0f} s"))
    if status.resident_bytes is not None:
        facts.append(("memory", f"{status.resident_bytes / _KIB / _KIB:.1f} MiB"))
    facts.append(("launches", str(status.launches)))
    if status.in_flight:
        facts.append(("running", f"{status.in_flight} invokes"))
    if status.exit_codes:
        facts.append(("exit codes", ", ".join(map(str, status.exit_codes))))
    if status.faults:
        facts.append(("faults", f"{status.faults} in a row: {clean(status.last_fault)}"))
    for name, value in facts:
        console.print(Text(f"  {name:<11}", style="dim") + Text(value))
