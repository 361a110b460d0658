"""Sequence diagrams drawn from text, as SVG.

The text is a part of Mermaid's ``sequenceDiagram``, which many viewers of Markdown draw by
themselves. The site draws it here, so that a page needs neither a network nor a script:

    sequenceDiagram
        participant P as plugin
        P->>H: a request
        H-->>P: an answer
        Note over P,H: what one should know

What is not understood raises `DiagramError`: a diagram is whole or the build fails.
"""

import re
from dataclasses import dataclass, field
from html import escape
from typing import Final

_PARTICIPANT: Final = re.compile(r"participant (\w+)(?: as (.+))?")
_MESSAGE: Final = re.compile(r"(\w+)(-?->>)(\w+): (.+)")
_NOTE: Final = re.compile(r"Note over (\w+)(?:,(\w+))?: (.+)")

_FONT: Final = 15
_CHAR: Final = 7.4
"""Width of one character in that size, on the wide side of sans-serif fonts."""
_ROW: Final = 38
_BOX: Final = 30
_PADDING: Final = 14
_LEAST_GAP: Final = 90.0
_LOOP: Final = 34
"""How far a message to oneself goes out."""


class DiagramError(ValueError):
    """A line of a diagram means nothing here."""


@dataclass(frozen=True)
class Message:
    """An arrow: from whom, to whom, what, and whether it answers."""

    source: str
    target: str
    text: str
    answers: bool


@dataclass(frozen=True)
class Note:
    """Words over one participant, or from the first to the last of several."""

    first: str
    last: str
    text: str


@dataclass
class Diagram:
    """Who takes part, by id, in order; and what happens, from top to bottom."""

    names: dict[str, str] = field(default_factory=dict[str, str])
    rows: list[Message | Note] = field(default_factory=list[Message | Note])


def read(text: str) -> Diagram:
    """The diagram that a text describes. Raises `DiagramError` with the line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or lines[0] != "sequenceDiagram":
        raise DiagramError("a diagram begins with the line sequenceDiagram")
    diagram = Diagram()

    def known(name: str) -> str:
        diagram.names.setdefault(name, name)
        return name

    for line in lines[1:]:
        if found := _PARTICIPANT.fullmatch(line):
            diagram.names[found[1]] = found[2] or found[1]
        elif found := _MESSAGE.fullmatch(line):
            source, target = known(found[1]), known(found[3])
            diagram.rows.append(Message(source, target, found[4], found[2] == "-->>"))
        elif found := _NOTE.fullmatch(line):
            first = known(found[1])
            diagram.rows.append(Note(first, known(found[2] or first), found[3]))
        else:
            raise DiagramError(f"not understood: {line}")
    if not diagram.rows:
        raise DiagramError("a diagram without a message shows nothing")
    return diagram


def draw(text: str) -> str:
    """The SVG of a diagram, on lines without a gap between them; its colour is the text's."""
    diagram = read(text)
    at = _columns(diagram)
    left, right = _edges(diagram, at)
    height = _BOX + _ROW * (len(diagram.rows) + 1)
    width = right - left
    parts = [
        _open(
            "svg",
            role="img",
            viewBox=f"{left:.0f} 0 {width:.0f} {height}",
            style=f"max-width:{width:.0f}px;width:100%",
            fill="none",
            stroke="currentColor",
            font_family="sans-serif",
            font_size=_FONT,
            xmlns="http://www.w3.org/2000/svg",
        ),
        f"<title>{escape(_told(diagram))}</title>",
    ]
    for name, label in diagram.names.items():
        half = _half(label)
        parts += [
            _line(at[name], _BOX, at[name], height, stroke_opacity=0.35),
            _tag("rect", x=at[name] - half, y=1, width=2 * half, height=_BOX - 2, rx=4),
            _text(at[name], _BOX - 10, label),
        ]
    for number, row in enumerate(diagram.rows, start=1):
        y = _BOX + _ROW * number
        parts += _note(row, at, y) if isinstance(row, Note) else _message(row, at, y)
    return "\n".join([*parts, "</svg>"])


