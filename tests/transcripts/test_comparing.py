"""What counts as the same frame again, and where the first difference is."""

import copy
import json
import uuid
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from executa_host.replaying.comparing import MISSING, Comparison, Difference, Names, is_time

ID, OTHER_ID = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
UUIDS = [str(uuid.UUID(int=n)) for n in (7, 8)]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def first(recorded: Any, now: Any, *ignored: str) -> Difference | None:
    return Comparison(Names(), ignored).first(recorded, now)


@given(json_values)
def test_a_value_is_the_same_as_itself(value: Any) -> None:
    assert first(value, copy.deepcopy(value)) is None


@given(json_values, st.text(min_size=1, max_size=5), json_values)
def test_one_changed_member_is_exactly_the_difference(value: Any, name: str, other: Any) -> None:
    assume(json.dumps(value) != json.dumps(other))
    recorded = {"a": 1, "data": {"left": [1], "word": value}, "z": name}
    now = {"z": name, "data": {"word": other, "left": [1]}, "a": 1}
    found = first(recorded, now)
    assert found is not None
    assert found.path.startswith("data.word")


@pytest.mark.parametrize(
    ("recorded", "now", "path"),
    [
        ({"a": 1}, {"a": 1.0}, "a"),
        ({"a": 1}, {"a": True}, "a"),
        ({"a": 0}, {"a": None}, "a"),
        ({"a": 1}, {}, "a"),
        ({}, {"b": 2}, "b"),
        ([1, 2], [1], "[1]"),
        ([1], [1, 2], "[1]"),
        ({"d": [{"x": "tea"}]}, {"d": [{"x": "ice"}]}, "d[0].x"),
        ({"ttl_seconds": 60}, {"ttl_seconds": 61}, "ttl_seconds"),
        ({"notes": 3}, {"notes": 4}, "notes"),
        ({"version": "0.1.0"}, {"version": "0.1.1"}, "version"),
        ({"sha256": ID}, {"sha256": OTHER_ID}, "sha256"),
        ({"text": f"see {ID}"}, {"text": f"look {OTHER_ID}"}, "text"),
        ({"id": "notebook-1"}, {"id": "notebook-2"}, "id"),
        ({"a": "[redacted:x:1] and tea"}, {"a": "s3cret and ice"}, "a"),
    ],
)
def test_what_differs_is_told_with_its_path(recorded: Any, now: Any, path: str) -> None:
    found = first(recorded, now)
    assert found is not None
    assert found.path == path


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        ({"duration_ms": 1.5}, {"duration_ms": 20}),
        ({"durationMs": 1}, {"durationMs": 2}),
        ({"created_at": 1}, {"created_at": 2}),
        ({"at": "2026-01-02T03:04:05Z"}, {"at": "2027-02-03T04:05:06.789+01:00"}),
        ({"text": "took 12.5 ms"}, {"text": "took 3 ms"}),
        ({"id": ID}, {"id": OTHER_ID}),
        ({"thread": f"thread_{ID}"}, {"thread": f"thread_{OTHER_ID}"}),
        ({"text": f"run {UUIDS[0]} is done"}, {"text": f"run {UUIDS[1]} is done"}),
        ({"token": "[redacted:token:1]"}, {"token": "anything at all"}),
        ({"url": "http://x/f?sig=[redacted:sig:2]&a=1"}, {"url": "http://x/f?sig=abc&a=1"}),
        ({"pin": "[redacted:pin:3]"}, {"pin": 1234}),
        ({"note_id": "note_8fK2pQ91xZa7"}, {"note_id": "note_7gL3qR82yAb6"}),
        ({ID: 1}, {OTHER_ID: 1}),
    ],
)
def test_what_is_never_twice_the_same_is_left_aside(recorded: Any, now: Any) -> None:
    assert first(recorded, now) is None


def test_a_generated_id_stands_for_the_same_one_everywhere() -> None:
    third = "00112233445566778899aabbccddeeff"
    assert first({"a_id": ID, "b_id": ID}, {"a_id": OTHER_ID, "b_id": OTHER_ID}) is None
    apart = first({"a_id": ID, "b_id": ID}, {"a_id": OTHER_ID, "b_id": third})
    assert apart == Difference("b_id", ID, third)
    together = first({"a_id": ID, "b_id": OTHER_ID}, {"a_id": third, "b_id": third})
    assert together == Difference("b_id", OTHER_ID, third)
    assert first({"a_id": ID}, {"a_id": UUIDS[0]}) == Difference("a_id", ID, UUIDS[0])


def test_ignored_paths_are_not_looked_at() -> None:
    recorded, now = {"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 9, "c": 2, "e": 1}, "d": 3}
    assert first(recorded, now, "a.*") is None
    assert first(recorded, now, "a.b") == Difference("a.e", MISSING, 1)


def test_names_of_now_replace_recorded_ones() -> None:
    names = Names()
    assert first_with(names, {"id": ID}, {"id": OTHER_ID}) is None
    assert names.current(f'{{"x":"{ID}"}}') == f'{{"x":"{OTHER_ID}"}}'


def first_with(names: Names, recorded: Any, now: Any) -> Difference | None:
    return Comparison(names).first(recorded, now)


@pytest.mark.parametrize("path", ["duration_ms", "a.elapsedSeconds", "b[2].expires_at", "pid"])
def test_times_are_known_by_their_names(path: str) -> None:
    assert is_time(path)


@pytest.mark.parametrize("path", ["", "timeout_ms", "max_seconds", "platform", "notes", "data"])
def test_other_numbers_are_compared(path: str) -> None:
    assert not is_time(path)
