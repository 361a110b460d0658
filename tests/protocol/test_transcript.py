"""Trace events: each comes back as it went, on one line (R-14)."""

import contextlib
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from executa_protocol import transcript
from executa_protocol.errors import DecodeFailure, NotEncodable
from executa_protocol.transcript import AnyEvent, Event, decode_event, encode_event

KINDS: tuple[type[Any], ...] = get_args(AnyEvent)
SAMPLES: dict[Any, Any] = {
    str: 'a\n"é"',
    int: 7,
    float: 1.5,
    bool: True,
    Raw: Raw(b'{"n":1.10}'),
    tuple[str, ...]: ("t", ""),
}


def sample(kind: type[Any]) -> Any:
    """An event of a kind, every member told."""
    hints = get_type_hints(kind)
    return kind(**{name: _value(hints[name]) for name in kind.__struct_fields__})


def _value(hint: Any) -> Any:
    if get_origin(hint) is Literal:
        return get_args(hint)[-1]
    if isinstance(hint, UnionType) or hint not in SAMPLES:
        return _value(get_args(hint)[0])
    return SAMPLES[hint]


def plain(event: Any) -> dict[str, Any]:
    """The members of an event, raw ones as their bytes."""
    members = {name: getattr(event, name) for name in event.__struct_fields__}
    return {name: bytes(item) if isinstance(item, Raw) else item for name, item in members.items()}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_event_comes_back_as_it_went(kind: type[Any]) -> None:
    event = sample(kind)
    line = encode_event(event)
    assert b"\n" not in line
    found = decode_event(line)
    assert type(found) is kind
    assert plain(found) == plain(event)


def test_each_event_has_a_tag_of_its_own() -> None:
    tags = {kind.__struct_config__.tag for kind in KINDS}
    assert len(tags) == len(KINDS)
    assert all(issubclass(kind, Event) for kind in KINDS)


def test_every_event_of_the_module_is_one_that_can_be_read() -> None:
    defined = {item for item in vars(transcript).values() if _is_event(item)}
    assert defined - {Event} == set(KINDS)


def _is_event(item: Any) -> bool:
    return isinstance(item, type) and issubclass(item, Event)


def test_what_has_its_default_is_left_out() -> None:
    line = encode_event(transcript.Stderr(at=2.0, line="x"))
    assert line == b'{"event":"stderr","line":"x","at":2.0}'


@pytest.mark.parametrize(
    "event",
    [
        transcript.Frame(at=1.0, direction="in", line=Raw(b"{}\n")),
        transcript.Stderr(at=1.0, line="\udcff"),
        transcript.StateChanged(at=float("nan"), state="ready"),
    ],
    ids=["newline", "surrogate", "nan"],
)
def test_what_would_spoil_a_transcript_is_refused(event: AnyEvent) -> None:
    with pytest.raises(NotEncodable):
        encode_event(event)


def test_a_frame_is_raw_or_text_or_neither() -> None:
    event = transcript.Frame(at=1.0, direction="out", text="no json")
    assert plain(decode_event(encode_event(event)))["line"] is UNSET


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b'{"event":"unheard of","at":1}',
        b'{"event":"stderr","at":1}',
        b'{"event":"stderr","at":1,"line":"\xff"}',
        b'{"event":"noise","at":1e999,"kind":"a","message":"b"}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_event_is_a_decode_failure(line: bytes) -> None:
    with pytest.raises(DecodeFailure):
        decode_event(line)


@given(st.binary(max_size=60))
def test_any_line_is_an_event_or_a_decode_failure(line: bytes) -> None:
    for data in (line, b'{"event":"stderr","at":1,"line":"' + line + b'"}'):
        with contextlib.suppress(DecodeFailure):
            assert isinstance(decode_event(data), Event)
