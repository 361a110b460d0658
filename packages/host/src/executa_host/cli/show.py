"""`executa show`: a transcript as a timeline, in the terminal, as one HTML page, or as JSON."""

import os
import tempfile
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from executa_host.cli import exits
from executa_host.cli.faults import ending
from executa_host.cli.output import Screen, tell, write_json
from executa_host.cli.show_text import print_timeline
from executa_host.transcripts import filters
from executa_host.transcripts.items import Item
from executa_host.transcripts.model import Tree, build_tree
from executa_host.transcripts.page import make_page
from executa_host.transcripts.reading import Transcript, read_transcript
from executa_protocol.errors import UsageError


def show(
    file: Annotated[Path, Parameter(help="The transcript, as --record wrote it.")],
    /,
    *,
    plugin: Annotated[
        tuple[str, ...], Parameter(help="Only what belongs to this plugin. May be given again.")
    ] = (),
    invoke: Annotated[
        str, Parameter(help="Only this invoke: its id, the beginning of that, or PLUGIN.TOOL.")
    ] = "",
    errors: Annotated[bool, Parameter(help="Only what was refused or failed.")] = False,
    depth: Annotated[int | None, Parameter(help="How many levels; 1 is the outermost.")] = None,
    html: Annotated[
        Path | None, Parameter(help="Write one self-contained HTML page here instead.")
    ] = None,
    json: Annotated[bool, Parameter(help="Print one JSON object.")] = False,
) -> int:
    """Show what a transcript holds: who called whom, when, for how long, and what was refused.

    A transcript that was cut off is shown up to there. Nothing leaves this machine: the page
    is one file that loads nothing.
    """
    with ending(json=json):
        if depth is not None and depth < 1:
            raise UsageError("--depth: expected 1 or more")
        found = read_transcript(file)
        tree = build_tree(found)
        roots = _chosen(tree, plugin, invoke, errors=errors)
        if depth is not None:
            roots = filters.to_depth(roots, depth)
        if html is not None:
            if html.exists() and html.samefile(file):
                raise UsageError(f"--html: {html} is the transcript itself; name another file")
            _write(html, make_page(found, tree, roots))
    if json:
        write_json(_document(found, tree, roots, html))
        return exits.OK
    if html is None:
        print_timeline(Screen(highlight=False), found, tree, roots)
    else:
        told = f"{html}: {_count(roots):,} items of {file.name}; open it in a browser"
        Screen(highlight=False).print(told, markup=False, soft_wrap=True)
        for remark in found.remarks:
            tell(remark, style="yellow")
    return exits.OK


def _chosen(tree: Tree, plugins: tuple[str, ...], invoke: str, *, errors: bool) -> list[Item]:
    roots = tree.roots
    if plugins:
        roots = filters.of_plugins(roots, plugins)
    if invoke:
        roots = filters.of_invoke(roots, invoke)
    return filters.with_errors(roots) if errors else roots


def _count(roots: list[Item]) -> int:
    return sum(1 for root in roots for _ in root.walk())


def _write(path: Path, page: str) -> None:
    """Write a file as a whole: what was there stays until all of it is there."""
    try:
        fd, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                file.write(page)
            Path(made).replace(path)
        except BaseException:
            Path(made).unlink(missing_ok=True)
            raise
    except OSError as fault:
        msg = f"{path} cannot be written: {fault.strerror}"
        raise UsageError(msg) from None


def _document(found: Transcript, tree: Tree, roots: list[Item], html: Path | None) -> Any:
    return {
        "ok": True,
        "file": str(found.path),
        "cut": found.cut,
        "dropped": found.dropped,
        "remarks": found.remarks,
        "parts": [
            {
                "at": part.header.at,
                "host": part.header.host,
                "command": part.header.command,
                "lines": len(part.lines),
                "whole": part.end is not None,
            }
            for part in found.parts
        ],
        "seconds": round(tree.seconds, 6),
        "totals": tree.totals,
        **({"html": str(html)} if html else {"items": roots}),
    }
