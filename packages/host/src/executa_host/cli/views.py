"""A plugin as a person reads it: its manifest, the verdicts of the gate, what a tool gave.

Lines rather than tables where text is long, so that a narrow terminal shows all of it. What
comes from a plugin is shown without control characters and never read as markup.
"""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Raw
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from executa_host.cli.output import harmless
from executa_host.cli.timeline import clean
from executa_host.invocation import InvokeOutcome
from executa_protocol.gate import Verdict
from executa_protocol.manifest import Manifest, Parameter, Tool

_VERDICTS: Final = {True: ("yes", "green"), False: ("no", "red"), None: ("open", "dim")}
_STEP_WIDTH: Final = 11


def typed(command: Sequence[str]) -> str:
    """A command as one would type it here."""
    here = f"{Path.cwd()}{os.sep}"
    words = [Path(word).name if word == sys.executable else word for word in command]
    return shlex.join(word.removeprefix(here) for word in words)


def show_manifest(console: Console, manifest: Manifest) -> None:
    """Name, what it declares, and each tool with its parameters."""
    head = Text(clean(manifest.name), style="bold") + Text(f" {clean(manifest.version)}")
    console.print(head)
    if manifest.description:
        console.print(Text(clean(manifest.description)))
    declared = ", ".join(map(clean, manifest.host_capabilities)) or "nothing"
    console.print(Text(f"declares {declared}", style="dim"))
    for credential in manifest.credentials:
        need = "needs" if credential.required else "may use"
        console.print(Text(f"{need} the credential {clean(credential.name)}", style="dim"))
    for tool in manifest.tools:
        _show_tool(console, tool)


def _show_tool(console: Console, tool: Tool) -> None:
    line = Text(clean(tool.name), style="bold cyan")
    line += Text(f"({', '.join(map(_parameter, tool.parameters))})", style="cyan")
    notes = [tool.effect] if tool.effect != "mutating" else []
    notes += ["streaming"] * tool.streaming + ["needs approval"] * tool.approval
    if notes:
        line += Text(f"  {', '.join(notes)}", style="dim")
    console.print(line)
    if tool.description:
        console.print(Padding(Text(clean(tool.description)), (0, 0, 0, 4), expand=False))


def _parameter(parameter: Parameter) -> str:
    text = f"{clean(parameter.name)}: {parameter.type}"
    if isinstance(parameter.enum, list):
        text += " of " + "|".join(clean(str(each)) for each in parameter.enum)
    return text if parameter.required else f"[{text}]"


def show_verdicts(console: Console, verdicts: Sequence[Verdict]) -> None:
    """One line a step, and below a refusal what would unlock it."""
    for verdict in verdicts:
        word, style = _VERDICTS[verdict.passed]
        line = Text(f"{verdict.step:<{_STEP_WIDTH}}", style="bold") + Text(
            f"{word:<5}", style=style
        )
        console.print(line + Text(clean(verdict.detail)))
        if verdict.refusal is not None and verdict.refusal.needs:
            needs = Text(f"needs {', '.join(verdict.refusal.needs)}", style="yellow")
            console.print(Padding(needs, (0, 0, 0, _STEP_WIDTH), expand=False))


def show_data(console: Console, outcome: InvokeOutcome) -> None:
    """What a tool returned: text as it is, anything else as JSON."""
    data: Any = outcome.data
    if isinstance(data, str):
        console.print(harmless(data), markup=False, highlight=False, soft_wrap=True)
    elif isinstance(outcome.raw, Raw):
        console.print_json(bytes(outcome.raw).decode())


def changes(old: Manifest, new: Manifest) -> list[str]:
    """What is different in a manifest, one line each: ``+`` new, ``-`` gone, ``~`` changed."""
    lines: list[str] = []
    if (old.name, old.version) != (new.name, new.version):
        lines.append(f"~ {old.name} {old.version} → {new.name} {new.version}")
    before, after = old.declared(), new.declared()
    lines += [f"+ capability {word}" for word in sorted(after - before)]
    lines += [f"- capability {word}" for word in sorted(before - after)]
    known = {tool.name: tool for tool in old.tools}
    for tool in new.tools:
        was = known.pop(tool.name, None)
        if was is None:
            lines.append(f"+ tool {signature(tool)}")
        elif signature(was) != signature(tool):
            lines.append(f"~ tool {signature(was)} → {signature(tool)}")
        elif was != tool:
            lines.append(f"~ tool {tool.name}: {', '.join(_members(was, tool))}")
    lines += [f"- tool {name}" for name in known]
    if old.credentials != new.credentials:
        lines.append("~ credentials")
    return [clean(line) for line in lines]


def signature(tool: Tool) -> str:
    """A tool with its parameters: ``recall(query: string)``."""
    return f"{tool.name}({', '.join(map(_parameter, tool.parameters))})"


def _members(old: Tool, new: Tool) -> list[str]:
    return [name for name in old.__struct_fields__ if getattr(old, name) != getattr(new, name)]
