"""`storage ls|get|rm` at the prompt: what the plugin keeps, seen past it."""

from collections.abc import Sequence
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from executa_host.cli import exits
from executa_host.cli.dev.cloud import SCOPES
from executa_host.cli.dev.session import DevSession
from executa_host.cli.dev.show import Show
from executa_host.cli.faults import nearest
from executa_host.cli.timeline import clean

WORDS: Final = ("ls", "get", "rm")
_USAGE: Final = "storage ls [PREFIX], storage get [user|tool] KEY, or storage rm [user|tool] KEY"


async def storage(words: Sequence[str], session: DevSession, show: Show) -> int:
    """Do what the words say. Raises `exits.Stop` and `NexusError`."""
    what, *rest = words or ("ls",)
    if what not in WORDS:
        near = nearest(what, WORDS)
        raise exits.Stop(f"write {_USAGE}. {near}".strip(), exits.USAGE)
    if what == "ls":
        if len(rest) > 1:
            raise exits.Stop(f"write {_USAGE}", exits.USAGE)
        rows = await session.cloud.listing("".join(rest))
        session.keys = [row["key"] for row in rows if row["kind"] == "key"]
        show.result({"ok": True, "items": rows}, lambda console: _draw(console, rows))
        return exits.OK
    scopes: Sequence[str] = SCOPES
    if len(rest) == 2 and rest[0] in SCOPES:
        scopes, rest = (rest[0],), rest[1:]
    if len(rest) != 1:
        raise exits.Stop(f"write {_USAGE}", exits.USAGE)
    if what == "get":
        found = await session.cloud.get(rest[0], scopes)
        show.result({"ok": True, **found}, lambda console: console.print_json(data=found["value"]))
    else:
        scope = await session.cloud.remove(rest[0], scopes)
        show.result(
            {"ok": True, "scope": scope, "key": rest[0]},
            lambda console: console.print(f"removed from scope {scope}", markup=False),
        )
    return exits.OK


def _draw(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        console.print("nothing is stored", style="dim")
    for row in rows:
        name = row["key"] if row["kind"] == "key" else row["path"]
        size = row.get("size_bytes")
        line = Text(f"{row['scope']:<5}", style="dim") + Text(clean(str(name)))
        if row["kind"] == "file":
            line += Text("  file", style="cyan")
        if isinstance(size, int):
            line += Text(f"  {size:,} bytes", style="dim")
        console.print(line)
