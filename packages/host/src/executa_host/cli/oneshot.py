"""`executa describe`, `invoke` and `health`: start a plugin, ask one thing, stop it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from cyclopts import Parameter

from executa_host.cli import exits
from executa_host.cli.arguments import read_arguments, remarks
from executa_host.cli.detect import find_plugin
from executa_host.cli.faults import ending
from executa_host.cli.nexus_options import DEFAULT, NexusOptions, open_host
from executa_host.cli.output import Screen, tell, write_json
from executa_host.cli.recording import Record
from executa_host.cli.running import run
from executa_host.cli.timeline import clean
from executa_host.cli.views import show_data, show_manifest
from executa_host.cli.working import Working, working
from executa_host.connection import StartFailed
from executa_host.host import Host
from executa_host.invocation import InvokeOutcome
from executa_protocol.errors import ExecutaError, RpcError
from executa_protocol.manifest import Manifest

T = TypeVar("T")

Words = Annotated[
    str,
    Parameter(
        help="The plugin: its folder, its file, or its command after --. Default: here.",
        completer=lambda context: paths_like(context.incomplete),
    ),
]
Json = Annotated[bool, Parameter(help="Print one JSON object.")]
Timeout = Annotated[float, Parameter(help="Seconds to wait, a start included.")]

DEFAULT_TIMEOUT: Final = 120.0


def paths_like(text: str) -> list[str]:
    """The files and folders that a shell may complete `text` to."""
    folder, _, name = text.rpartition("/")
    start = f"{folder}/" if "/" in text else ""
    try:
        found = sorted(Path(start or ".").iterdir())
    except OSError:
        return []
    hidden = name.startswith(".")
    return [
        f"{start}{path.name}{'/' * path.is_dir()}"
        for path in found
        if path.name.startswith(name) and (hidden or not path.name.startswith("."))
    ]


def describe(
    *plugin: Words, json: Json = False, timeout: Timeout = DEFAULT_TIMEOUT, record: Record = None
) -> int:
    """Show what a plugin says about itself."""

    async def ask(host: Host, name: str, shown: Working) -> tuple[Manifest, list[Any]]:
        return await host.start(name), shown.findings

    with ending(json=json):
        manifest, findings = ask_plugin(
            plugin, ask, DEFAULT, timeout=timeout, quiet=json, record=record
        )
    if json:
        found = [{"kind": each.kind, "message": each.message} for each in findings]
        write_json({"ok": True, "manifest": manifest, "findings": found})
    else:
        show_manifest(Screen(highlight=False), manifest)
    return exits.OK


def health(
    *plugin: Words, json: Json = False, timeout: Timeout = DEFAULT_TIMEOUT, record: Record = None
) -> int:
    """Ask a plugin how it is."""

    async def ask(host: Host, name: str, _: Working) -> Any:
        await host.start(name)
        return await host.health(name)

    with ending(json=json):
        answer = ask_plugin(plugin, ask, DEFAULT, timeout=timeout, quiet=json, record=record)
    if json:
        write_json({"ok": answer.status == "ready", "health": answer})
    else:
        message = f": {clean(answer.message)}" if answer.message else ""
        Screen(highlight=False).print(f"{answer.status}{message}", markup=False)
    return exits.OK if answer.status == "ready" else exits.FAILED


def invoke(
    tool: Annotated[str, Parameter(help="The tool's name.")],
    /,
    *plugin: Words,
    args: Annotated[
        str, Parameter(help="Arguments as JSON, @FILE, or - for stdin.", allow_leading_hyphen=True)
    ] = "{}",
    json: Json = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    record: Record = None,
    options: NexusOptions = DEFAULT,
) -> int:
    """Run one tool of a plugin and print what it returned."""

    async def ask(host: Host, name: str, shown: Working) -> InvokeOutcome:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        manifest = await host.start(name)
        shown.on(f"{tool} runs")
        try:
            outcome = await host.invoke(
                name,
                tool,
                arguments,
                timeout=max(0.001, deadline - loop.time()),
                on_progress=shown.on_progress,
            )
        except RpcError:
            _remark(manifest, tool, arguments, quiet=json)
            raise
        if not outcome.success:
            _remark(manifest, tool, arguments, quiet=json)
        return outcome

    with ending(json=json):
        arguments = read_arguments(args)
        # The start is bounded here, the tool by its own time-out: what came of it is known then.
        within = timeout + _SLACK
        outcome = ask_plugin(plugin, ask, options, timeout=within, quiet=json, record=record)
    if json:
        write_json(told_outcome(outcome))
    elif outcome.success:
        show_data(Screen(), outcome)
    else:
        raise exits.Stop(f"{outcome.tool} failed: {outcome.error}", exits.FAILED)
    return exits.OK if outcome.success else exits.FAILED


_SLACK: Final = 1.0


def told_outcome(outcome: InvokeOutcome) -> dict[str, Any]:
    """What a tool returned, for a program."""
    return {
        "ok": outcome.success,
        "plugin": outcome.plugin,
        "tool": outcome.tool,
        "data": outcome.data,
        "error": outcome.error or None,
        "duration_ms": outcome.duration_ms,
        "invoke_id": outcome.invoke_id,
        "ledger": outcome.ledger,
    }


def ask_plugin(
    words: tuple[str, ...],
    ask: Callable[[Host, str, Working], Awaitable[T]],
    options: NexusOptions,
    *,
    timeout: float,
    quiet: bool,
    record: Path | None = None,
) -> T:
    """Start the plugin that `words` mean, ask, and stop it. Raises `Stop` and `ExecutaError`."""
    if not timeout > 0:
        raise exits.Stop("--timeout: expected more than 0 seconds", exits.USAGE)
    spec = options.equip(find_plugin(words))

    async def visit() -> T:
        with working(quiet=quiet) as shown:
            shown.on(f"{spec.name} starts")
            opening = open_host(spec, options, trace=shown.trace, record=record)
            async with opening as (host, _):
                try:
                    async with asyncio.timeout(timeout):
                        return await ask(host, spec.name, shown)
                except TimeoutError as late:
                    if isinstance(late, ExecutaError):
                        raise
                    text = f"{spec.name} gave no answer within {timeout:g} s"
                    raise StartFailed(text) from None

    return run(visit())


def _remark(manifest: Manifest, name: str, arguments: dict[str, Any], *, quiet: bool) -> None:
    """Say what the manifest has against the arguments of a call that failed."""
    tool = manifest.tool(name)
    for text in () if tool is None or quiet else remarks(tool, arguments):
        tell(f"the manifest says: {text}", style="yellow")
