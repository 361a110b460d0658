"""Which call an answer belongs to, and why it may belong to none (R-13)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from executa_protocol.correlation import InFlight, Stray
from executa_protocol.errors import StrictRefusal
from executa_protocol.readings import STRICT
from tests.protocol.reading import Listening


def test_ids_count_up_from_the_first() -> None:
    calls: InFlight[str] = InFlight(first=0)
    assert [calls.wire_id(calls.add(name)) for name in "abc"] == [0, 1, 2]
    assert list(calls.entries.values()) == ["a", "b", "c"]


def test_a_prefix_makes_them_strings() -> None:
    calls: InFlight[str] = InFlight("p")
    assert calls.wire_id(calls.add("a")) == "p1"
    assert calls.take("p1") == "a"


def test_an_answer_takes_its_call_once() -> None:
    calls: InFlight[str] = InFlight()
    calls.add("a")
    assert calls.take(1) == "a"
    assert len(calls) == 0
    assert calls.take(1) is Stray.FINISHED


def test_answers_may_come_in_any_order() -> None:
    calls: InFlight[str] = InFlight()
    for name in "abc":
        calls.add(name)
    assert [calls.take(number) for number in (3, 1, 2)] == ["c", "a", "b"]


def test_an_answer_to_a_call_that_was_given_up_is_late() -> None:
    calls: InFlight[str] = InFlight()
    number = calls.add("a")
    assert calls.discard(number) == "a"
    assert calls.discard(number) is None
    assert calls.take(number) is Stray.FINISHED


def test_a_call_that_was_put_back_waits_on() -> None:
    calls: InFlight[str] = InFlight()
    number = calls.add("a")
    calls.take(number)
    calls.put_back(number, "a")
    assert calls.take(number) == "a"


def test_an_answer_to_what_was_never_asked_is_unknown() -> None:
    calls: InFlight[str] = InFlight(first=5)
    calls.add("a")
    for identity in (4, 6, -5, 2**70, "x", "", None, True, False, 5.5, 1e300, "5 ", "+5", "05"):
        assert calls.take(identity) is Stray.UNKNOWN, identity
    assert len(calls) == 1


@pytest.mark.parametrize("identity", ["7", 7.0])
def test_the_right_value_of_the_wrong_type_is_tolerated_or_refused(identity: Any) -> None:
    calls: InFlight[str] = InFlight(first=7)
    calls.add("a")
    with pytest.raises(StrictRefusal) as caught:
        calls.take(identity, STRICT)
    assert caught.value.requirement == "WIRE-007"
    reader = Listening()
    assert calls.take(identity, reader) == "a"
    assert reader.ids == ["WIRE-007"]


@pytest.mark.parametrize("identity", ["7", 7.0])
def test_a_late_answer_of_the_wrong_type_is_late_in_both_modes(identity: Any) -> None:
    calls: InFlight[str] = InFlight(first=7)
    calls.discard(calls.add("a"))
    assert calls.take(identity) is calls.take(identity, STRICT) is Stray.FINISHED


@pytest.mark.parametrize(
    "identity", [True, "1.0", "\u0667", "1" * 21, "0x1", "1_0", None, float("1e20")]
)
def test_no_other_value_is_read_as_one_of_ours(identity: Any) -> None:
    calls: InFlight[str] = InFlight()
    for _ in range(10):
        calls.add("a")
    assert calls.take(identity) is Stray.UNKNOWN


@pytest.mark.parametrize(
    "identity", [1, 1.0, "1", "q1", "p", "p01", "p1.0", "P1", "p1 ", "pp1", True]
)
def test_with_a_prefix_only_its_strings_are_ours(identity: Any) -> None:
    calls: InFlight[str] = InFlight("p")
    calls.add("a")
    assert calls.take(identity) is Stray.UNKNOWN


def test_clear_takes_every_call() -> None:
    calls: InFlight[str] = InFlight()
    for name in "ab":
        calls.add(name)
    entries = calls.entries
    assert calls.clear() == ["a", "b"]
    assert entries == {}
    assert calls.take(1) is Stray.FINISHED


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text())
def test_any_id_is_ours_or_a_stray(identity: Any) -> None:
    for prefix in ("", "p"):
        calls: InFlight[str] = InFlight(prefix)
        calls.add("a")
        assert calls.take(identity) in ("a", Stray.UNKNOWN, Stray.FINISHED)


class Traffic(RuleBasedStateMachine):
    """Calls and answers in any order, against a dict."""

    numbers = Bundle("numbers")

    def __init__(self) -> None:
        super().__init__()
        self.calls: InFlight[int] = InFlight()
        self.model: dict[int, int] = {}

    @rule(target=numbers)
    def add(self) -> int:
        number = self.calls.add(len(self.model))
        assert number not in self.model
        self.model[number] = len(self.model)
        return number

    @rule(number=numbers)
    def answer(self, number: int) -> None:
        assert self.calls.take(number) == self.model.pop(number, Stray.FINISHED)

    @rule(number=numbers)
    def give_up(self, number: int) -> None:
        assert self.calls.discard(number) == self.model.pop(number, None)

    @rule(number=st.integers())
    def guess(self, number: int) -> None:
        found = self.calls.take(number)
        assert found == self.model.pop(number, found)

    @invariant()
    def agrees(self) -> None:
        assert self.calls.entries == self.model


TestTraffic = Traffic.TestCase