def _columns(diagram: Diagram) -> dict[str, float]:
    """Where each participant stands: far enough from the others for every text between them."""
    names = list(diagram.names)
    at = [0.0] * len(names)
    for place in range(1, len(names)):
        boxes = _half(diagram.names[names[place - 1]]) + _half(diagram.names[names[place]])
        at[place] = at[place - 1] + max(_LEAST_GAP, boxes + _PADDING)
        for row in diagram.rows:
            first, last = _ends(row, names)
            if last == place and first != last and isinstance(row, Message):
                needed = len(row.text) * _CHAR + 2 * _PADDING
                at[place] = max(at[place], at[first] + needed)
            if isinstance(row, Message) and first == last == place - 1:
                needed = len(row.text) * _CHAR + _LOOP + 2 * _PADDING
                at[place] = max(at[place], at[first] + needed)
    return dict(zip(names, at, strict=True))


def _ends(row: Message | Note, names: list[str]) -> tuple[int, int]:
    pair = (row.source, row.target) if isinstance(row, Message) else (row.first, row.last)
    first, last = sorted(names.index(name) for name in pair)
    return first, last


def _edges(diagram: Diagram, at: dict[str, float]) -> tuple[float, float]:
    left = [at[name] - _half(label) for name, label in diagram.names.items()]
    right = [at[name] + _half(label) for name, label in diagram.names.items()]
    for row in diagram.rows:
        if isinstance(row, Note):
            middle = (at[row.first] + at[row.last]) / 2
            left.append(middle - _half(row.text))
            right.append(middle + _half(row.text))
        elif row.source == row.target:
            right.append(at[row.source] + _LOOP + _PADDING + len(row.text) * _CHAR)
    return min(left) - 2, max(right) + 2


def _message(row: Message, at: dict[str, float], y: int) -> list[str]:
    dashes = {"stroke_dasharray": "5 4"} if row.answers else {}
    start, end = at[row.source], at[row.target]
    if start == end:
        out = start + _LOOP
        path = f"M{start:.0f} {y - 12} H{out:.0f} V{y} H{start + 2:.0f}"
        middle = out + 6 + len(row.text) * _CHAR / 2
        drawn = _tag("path", d=path, **dashes)
        return [drawn, _head(start, y, -1), _text(middle, y - 2, row.text)]
    way = 1 if end > start else -1
    line = _line(start, y, end - way * 2, y, **dashes)
    return [line, _head(end, y, way), _text((start + end) / 2, y - 6, row.text)]


def _head(x: float, y: int, way: int) -> str:
    back = x - way * 8
    points = f"{x:.0f},{y} {back:.0f},{y - 4} {back:.0f},{y + 4}"
    return _tag("polygon", points=points, fill="currentColor", stroke="none")


def _note(row: Note, at: dict[str, float], y: int) -> list[str]:
    middle = (at[row.first] + at[row.last]) / 2
    half = max(_half(row.text), abs(at[row.last] - at[row.first]) / 2 + _PADDING)
    return [
        _tag(
            "rect",
            x=middle - half,
            y=y - 20,
            width=2 * half,
            height=26,
            rx=4,
            fill="currentColor",
            fill_opacity=0.08,
            stroke_opacity=0.35,
        ),
        _text(middle, y - 3, row.text),
    ]


def _half(text: str) -> float:
    return len(text) * _CHAR / 2 + _PADDING


def _text(x: float, y: int, text: str) -> str:
    start = _open("text", x=x, y=y, text_anchor="middle", fill="currentColor", stroke="none")
    return f"{start}{escape(text)}</text>"


def _line(x1: float, y1: float, x2: float, y2: float, **more: float | str) -> str:
    return _tag("line", x1=x1, y1=y1, x2=x2, y2=y2, **more)


def _tag(element: str, **attributes: float | str) -> str:
    return _open(element, **attributes).removesuffix(">") + "/>"


def _open(element: str, **attributes: float | str) -> str:
    """A start tag; numbers are written with as few digits as a drawing needs."""
    words = [
        f'{key.replace("_", "-")}="{value if isinstance(value, str) else format(value, ".4g")}"'
        for key, value in attributes.items()
    ]
    return f"<{' '.join([element, *words])}>"


def _told(diagram: Diagram) -> str:
    """The diagram in words, for whoever does not see it."""
    told: list[str] = []
    for row in diagram.rows:
        if isinstance(row, Note):
            told.append(row.text)
        else:
            source, target = diagram.names[row.source], diagram.names[row.target]
            told.append(f"{source} to {target}: {row.text}")
    return "; ".join(told)
