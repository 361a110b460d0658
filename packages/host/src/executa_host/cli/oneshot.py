"""`executa describe`, `invoke`, `health` and `why`: start a plugin, ask one thing, stop it."""

import difflib
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, cast

from cyclopts import Parameter
from msgspec import Raw
from rich.table import Table

from executa_host.cli import exits
from executa_host.cli.detect import find_plugin
from executa_host.cli.output import Screen, write_json
from executa_host.cli.running import exit_code, one_plugin, run
from executa_host.cli.timeline import clean
from executa_host.host import Host
from executa_host.invocation import InvokeOutcome
from executa_protocol import codec
from executa_protocol.errors import CallTimeout, DecodeFailure, ExecutaError, RpcError
from executa_protocol.manifest import Manifest

T = TypeVar("T")

Words = Annotated[
    str,
    Parameter(help="The plugin: its folder, its file, or its command after --. Default: here."),
]
Json = Annotated[bool, Parameter(negative="", help="Print one JSON object.")]
Timeout = Annotated[float, Parameter(help="Seconds to wait, a start included.")]

DEFAULT_TIMEOUT: Final = 120.0


def describe(*plugin: Words, json: Json = False) -> int:
    """Show what a plugin says about itself."""

    async def ask(host: Host, name: str) -> Manifest:
        return await host.start(name)

    manifest = _run(plugin, ask, json=json)
    if json:
        write_json({"ok": True, "manifest": manifest})
        return exits.OK
    console = Screen(highlight=False)
    declared = ", ".join(manifest.host_capabilities) or "nothing"
    console.print(f"{manifest.name} {manifest.version}", style="bold", markup=False)
    if manifest.description:
        console.print(clean(manifest.description), markup=False)
    console.print(f"declares {declared}", style="dim", markup=False)
    table = Table(box=None, pad_edge=False)
    for heading in ("tool", "parameters", "description"):
        table.add_column(heading)
    for tool in manifest.tools:
        names = ", ".join(
            f"{each.name}: {each.type}" if each.required else f"[{each.name}: {each.type}]"
            for each in tool.parameters
        )
        table.add_row(_plain(tool.name), _plain(names), _plain(clean(tool.description)))
    console.print(table)
    return exits.OK


def health(*plugin: Words, json: Json = False) -> int:
    """Ask a plugin how it is."""

    async def ask(host: Host, name: str) -> Any:
        return await host.health(name)

    answer = _run(plugin, ask, json=json)
    if json:
        write_json({"ok": answer.status == "ready", "health": answer})
    else:
        message = f": {clean(answer.message)}" if answer.message else ""
        Screen(highlight=False).print(f"{answer.status}{message}", markup=False)
    return exits.OK if answer.status == "ready" else exits.FAILED


