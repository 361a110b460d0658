"""Bar charts as SVG text: one bar for each value, a line from the least to the greatest.

Knows nothing of suites. Colours follow the reader's light or dark setting, and every bar has
its number beside it, so that no colour is needed to read one.
"""

import math
from collections.abc import Sequence
from typing import Final, Literal
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct

Kind = Literal["ours", "peer", "floor"]

WIDTH: Final = 900
LABEL: Final = 290
"""Left of the bars."""

NUMBER: Final = 90
"""Right of the bars."""

BAR: Final = 14
STEP: Final = 20
GROUP: Final = 30
TOP: Final = 44
FOOT: Final = 34

_STYLE: Final = """
text { font: 12px system-ui, sans-serif; fill: #24292f; }
.title { font-size: 15px; font-weight: 600; }
.group { font-weight: 600; }
.axis { stroke: #8c959f; stroke-width: 0.5; }
.spread { stroke: #24292f; stroke-width: 1.2; }
.mark { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 4 3; }
.ours { fill: #2f6fdd; } .peer { fill: #c9812d; } .floor { fill: #9aa4af; }
@media (prefers-color-scheme: dark) {
text { fill: #d1d7de; } .spread { stroke: #d1d7de; } .axis { stroke: #57606a; }
}
"""


class Bar(Struct, frozen=True):
    """One bar. `shown` is its number as text."""

    label: str
    value: float
    least: float
    greatest: float
    shown: str
    kind: Kind = "ours"


class Group(Struct, frozen=True):
    """Bars under one heading; without a `name` they stand alone."""

    name: str
    bars: Sequence[Bar]


def chart(
    title: str,
    unit: str,
    groups: Sequence[Group],
    *,
    mark: float | None = None,
    mark_name: str = "",
) -> str:
    """A chart with a logarithmic axis, where `mark` is a dashed line. Groups hold positive values.

    Raises ValueError without a bar.
    """
    values = [
        value for group in groups for bar in group.bars for value in (bar.least, bar.greatest)
    ]
    if not values:
        msg = f"the chart {title!r} has no bars"
        raise ValueError(msg)
    axis = _Axis(min(values), max([*values, *([mark] if mark else [])]))
    body: list[str] = []
    y = TOP
    for group in groups:
        if group.name:
            body.append(_text(8, y + 14, group.name, "group"))
            y += STEP
        for bar in group.bars:
            body += _bar(bar, y, axis)
            y += STEP
        y += GROUP - STEP
    height = y + FOOT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"',
        f'width="{WIDTH}" aria-label={quoteattr(title)}>',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        _text(8, 20, title, "title"),
        *_grid(axis, y),
        *body,
        _text(LABEL, height - 6, f"{unit}, logarithmic"),
    ]
    if mark is not None:
        x = axis.at(mark)
        lines.append(f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{y}"/>')
        lines.append(_text(x + 4, TOP - 10, mark_name))
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


class _Axis:
    """A logarithmic axis over whole powers of ten."""

    def __init__(self, least: float, greatest: float) -> None:
        self.low = math.floor(math.log10(least) - 1e-9)
        self.high = max(self.low + 1, math.ceil(math.log10(greatest)))

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return LABEL + max(0.0, share) * (WIDTH - LABEL - NUMBER)


def _bar(bar: Bar, y: int, axis: _Axis) -> list[str]:
    end, least, greatest = axis.at(bar.value), axis.at(bar.least), axis.at(bar.greatest)
    middle, width = y + BAR / 2, max(1.0, end - LABEL)
    return [
        f'<text x="{LABEL - 8}" y="{y + 11}" text-anchor="end">{escape(bar.label)}</text>',
        f'<rect class="{bar.kind}" x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2"/>',
        f'<line class="spread" x1="{least:.1f}" x2="{greatest:.1f}" y1="{middle}" y2="{middle}"/>',
        _text(max(end, greatest) + 6, y + 11, bar.shown),
    ]


def _grid(axis: _Axis, bottom: int) -> list[str]:
    lines: list[str] = []
    for power in range(axis.low, axis.high + 1):
        x = axis.at(10.0**power)
        lines.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{bottom}"/>')
        name = f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
        lines.append(f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{name}</text>')
    return lines


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    chosen = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{chosen}>{escape(text)}</text>'
