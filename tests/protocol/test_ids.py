"""Ids of durable work."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_protocol.ids import IdSource, is_action_id, is_session_id, made_at

FORM = re.compile(r"(act|ses)_[0-7][0-9A-HJKMNP-TV-Z]{25}")


def zeros(count: int) -> bytes:
    """The least random of all sources."""
    return bytes(count)


def test_an_id_is_a_prefix_and_twenty_six_characters() -> None:
    source = IdSource()
    for identity in (source.action_id(), source.session_id()):
        assert FORM.fullmatch(identity)
    assert is_action_id(source.action_id())
    assert is_session_id(source.session_id())
    assert not is_session_id(source.action_id())


def test_the_milliseconds_come_first_and_the_randomness_after_them() -> None:
    source = IdSource(lambda: 1469918176.385, lambda count: b"\xff" * count)
    assert source.action_id() == "act_01ARYZ6S41ZZZZZZZZZZZZZZZZ"


def test_an_id_tells_when_it_was_made() -> None:
    assert made_at(IdSource(lambda: 1469918176.385, zeros).session_id()) == 1469918176.385
    assert made_at(IdSource(lambda: -5.0, zeros).session_id()) == 0


def test_ids_of_one_millisecond_count_up() -> None:
    source = IdSource(lambda: 1.0, zeros)
    assert [source.action_id()[-2:] for _ in range(3)] == ["00", "01", "02"]


def test_a_full_millisecond_goes_on_in_the_next_one() -> None:
    source = IdSource(lambda: 1.0, lambda count: b"\xff" * count)
    first, second = source.action_id(), source.action_id()
    assert first < second
    assert made_at(second) == 1.001


def test_a_clock_that_goes_back_does_not_turn_ids_around() -> None:
    times = iter([5.0, 4.0, 5.0, 5.001])
    source = IdSource(lambda: next(times), lambda count: b"\x80" * count)
    ids = [source.action_id() for _ in range(4)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 4


@given(st.lists(st.floats(0, 2**47 / 1000), max_size=30), st.binary(min_size=10, max_size=10))
def test_ids_rise_whatever_the_clock_does(times: list[float], drawn: bytes) -> None:
    clock = iter(times)
    source = IdSource(lambda: next(clock), lambda _: drawn)
    ids = [source.action_id() for _ in times]
    assert ids == sorted(set(ids))
    assert all(is_action_id(identity) for identity in ids)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "act_",
        "01ARYZ6S41TSV4RRFFQ69G5FAV",
        "act-01ARYZ6S41TSV4RRFFQ69G5FAV",
        "act_01ARYZ6S41TSV4RRFFQ69G5FA",
        "act_01ARYZ6S41TSV4RRFFQ69G5FAVX",
        "act_81ARYZ6S41TSV4RRFFQ69G5FAV",
        "act_01ARYZ6S41TSV4RRFFQ69G5FAI",
        "act_01aryz6s41tsv4rrffq69g5fav",
        "act_01ARYZ6S41TSV4RRFFQ69G5FA\n",
    ],
)
def test_what_has_another_form_is_no_id(text: str) -> None:
    assert not is_action_id(text)