def invoke(
    tool: str,
    *plugin: Words,
    args: Annotated[
        str, Parameter(help="Arguments as JSON, @FILE, or - for stdin.", allow_leading_hyphen=True)
    ] = "{}",
    json: Json = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> int:
    """Run one tool of a plugin and print what it returned."""
    arguments = read_arguments(args)
    progress = None if json else _progress()

    async def ask(host: Host, name: str) -> InvokeOutcome:
        return await host.invoke(name, tool, arguments, timeout=timeout, on_progress=progress)

    outcome = _run(plugin, ask, json=json)
    if json:
        write_json(
            {
                "ok": outcome.success,
                "plugin": outcome.plugin,
                "tool": outcome.tool,
                "data": outcome.data,
                "error": outcome.error or None,
                "duration_ms": outcome.duration_ms,
                "invoke_id": outcome.invoke_id,
                "ledger": outcome.ledger,
            }
        )
    elif outcome.success:
        _print_data(outcome)
    else:
        raise exits.Stop(f"{outcome.tool} failed: {outcome.error}", exits.FAILED)
    return exits.OK if outcome.success else exits.FAILED


def why(method: str, *plugin: Words, json: Json = False) -> int:
    """Say, step by step, whether a plugin may make a reverse call, and what would unlock it."""

    async def ask(host: Host, name: str) -> Any:
        await host.start(name)
        return host.why(name, method)

    verdicts = _run(plugin, ask, json=json)
    refused = any(verdict.passed is False for verdict in verdicts)
    if json:
        write_json({"ok": not refused, "method": method, "steps": verdicts})
        return exits.REFUSED if refused else exits.OK
    table = Table(box=None, pad_edge=False)
    for heading in ("step", "verdict", "what it says"):
        table.add_column(heading)
    for verdict in verdicts:
        word = {True: "[green]yes", False: "[red]no", None: "[dim]open"}[verdict.passed]
        needs = "" if verdict.refusal is None else f" → {', '.join(verdict.refusal.needs)}"
        table.add_row(verdict.step, word, _plain(verdict.detail + needs))
    Screen(highlight=False).print(table)
    return exits.REFUSED if refused else exits.OK


# --- What they share -------------------------------------------------------------------


def read_arguments(text: str) -> dict[str, Any]:
    """Arguments from the command line: JSON, ``@FILE``, or ``-`` for stdin.

    Raises `exits.Stop` that points at the character where the JSON is wrong.
    """
    where = "--args"
    if text == "-":
        text, where = sys.stdin.read(), "standard input"
    elif text.startswith("@"):
        where = text[1:]
        try:
            text = Path(where).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise exits.Stop(f"{where} cannot be read: {fault}", exits.USAGE) from None
    try:
        data = text.encode()
        codec.check_content(data)
        value: object = codec.decode_any(data)
    except (DecodeFailure, UnicodeEncodeError) as fault:
        raise exits.Stop(
            f"{where} is no JSON: {fault}\n{_pointed(text, fault)}", exits.USAGE
        ) from None
    if not isinstance(value, dict):
        raise exits.Stop(f'{where}: expected an object such as {{"name": "value"}}', exits.USAGE)
    return cast("dict[str, Any]", value)


def _pointed(text: str, fault: Exception) -> str:
    """The line of the text with a caret under the byte that the fault names."""
    words = str(fault).rpartition("(byte ")[2].rstrip(")")
    if not words.isdigit():
        return text.splitlines()[0][:100] if text else ""
    before = text.encode()[: int(words)].decode(errors="replace")
    start = before.rfind("\n") + 1
    line = text[start:].split("\n", 1)[0]
    column = len(before) - start
    first = max(0, column - 60)
    return f"{line[first : first + 100]}\n{' ' * (column - first)}^"


def _run(words: Sequence[str], ask: Callable[[Host, str], Awaitable[T]], *, json: bool) -> T:
    """Start the plugin that `words` mean, ask, and stop it. Ends the command on a fault."""
    spec = find_plugin(words)

    async def visit() -> T:
        async with one_plugin(spec) as host:
            return await ask(host, spec.name)

    try:
        return run(visit())
    except ExecutaError as fault:
        code = exit_code(fault)
        if json:
            write_json(_told(fault))
            raise exits.Stop("", code) from None
        raise exits.Stop(_advice(fault), code) from None


def _told(fault: ExecutaError) -> dict[str, Any]:
    error: dict[str, Any] = {"kind": type(fault).__name__, "message": str(fault)}
    if isinstance(fault, RpcError):
        error |= {"code": fault.code, "message": fault.message, "data": fault.data}
    return {"ok": False, "error": error}


def _advice(fault: ExecutaError) -> str:
    """The fault in words, with the nearest names where a tool's name was wrong."""
    if isinstance(fault, CallTimeout):
        return f"{fault}; give it longer with --timeout"
    if not isinstance(fault, RpcError):
        return str(fault)
    names = fault.data.get("available_tools")
    asked = str(fault.message).split("'")
    if isinstance(names, list) and len(asked) > 1:
        known = [str(name) for name in cast("list[object]", names)]
        near = difflib.get_close_matches(asked[1], known, n=2)
        if near:
            return f"{fault.message}. Did you mean {' or '.join(near)}?"
    return fault.message


def _progress() -> Callable[[Raw], None]:
    console = Screen(stderr=True, highlight=False)

    def show(event: Raw) -> None:
        console.print(f"… {clean(bytes(event).decode())}", style="dim", markup=False)

    return show


def _print_data(outcome: InvokeOutcome) -> None:
    console = Screen()
    if isinstance(outcome.data, str):
        console.print(outcome.data, markup=False, highlight=False, soft_wrap=True)
    elif isinstance(outcome.raw, Raw):
        console.print_json(bytes(outcome.raw).decode())


def _plain(text: str) -> str:
    """Text that rich does not read as markup."""
    return text.replace("[", r"\[")
