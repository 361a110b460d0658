"""Sequence diagrams are drawn from their text, or the build fails with the line."""

import re
from xml.etree import ElementTree

import pytest

from scripts.docs.sequence import DiagramError, Message, Note, draw, read
from tests.support.sources import ROOT

WALK = """\
sequenceDiagram
    participant P as plugin
    P->>H: a <request> & more
    H-->>P: an answer
    H->>H: thinks
    Note over P,H: what one should know
"""


def test_a_diagram_has_its_participants_in_order_and_its_rows_from_top_to_bottom() -> None:
    diagram = read(WALK)

    assert diagram.names == {"P": "plugin", "H": "H"}
    assert diagram.rows == [
        Message("P", "H", "a <request> & more", answers=False),
        Message("H", "P", "an answer", answers=True),
        Message("H", "H", "thinks", answers=False),
        Note("P", "H", "what one should know"),
    ]


def test_a_drawing_is_well_formed_holds_every_text_and_stays_in_its_frame() -> None:
    drawing = ElementTree.fromstring(draw(WALK))  # noqa: S314 - drawn above

    left, top, width, height = map(float, drawing.attrib["viewBox"].split())
    texts = list(drawing.iter("{http://www.w3.org/2000/svg}text"))
    assert [text.text for text in texts] == [
        "plugin",
        "H",
        "a <request> & more",
        "an answer",
        "thinks",
        "what one should know",
    ]
    for text in texts:
        assert left <= float(text.attrib["x"]) <= left + width
        assert top <= float(text.attrib["y"]) <= top + height


def test_a_drawing_tells_itself_in_words() -> None:
    assert "plugin to H: a &lt;request&gt; &amp; more" in draw(WALK)


def test_a_drawing_leaves_no_empty_line_which_would_end_it_in_markdown() -> None:
    assert all(draw(WALK).splitlines())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "begins with"),
        ("flowchart LR", "begins with"),
        ("sequenceDiagram", "shows nothing"),
        ("sequenceDiagram\nA->B: one dash", "not understood: A->B: one dash"),
        ("sequenceDiagram\nloop forever", "not understood: loop forever"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_its_line(text: str, told: str) -> None:
    with pytest.raises(DiagramError, match=re.escape(told)):
        read(text)


def test_every_diagram_of_the_docs_can_be_drawn() -> None:
    found = [
        drawing
        for page in (ROOT / "docs").rglob("*.md")
        for drawing in re.findall(r"```mermaid\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    ]

    assert len(found) >= 2
    for drawing in found:
        draw(drawing)
