"""The format is documented as it is."""

from typing import Any, get_args

import pytest

from executa_protocol.transcript import AnyEvent, End, Frame, Header, Stamp
from tests.support.sources import ROOT

TEXT = (ROOT / "docs" / "transcripts.md").read_text(encoding="utf-8")
EVENTS: tuple[type[Any], ...] = get_args(AnyEvent)


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_every_event_is_in_the_table(kind: type[Any]) -> None:
    assert f"`{kind.__struct_config__.tag}`" in TEXT


@pytest.mark.parametrize("kind", [Frame, Header, Stamp, End], ids=lambda kind: kind.__name__)
def test_every_member_of_header_stamp_frame_and_end_is_told(kind: type[Any]) -> None:
    missing = [
        name
        for name in kind.__struct_fields__
        if f"`{name}`" not in TEXT and f'"{name}"' not in TEXT
    ]
    assert missing == []
