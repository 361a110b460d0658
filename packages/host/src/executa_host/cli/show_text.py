"""A transcript's timeline as lines for a person: as wide as the terminal, whole in a pipe."""

from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.text import Text

from executa_host.cli.timeline import clean
from executa_host.transcripts.items import Item, Status
from executa_host.transcripts.model import Tree
from executa_host.transcripts.reading import Transcript

_MARKS: Final[dict[Status, tuple[str, str]]] = {
    "ok": ("✓", "green"),
    "refused": ("⊘", "bold red"),
    "failed": ("✗", "bold red"),
    "open": ("…", "yellow"),
    "": (" ", ""),
}
_LABELS: Final = {
    "action": "bold magenta",
    "invoke": "bold",
    "process": "cyan",
    "frame": "blue",
    "run": "blue",
    "stderr": "dim",
    "noise": "yellow",
}
_WIDE: Final = 110
"""Columns from which a bar shows where in time an item lies."""

_NARROW: Final = 60
"""Columns below which words give way."""

_BAR: Final = 24


def print_timeline(console: Console, found: Transcript, tree: Tree, roots: list[Item]) -> None:
    """Print every item, then what there was of everything."""
    cropped = console.is_terminal
    for item, guides in _rows(roots):
        line = _line(item, guides, tree.seconds, console.width if cropped else 0)
        if cropped:
            line.truncate(console.width, overflow="ellipsis")
            console.print(line, no_wrap=True, crop=True)
        else:
            console.print(line, soft_wrap=True)
    for remark in found.remarks:
        console.print(Text(remark, style="yellow"), soft_wrap=not cropped)
    console.print(_sum(found, tree), soft_wrap=not cropped)


def _rows(roots: list[Item]) -> Iterator[tuple[Item, str]]:
    """Every item from top to bottom with the lines that lead to it."""
    waiting: list[tuple[Item, str, str]] = [(root, "", "") for root in reversed(roots)]
    while waiting:
        item, before, own = waiting.pop()
        yield item, before + own
        inner = before + {"├ ": "│ ", "└ ": "  ", "": ""}[own]
        last = len(item.children) - 1
        waiting += [
            (child, inner, "└ " if index == last else "├ ")
            for index, child in reversed(list(enumerate(item.children)))
        ]


def _line(item: Item, guides: str, seconds: float, width: int) -> Text:
    """One item. `width` is the terminal's, 0 in a pipe."""
    narrow = 0 < width < _NARROW
    line = Text()
    line.append(f"{item.start:7.3f} " if narrow else f"{item.start:8.3f}s ", style="dim")
    if width >= _WIDE:
        line.append_text(_bar(item, seconds))
    line.append(guides, style="dim")
    mark, style = _MARKS[item.status]
    if item.status:
        line.append(f"{mark} ", style=style)
    bad = item.status in ("refused", "failed")
    arrow = f"{item.arrow} " if item.arrow else ""
    line.append(arrow + clean(item.label), style=style if bad else _LABELS.get(item.kind, ""))
    if item.end > item.start:
        line.append(f" {_duration(item.ms)}", style="dim")
    if item.status in ("failed", "refused", "open") and not item.detail.startswith(item.status):
        line.append(f" {'not ended' if item.status == 'open' else item.status}", style=style)
    if item.detail:
        line.append(f"  {clean(item.detail)}", style="red" if bad else "dim")
    return line


def _bar(item: Item, seconds: float) -> Text:
    """Where in the whole the item lies."""
    scale = _BAR / seconds if seconds > 0 else 0.0
    first = min(int(item.start * scale), _BAR - 1)
    length = max(1, min(round((item.end - item.start) * scale), _BAR - first))
    glyph = "━" if item.end > item.start else "╸"
    style = {"refused": "red", "failed": "red", "open": "yellow"}.get(item.status, "green")
    bar = Text()
    bar.append("·" * first, style="dim")
    bar.append(glyph * length, style=style)
    bar.append("·" * (_BAR - first - length), style="dim")
    return bar.append(" ")


def _duration(ms: float) -> str:
    return f"{ms / 1000:.2f} s" if ms >= 1000 else f"{ms:.1f} ms"


def _sum(found: Transcript, tree: Tree) -> Text:
    totals = tree.totals
    words = [
        f"{totals[name]:,} {name.replace('_', ' ')}"
        for name in ("processes", "actions", "invokes", "reverse_calls", "frames")
        if totals[name] or name == "invokes"
    ]
    line = Text(", ".join(words), style="bold")
    for name in ("refused", "failed"):
        if totals[name]:
            line.append(f", {totals[name]:,} {name}", style="bold red")
    line.append(f", {tree.seconds:.3f} s")
    if found.cut:
        line.append("; cut off", style="yellow")
    return line
